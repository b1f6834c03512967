"""Three Patroni members on process nodes, without the operator: what the engine does by itself."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, LiteralString

import pytest

from database_load import Load, Login, Prober
from konverge_operators.database.engine import Login as EngineLogin
from konverge_operators.database.engine import ObservedMembers
from konverge_operators.database.postgresql.configuration import TTL
from konverge_operators.database.postgresql.local_images import local_images
from patroni_clusters import PatroniCluster, manifests, new_database
from process_clusters import process_cluster

pytestmark = [pytest.mark.engines, pytest.mark.real_time(limit=600), pytest.mark.plain_loop]


async def test_three_members_fail_over_without_loss() -> None:
    async with process_cluster(*local_images()) as cluster:
        database = PatroniCluster(cluster, new_database(synchronous="strict"))
        await database.create(*manifests(database.database))
        await database.wait(lambda observed: observed.initialized and not observed.config_current)
        await database.engine.configure(await database.target())
        first = (await database.wait_for_members(3)).primary
        load = Load(await database.service(), Login())
        await load.prepare()
        prober = Prober(Login(), lambda: database.addresses)

        faults = cluster.cluster.faults
        async with load.running(), prober.running(list(database.addresses)):
            await load.progress()
            await faults.block_api_server(database.key(first))  # or it restarts, and may still have its lock
            await faults.kill(database.key(first))
            killed = time.monotonic()
            second = (await database.wait(lambda observed: observed.primary not in ("", first))).primary
            back = await load.progress()
            await faults.unblock_api_server(database.key(first))
            await database.wait_for_members(3)
            await load.progress()

        print(f"killed {first}: {load.longest_gap(killed, back.ended):.1f} s without an acknowledged write")
        assert await load.missing() == []
        assert prober.violations() == []
        assert {one.member for one in prober.probes} >= {first, second}
        assert load.longest_gap(killed, back.ended) < 2 * TTL
        await check_requests(database, load)


async def check_requests(database: PatroniCluster, load: Load) -> None:
    """Check the requests of the operator: switchover, a parameter that needs a restart, logins, a rebuild."""
    engine, before = database.engine, await database.primary()
    to = next(one.name for one in (await database.wait_for_members(3)).members if one.synchronous)
    await engine.switchover(await database.target(), to)
    await database.wait(lambda observed: observed.primary == to and not observed.switchover_pending)
    assert before != to
    await database.wait_for_members(3)

    database.database.spec.parameters = {"max_connections": "110", "work_mem": "8MB"}
    await database.wait(lambda observed: not observed.config_current)
    await engine.configure(await database.target())
    await database.wait(lambda observed: all(one.pending_restart for one in observed.members))
    for member in database.addresses:
        await engine.restart(await database.target(), member)
        await database.wait(partial(is_restarted, member))
    await database.wait_for_members(3)
    assert await value_of("SHOW max_connections", load) == "110"
    assert await value_of("SHOW work_mem", load) == "8MB"

    usernames = engine.usernames(database.database)
    login = EngineLogin(usernames["alternate"], "it's new")
    for _ in range(2):
        await engine.set_login(await database.target(), login)
    new = Load(load.host, Login(login.username, login.password))
    assert await value_of("SELECT current_user", new) == usernames["application"]
    assert await value_of("SELECT count(*) > 0 FROM writes", new) is True
    await engine.delete_login(await database.target(), usernames["application"])
    with pytest.raises(Exception, match=r"is not permitted to log in|password authentication failed"):
        await value_of("SELECT 1", load)

    replica = next(one.name for one in (await database.wait_for_members(3)).members if one.role == "replica")
    copies = copies_of(database, replica)
    await engine.rebuild(await database.target(), replica)
    await database.cluster.until(lambda: copies_of(database, replica) > copies)
    await database.wait_for_members(3)


def copies_of(database: PatroniCluster, member: str) -> int:
    """Return how often a member has copied all data from another one since its container started."""
    runs = database.cluster.process_pod(member).containers["database"].state.restarts
    return database.cluster.log(member, "database", runs).count("replica has been created using basebackup")


def is_restarted(member: str, observed: ObservedMembers) -> bool:
    return observed.member(member).healthy and not observed.member(member).pending_restart


async def value_of(query: LiteralString, load: Load) -> Any:
    """Return the value of a query on the primary."""
    async with await load.login.connect(load.host) as connection:
        row = await (await connection.execute(query)).fetchone()
        return row[0] if row else None
