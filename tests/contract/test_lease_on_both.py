"""Promises L1 and L2 on the embedded control plane and on a real API server, with client-go as a competitor."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import leader_program
from electors import until
from konverge.client import Client, InProcessTransport, load_config
from konverge.errors import ControlPlaneError, NotFound
from konverge.k8s.coordination.v1 import Lease
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager.elector import Elector, LeaderElection
from konverge.manager.write_fence import WriteFence
from konverge.objects import Unstructured
from konverge.testing import ControlPlane
from konverge.testing.binaries import find_binaries
from konverge_cluster.embedded_server import EmbeddedServer

Open = Callable[[], "AbstractAsyncContextManager[Poll]"]

# Short, so that tests are; long enough for a machine on which a request takes a second.
TIMING: dict[str, Any] = {"lease_duration": 10, "renew_deadline": 8.5, "retry_period": 0.5, "margin": 1}


@dataclass
class Poll:
    """A lease on one server, and all who compete for it in this process."""

    client: Client
    namespace: str
    electors: list[Elector] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    most_at_once: int = 0

    def join(self, name: str, **timing: Any) -> Elector:
        clock = asyncio.get_running_loop().time
        election = LeaderElection("operator", self.namespace, identity=name, **{**TIMING, **timing})
        elector = Elector(self.client, election, fence=WriteFence(clock))
        self.electors.append(elector)
        self.tasks.append(asyncio.create_task(elector.run(), name=name))
        return elector

    async def kill(self, elector: Elector) -> None:
        task = self.tasks[self.electors.index(elector)]
        task.cancel()
        await asyncio.wait([task])

    async def lead(self, elector: Elector) -> None:
        await self.until(elector.leading.is_set)

    async def until(self, claim: Callable[[], object]) -> float:
        def claimed() -> object:
            self.most_at_once = max(self.most_at_once, sum(each.fence() > 0 for each in self.electors))
            return claim()

        return await until(claimed)

    async def lease(self) -> Lease:
        return await self.client.get(Lease, "operator", namespace=self.namespace)


@asynccontextmanager
async def poll(client: Client, namespace: str) -> AsyncIterator[Poll]:
    found = Poll(client, namespace)
    async with client:
        try:
            yield found
        finally:
            for task in found.tasks:
                task.cancel()
            if found.tasks:
                await asyncio.wait(found.tasks)
    assert found.most_at_once <= 1, "two could write at the same time"


@pytest.fixture(params=["embedded", pytest.param("real", marks=[pytest.mark.control_plane, pytest.mark.real_time])])
def opened(request: pytest.FixtureRequest) -> Open:
    """A function that opens a poll on the embedded server, then on a real one."""
    if request.param == "embedded":
        return lambda: poll(Client(InProcessTransport(EmbeddedServer(seed=1).handle)), "default")
    plane: ControlPlane = request.getfixturevalue("control_plane")
    namespace: str = request.getfixturevalue("namespace")
    return lambda: poll(Client.connect(load_config(kubeconfig=plane.kubeconfig)), namespace)


async def test_of_many_who_start_at_once_one_leads(opened: Open) -> None:
    async with opened() as found:
        crowd = [found.join(f"n{i}") for i in range(5)]
        await found.until(lambda: any(each.leading.is_set() for each in crowd))
        await found.until(lambda: sum(bool(each.stats().holder) for each in crowd) == 5)

        assert len({each.stats().holder for each in crowd}) == 1
        assert (await found.lease()).spec.lease_transitions == 0


async def test_a_leader_that_died_is_followed_when_its_lease_is_over(opened: Open) -> None:
    async with opened() as found:
        first = found.join("first")
        await found.lead(first)
        second = found.join("second")
        await found.until(lambda: second.stats().holder == "first")
        could_write_until = asyncio.get_running_loop().time() + first.fence()
        await found.kill(first)

        await found.lead(second)

        assert asyncio.get_running_loop().time() >= could_write_until
        spec = (await found.lease()).spec
        assert spec.holder_identity == "second"
        assert spec.lease_transitions == 1
        assert spec.lease_duration_seconds == 10


async def test_a_leader_that_stops_is_followed_at_once(opened: Open) -> None:
    async with opened() as found:
        first = found.join("first", lease_duration=60, renew_deadline=40)
        await found.lead(first)
        second = found.join("second", lease_duration=60, renew_deadline=40)
        await found.until(lambda: second.stats().holder == "first")
        first.stop()
        stopped = asyncio.get_running_loop().time()

        await found.lead(second)

        assert asyncio.get_running_loop().time() - stopped < 30, "long before a lease of 60 s is over"


async def test_the_lease_is_written_as_the_server_stores_it(opened: Open) -> None:
    async with opened() as found:
        elector = found.join("only")
        await found.lead(elector)
        first = await found.lease()
        await found.until(lambda: elector.stats().renew_count >= 3)
        later = await found.lease()
        elector.stop()
        await found.tasks[0]
        last = await found.lease()

        assert first.spec.acquire_time == later.spec.acquire_time
        assert first.spec.renew_time is not None
        assert later.spec.renew_time is not None
        assert first.spec.renew_time < later.spec.renew_time
        assert last.spec.holder_identity == ""
        assert last.spec.lease_duration_seconds == 1
        assert last.spec.lease_transitions == 0


async def test_a_lease_that_is_deleted_is_made_again_by_its_leader(opened: Open) -> None:
    async with opened() as found:
        first = found.join("first")
        await found.lead(first)
        second = found.join("second")
        await found.until(lambda: second.stats().holder == "first")
        await found.client.delete(Lease, "operator", namespace=found.namespace)
        renewals = first.stats().renew_count

        await found.until(lambda: first.stats().renew_count > renewals)

        assert (await found.lease()).spec.holder_identity == "first"
        assert not second.leading.is_set()


# Processes that are frozen and killed


@contextmanager
def leader_process(plane: ControlPlane, namespace: str, identity: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(leader_program.__file__), str(plane.kubeconfig), namespace, identity],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    try:
        yield process
    finally:
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.wait()


class Dialog:
    """What a test says to a leader process and hears from it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.heard: list[str] = []

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    async def hear(self, start: str) -> str:
        """Wait for a line that starts so, unless it was heard already."""
        assert self._process.stdout is not None
        while True:
            for line in self.heard:
                if line.startswith(start):
                    return line
            line = (await asyncio.to_thread(self._process.stdout.readline)).strip()
            assert line, f"the process ended, after {self.heard}"
            self.heard.append(line)


