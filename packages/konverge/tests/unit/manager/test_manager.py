"""One run of a manager: stages, leader election, shutdown."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext

import pytest

from gadgets import Gadget, World, gadget, operating, world_with_gadgets
from konverge import Client, Context, Controller, Key, Manager, ObjectMeta, Result, controller_for
from konverge.errors import ConfigError, LeaseLost, WriteRefused
from konverge.k8s.coordination.v1 import Lease
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager import LeaderElection
from konverge.manager.election_runner import ElectionRunner
from konverge.manager.stages import Stage, open_stages
from konverge.testing import settle
from konverge.testing.faults import lists, status_response, watches


def election(identity: str) -> LeaderElection:
    return LeaderElection("gadget-lease", "default", identity=identity, clock=now)


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_stages_open_in_order_and_close_in_reverse_also_when_one_fails() -> None:
    seen: list[str] = []

    def stage(name: str, *, fails: bool = False) -> Stage:
        @asynccontextmanager
        async def run() -> AsyncGenerator[None]:
            if fails:
                raise ConfigError(f"{name} cannot start")
            seen.append(f"open {name}")
            yield
            seen.append(f"close {name}")

        return Stage(name, run)

    async with open_stages([stage("a"), stage("b")], lambda _: None):
        seen.append("up")
    assert seen == ["open a", "open b", "up", "close b", "close a"]

    seen.clear()
    with pytest.raises(ConfigError, match="c cannot start"):
        async with open_stages([stage("a"), stage("c", fails=True), stage("never")], lambda _: None):
            pass
    assert seen == ["open a"]


async def test_only_the_leader_works_and_a_standby_is_warm() -> None:
    world = await world_with_gadgets()
    runs: list[tuple[str, str]] = []
    second_leads = asyncio.Event()

    def controller(name: str) -> Controller[Gadget]:
        async def reconcile(obj: Gadget, ctx: Context) -> None:
            runs.append((name, obj.name))
            if runs[-1] == ("second", "b"):
                second_leads.set()

        return controller_for(Gadget).build(reconcile)

    await world.client.create(gadget("a"))
    other = World.beside(world)
    first = AsyncExitStack()
    await first.enter_async_context(operating(world, controller("first"), leader_election=election("first")))
    await asyncio.sleep(5)
    async with operating(other, controller("second"), leader_election=election("second")):
        await asyncio.sleep(5)
        await world.client.create(gadget("b"))
        await settle()
        assert runs == [("first", "a"), ("first", "b")]
        listed = other.transport.script.requests(lists("gadgets"))

        stopped = now()
        await first.aclose()
        await second_leads.wait()

        assert now() - stopped < 3  # the lease was released, it did not expire
        assert other.transport.script.requests(lists("gadgets")) == listed


async def test_a_new_leader_without_a_watch_waits_until_the_watch_is_open() -> None:
    world = await world_with_gadgets()
    seen: list[tuple[str, int]] = []

    def controller(name: str) -> Controller[Gadget]:
        async def reconcile(obj: Gadget, ctx: Context) -> None:
            seen.append((name, obj.spec.size))

        return controller_for(Gadget).build(reconcile)

    await world.client.create(gadget("a"))
    other = World.beside(world)
    first = AsyncExitStack()
    await first.enter_async_context(operating(world, controller("first"), leader_election=election("first")))
    await asyncio.sleep(5)
    async with operating(other, controller("second"), leader_election=election("second")) as second:
        await asyncio.sleep(5)
        with other.transport.script.active(lambda request: request.path.endswith("/gadgets"), status_response(503)):
            other.transport.reset_streams()
            await world.client.patch(Gadget, "a", {"spec": {"size": 7}})
            await settle()
            await first.aclose()
            await asyncio.sleep(60)
            assert seen == [("first", 1), ("first", 7)]
            (stats,) = second.stats()
            assert stats.not_ready_reason == "the watch of gadgets.test.konverge.dev is not open"
        await asyncio.sleep(60)
        assert seen[2:] == [("second", 7)]
        assert second.stats()[0].not_ready_reason == ""


async def test_a_process_that_lost_its_lease_does_not_acquire_it_again() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> None: ...

    async with operating(world, controller_for(Gadget).build(reconcile), leader_election=election("first")):
        await asyncio.sleep(5)
        with world.transport.script.active(lambda request: "leases" in request.path, status_response(503)):
            await asyncio.sleep(60)
        renewed = await world.client.get(Lease, "gadget-lease")
        await asyncio.sleep(60)
        assert await world.client.get(Lease, "gadget-lease") == renewed


async def test_a_lease_that_cannot_be_renewed_stops_the_process_before_the_lease_expires() -> None:
    world = await world_with_gadgets()
    cancelled: list[float] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(now())

    await world.client.create(gadget("a"))
    manager = Manager(world.operator_client(), name="gadget-operator", leader_election=election("only"))
    manager.add(controller_for(Gadget).timeout(3600).build(reconcile))
    serving = asyncio.ensure_future(manager.serve())
    await asyncio.sleep(20)
    broken_at = now()
    broken = world.transport.script.active(lambda request: "leases" in request.path, status_response(503))
    with (
        broken,
        pytest.raises(LeaseLost, match=r"^gadget-operator is no longer the leader: .* \(restart the process\)$"),
    ):
        await serving
    assert broken_at < cancelled[0] <= broken_at + 10 + 2


async def test_a_task_that_outlives_its_reconcile_writes_only_while_this_process_leads() -> None:
    world = await world_with_gadgets()
    writes: list[asyncio.Task[ConfigMap]] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        async def write_after(seconds: float) -> ConfigMap:
            await asyncio.sleep(seconds)
            return await ctx.client.create(ConfigMap(metadata=ObjectMeta(name=f"at-{seconds:g}", namespace="default")))

        writes.extend(asyncio.create_task(write_after(seconds)) for seconds in (5.0, 60.0))

    await world.client.create(gadget("a"))
    manager = Manager(world.operator_client(), name="gadget-operator", leader_election=election("only"))
    manager.add(controller_for(Gadget).build(reconcile))
    serving = asyncio.ensure_future(manager.serve())
    await asyncio.sleep(10)
    with (
        world.transport.script.active(lambda request: "leases" in request.path, status_response(503)),
        pytest.raises(LeaseLost),
    ):
        await serving
    await asyncio.wait(writes)
    assert (await writes[0]).name == "at-5"
    with pytest.raises(WriteRefused):
        await writes[1]


async def test_reconciles_in_flight_may_end_within_the_grace() -> None:
    world = await world_with_gadgets()
    ended: list[str] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        try:
            await asyncio.sleep(5 if obj.name == "quick" else 500)
            await ctx.apply(ConfigMap(metadata=ObjectMeta(name=obj.name)))
            ended.append(f"{obj.name} done")
        except asyncio.CancelledError:
            ended.append(f"{obj.name} cancelled at {now():g}")
            raise

    await world.client.create(gadget("quick"))
    await world.client.create(gadget("slow"))
    async with operating(world, controller_for(Gadget).timeout(3600).build(reconcile), grace=20):
        await asyncio.sleep(1)
        await world.client.create(gadget("late"))
    assert ended[:1] == ["quick done"]
    assert [text for text in ended if "slow" in text] == ["slow cancelled at 21"]
    assert [one.name for one in await world.client.list(ConfigMap, namespace="default")] == ["quick"]


async def test_the_lease_is_kept_when_a_reconcile_outlives_the_grace_of_a_stop() -> None:
    """A cancelled write may still be in flight, so the next leader waits until the lease expires."""
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        await asyncio.sleep(500 if obj.name == "slow" else 0)

    async def holder_after(name: str) -> str | None:
        obj = await world.client.create(gadget(name))
        controller = controller_for(Gadget).timeout(3600).build(reconcile)
        async with operating(world, controller, leader_election=election(name), grace=1):
            await asyncio.sleep(60)
        await world.client.delete(obj)
        (lease,) = await world.client.list(Lease)
        return lease.spec.holder_identity if lease.spec is not None else None

    assert not await holder_after("quick")
    assert await holder_after("slow") == "slow"


async def test_a_watch_that_is_forbidden_is_named_by_the_readiness_check() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> None: ...

    manager = Manager(world.operator_client(), name="gadget-operator")
    manager.add(controller_for(Gadget).owns(ConfigMap).build(reconcile))
    forbidden = status_response(
        403,
        reason="Forbidden",
        message='configmaps is forbidden: User "operator" cannot list resource "configmaps" in API group "" at the'
        " cluster scope",
    )
    with (
        world.transport.script.active(watches("configmaps"), forbidden),
        world.transport.script.active(lists("configmaps"), forbidden),
    ):
        async with manager.running() as running:
            await asyncio.sleep(30)
            report = running.monitoring.health.ready().text(verbose=True)
            assert "[-]caches failed: ConfigMap: watch is forbidden (needs list, watch on configmaps)" in report


async def test_a_manager_cannot_run_twice_at_once_and_can_run_again() -> None:
    world = await world_with_gadgets()
    manager = Manager(world.operator_client(), name="gadget-operator")
    async with manager.running():
        with pytest.raises(
            RuntimeError, match=r"^this manager is already running: create another one for a second run$"
        ):
            async with manager.running():
                pass
    async with manager.running():
        pass


@pytest.mark.real_time
async def test_an_address_in_use_fails_the_start() -> None:
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    world = World()
    manager = Manager(world.operator_client(), probes=f"127.0.0.1:{port}")
    async with server:
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}"):
            async with manager.running():
                pass


async def test_a_manager_does_not_close_a_client_of_the_caller() -> None:
    world = await world_with_gadgets()
    client: Client = world.operator_client()
    async with Manager(client).running():
        pass
    assert await client.list(Gadget) is not None


@pytest.mark.real_time(limit=30)
async def test_the_first_signal_stops_in_order() -> None:
    world = await world_with_gadgets()
    began, ended = asyncio.Event(), []

    async def reconcile(obj: Gadget, ctx: Context) -> Result:
        began.set()
        await asyncio.sleep(0.2)
        ended.append(obj.name)
        return Result.done()

    await world.client.create(gadget("a"))
    manager = Manager(world.operator_client(), name="gadget-operator")
    manager.add(controller_for(Gadget).build(reconcile))
    running = asyncio.ensure_future(manager._run())
    await began.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    await running
    assert ended == ["a"]


async def test_why_of_an_unknown_controller_says_which_there_are() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> None: ...

    async with operating(world, controller_for(Gadget).build(reconcile)) as manager:
        with pytest.raises(ValueError, match="gadget"):
            manager.why("nonsense", Key("default", "a"))


async def test_controllers_can_have_leases_of_their_own() -> None:
    world = await world_with_gadgets()
    changes: list[tuple[str, bool]] = []
    maps: list[str] = []

    async def gadgets(obj: Gadget, ctx: Context) -> None: ...

    async def config_maps(obj: ConfigMap, ctx: Context) -> None:
        maps.append(obj.name)

    manager = Manager(world.operator_client(), name="gadget-operator", leader_election=election("one"))
    manager.add(controller_for(Gadget).build(gadgets))
    other = LeaderElection("map-lease", "default", identity="one", clock=now)
    manager.add(controller_for(ConfigMap).build(config_maps), leader_election=other)
    manager.on_leader_change(lambda lease, leading: changes.append((lease, leading)))
    held = LeaderElection("map-lease", "default", identity="another", clock=now)
    holder = ElectionRunner(held, lambda: nullcontext(world.client))
    competing = asyncio.ensure_future(holder.run())
    await asyncio.sleep(1)
    await world.client.create(ConfigMap(metadata=ObjectMeta(name="m", namespace="default")))

    async with manager.running():
        await asyncio.sleep(5)
        assert changes == [("gadget-lease", True)]
        assert maps == []
        holder.stop()
        await competing
        await asyncio.sleep(5)
        assert changes == [("gadget-lease", True), ("map-lease", True)]
        assert maps == ["m"]
    assert sorted(changes[2:]) == [("gadget-lease", False), ("map-lease", False)]


@pytest.mark.parametrize("skips", [False, True])
async def test_the_permission_check_can_be_skipped(skips: bool) -> None:
    world = await world_with_gadgets()
    manager = Manager(world.operator_client())
    manager.add(controller_for(Gadget).build(lambda _obj, _ctx: asyncio.sleep(0)))
    if skips:
        manager.skip_permission_check()
    async with manager.running():
        await settle()
    reviews = [one for one in world.transport.script.requests() if "accessreviews" in one.path]
    assert bool(reviews) is not skips
