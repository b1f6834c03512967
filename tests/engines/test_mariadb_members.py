"""MariaDB members on a real engine: five of them, a rolling restart, and one that has diverged."""

from __future__ import annotations

from signal import SIGCONT, SIGSTOP

import pytest

from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod
from konverge_operators.database.api import Phase
from konverge_operators.database.mariadb.members import CLIENT
from running_mariadb import MISSING, RunningMariaDB, running_mariadb

pytestmark = [
    pytest.mark.engines,
    pytest.mark.real_time(limit=900),
    pytest.mark.plain_loop,
    pytest.mark.skipif(bool(MISSING), reason="needs MariaDB: apt-get install mariadb-server galera-4 rsync"),
]

START_ALONE = r"""
set -e
cd "$DATA/data"
kill -KILL "$(cat mariadbd.pid)"
while kill -0 "$(cat mariadbd.pid)" 2>/dev/null && ! grep -q "State:.Z" "/proc/$(cat mariadbd.pid)/status"; do :; done
common="--defaults-file=$DEFAULTS --datadir=$DATA/data --socket=./mariadb.sock --pid-file=$DATA/data/alone.pid"
galera="--wsrep-on=ON --wsrep-provider=$WSREP_PROVIDER --wsrep-cluster-address=gcomm:// --wsrep-sst-method=rsync"
log=/tmp/alone.log
mariadbd $common $galera --bind-address="$POD_IP" --wsrep-recover 2>$log
position=$(sed -n 's/.*Recovered position: *//p' $log | tail -1)
sed -i 's/safe_to_bootstrap: 0/safe_to_bootstrap: 1/' grastate.dat
mariadbd $common $galera --bind-address="$POD_IP" --wsrep-start-position="$position" --wsrep-new-cluster \
    --wsrep-provider-options="gmcast.listen_addr=tcp://$POD_IP:4567" 2>>$log &
server=$!
tries=0
until echo "SELECT 1" | (CLIENT) >/dev/null 2>&1; do tries=$((tries + 1)); test $tries -lt 300; sleep 0.1; done
echo "CREATE TABLE app.alone (number int PRIMARY KEY)" | (CLIENT)
for number in $(seq 40); do echo "INSERT INTO app.alone VALUES ($number);"; done | (CLIENT)
kill $server
wait $server
cat grastate.dat
"""
"""Kill the server of a member, start it alone as an administrator might do by mistake, and write to it."""


async def execute(database: RunningMariaDB, member: str, script: str) -> str:
    command = ["sh", "-c", script.replace("(CLIENT)", f"({CLIENT})")]
    result = await database.client.exec(member, command, container="database")
    assert result.exit_code == 0, result.stderr.decode()
    return result.stdout.decode()


def send(database: RunningMariaDB, member: str, signal: int) -> None:
    database.cluster.process_pod(member).containers["database"].send_signal(signal, all_processes=True)


async def test_a_member_that_was_started_alone_is_reported_and_not_touched() -> None:
    async with running_mariadb() as database:
        await database.wait_for_members(3)
        await database.connect()
        primary = await database.primary()
        member = next(pod.name for pod in await database.client.list(Pod) if pod.name != primary)
        send(database, member, SIGSTOP)
        state = await execute(database, member, START_ALONE)
        send(database, member, SIGCONT)

        found = await database.wait(lambda one: "has writes that the others do not have" in one.status.message)
        assert (found.status.phase, member in found.status.message) == (Phase.DEGRADED, True)
        async with database.clients():  # the others go on, and pass it
            pass
        assert await execute(database, member, 'cat "$DATA/data/grastate.dat"') == state
        assert "alone" in await execute(database, member, 'ls "$DATA/data/app"')
        assert database.restarts(member) == 0

        await database.client.delete(PersistentVolumeClaim, f"data-{member}")
        await database.client.delete(Pod, member)
        await database.wait_for_members(3)
        assert "alone" not in await execute(database, member, 'ls "$DATA/data/app"')


async def test_from_one_member_to_five_and_back_under_load() -> None:
    async with running_mariadb(replicas=1) as database:
        await database.wait_for_members(1)
        await database.connect()
        async with database.clients():
            await database.edit(replicas=5)
            await database.wait_for_members(5)
            assert len((await database.record()).members) == 5
            async with database.outage("two of five members are killed"):
                primary = (await database.record()).primary
                other = next(name for name in (await database.record()).members if name != primary)
                await database.kill(primary)
                await database.kill(other)
            await database.wait_for_members(5)
            await database.edit(replicas=3)
            await database.wait_for_members(3)
            await database.load.progress()


async def test_a_change_of_the_image_restarts_member_by_member_and_loses_no_write() -> None:
    """Debian has one release: 10.11.18 and 10.11.19 are the same programs here, under two images."""
    async with running_mariadb(version="10.11.18") as database:
        await database.wait_for_members(3)
        await database.connect()
        before = {pod.name: pod.uid for pod in await database.client.list(Pod)}
        async with database.clients():
            async with database.outage("a minor update"):
                await database.edit(version="10.11.19")
                found = await database.wait(lambda one: one.status.version == "10.11.19")
            assert found.status.ready_replicas >= 2
            await database.wait_for_members(3)
        pods = await database.client.list(Pod)
        assert not set(before.values()) & {pod.uid for pod in pods}
        assert {pod.spec.containers[0].image for pod in pods} == {"konverge-mariadb:10.11.19"}