@asynccontextmanager
async def standby(plane: ControlPlane, namespace: str) -> AsyncIterator[tuple[Poll, Elector]]:
    async with poll(Client.connect(load_config(kubeconfig=plane.kubeconfig)), namespace) as found:
        elector = found.join("standby")
        await found.until(lambda: elector.stats().holder)
        yield found, elector


@pytest.mark.real_time(limit=120)
async def test_a_leader_that_was_frozen_beyond_its_lease_and_wakes_up_does_not_write(
    control_plane: ControlPlane, namespace: str
) -> None:
    with leader_process(control_plane, namespace, "frozen") as process:
        dialog = Dialog(process)
        await dialog.hear("leading")
        dialog.tell("before")
        assert await dialog.hear("created") == "created before"
        async with standby(control_plane, namespace) as (found, elector):
            process.send_signal(signal.SIGSTOP)
            await found.lead(elector)
            dialog.tell("after")  # it is the first thing that it does when it wakes up
            process.send_signal(signal.SIGCONT)

            assert await dialog.hear("refused") == "refused after"
            await dialog.hear("stopped")
            with pytest.raises(NotFound):
                await found.client.get(ConfigMap, "after", namespace=namespace)
            assert elector.leading.is_set()


@pytest.mark.real_time(limit=120)
async def test_a_leader_process_that_is_killed_is_followed(control_plane: ControlPlane, namespace: str) -> None:
    with leader_process(control_plane, namespace, "killed") as process:
        await Dialog(process).hear("leading")
        async with standby(control_plane, namespace) as (found, elector):
            process.kill()

            await found.lead(elector)

            assert (await found.lease()).spec.lease_transitions == 1


@pytest.mark.real_time(limit=120)
async def test_a_leader_process_that_ends_in_order_hands_over(control_plane: ControlPlane, namespace: str) -> None:
    with leader_process(control_plane, namespace, "polite") as process:
        dialog = Dialog(process)
        await dialog.hear("leading")
        dialog.tell("one")
        await dialog.hear("created one")
        dialog.tell("")
        assert await dialog.hear("stopped") == "stopped in order"
        assert await asyncio.to_thread(process.wait) == 0

    async with Client.connect(load_config(kubeconfig=control_plane.kubeconfig)) as client:
        assert (await client.get(Lease, "operator", namespace=namespace)).spec.holder_identity == ""


# Rights


async def grant(client: Client, namespace: str, user: str, *verbs: str) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": user, "namespace": namespace},
        "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": [verb]} for verb in verbs],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": user, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    await client.apply(Unstructured(role), force=True)
    await client.apply(Unstructured(binding), force=True)


@pytest.mark.real_time(limit=120)
async def test_get_create_and_update_are_all_the_rights_that_it_takes(
    control_plane: ControlPlane, namespace: str
) -> None:
    config = load_config(kubeconfig=control_plane.kubeconfig_for("candidate"))
    async with (
        Client.connect(load_config(kubeconfig=control_plane.kubeconfig)) as admin,
        poll(Client.connect(config), namespace) as found,
    ):
        elector = found.join("candidate")
        for granted, missing in (((), "get"), (("get",), "create"), (("get", "create"), "update")):
            await grant(admin, namespace, "candidate", *granted)
            await found.until(lambda verb=missing: f"{verb} " in elector.stats().error)  # type: ignore[misc]
            assert "leases.coordination.k8s.io" in elector.stats().error
        await grant(admin, namespace, "candidate", "get", "create", "update")

        await found.until(lambda: elector.leading.is_set() and elector.stats().renew_count >= 3)

        assert elector.stats().error == ""


# client-go


@contextmanager
def client_go_candidate(plane: ControlPlane, namespace: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """kube-controller-manager, as a candidate for our lease: an elector of client-go, with nothing to do."""
    try:
        programs = find_binaries(("kube-controller-manager",))
    except ControlPlaneError as missing:
        pytest.skip(str(missing))
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                programs / "kube-controller-manager",
                f"--kubeconfig={plane.kubeconfig}",
                "--secure-port=0",
                "--controllers=ttl-controller",
                "--leader-elect=true",
                "--leader-elect-resource-lock=leases",
                "--leader-elect-resource-name=operator",
                f"--leader-elect-resource-namespace={namespace}",
                "--leader-elect-lease-duration=8s",
                "--leader-elect-renew-deadline=6s",
                "--leader-elect-retry-period=1s",
            ],
            stdout=out,
            stderr=out,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


async def held_by_client_go(client: Client, namespace: str, process: subprocess.Popen[bytes], log: Path) -> Lease:
    while True:
        lease = await client.get(Lease, "operator", namespace=namespace)
        if lease.spec.holder_identity not in ("", "ours"):
            return lease
        assert process.poll() is None, await asyncio.to_thread(log.read_text)
        await asyncio.sleep(0.2)


@pytest.mark.real_time(limit=240)
async def test_client_go_waits_for_us_follows_us_and_is_followed_by_us(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    log = tmp_path / "client-go.log"
    async with poll(Client.connect(load_config(kubeconfig=control_plane.kubeconfig)), namespace) as found:
        ours = found.join("ours", lease_duration=30, renew_deadline=25)
        await found.lead(ours)
        with client_go_candidate(control_plane, namespace, log) as process:
            renewals = ours.stats().renew_count
            await found.until(lambda: ours.stats().renew_count >= renewals + 20)
            assert ours.leading.is_set(), "it waits while we renew"

            ours.stop()
            await found.tasks[0]
            lease = await held_by_client_go(found.client, namespace, process, log)
            assert lease.spec.lease_transitions == 1
            assert lease.spec.lease_duration_seconds == 8

            again = found.join("ours")
            await found.until(lambda: again.stats().holder == lease.spec.holder_identity)
            process.kill()
            await found.lead(again)

        spec = (await found.lease()).spec
        assert spec.holder_identity == "ours"
        assert spec.lease_transitions == 2
