"""One life of a manager: stages, leading, stopping."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext

import pytest

from gadgets import Gadget, World, gadget, operating, world_with_gadgets
from konverge import Client, Context, Controller, Key, Manager, ObjectMeta, Result, controller_for
from konverge.errors import ConfigError, LeaseLost
from konverge.k8s.coordination.v1 import Lease
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager import Election
from konverge.manager.leadership import Leadership
from konverge.manager.stages import Stage, opened
from konverge.testing import settle
from konverge.testing.faults import answered, lists, watches


def election(identity: str) -> Election:
    return Election("gadget-lease", "default", identity=identity, clock=now)


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

    async with opened([stage("a"), stage("b")], lambda _: None):
        seen.append("up")
    assert seen == ["open a", "open b", "up", "close b", "close a"]

    seen.clear()
    with pytest.raises(ConfigError, match="c cannot start"):
        async with opened([stage("a"), stage("c", fails=True), stage("never")], lambda _: None):
            pass
    assert seen == ["open a"]


async def test_only_the_leader_works_and_a_standby_is_warm() -> None:
    world = await world_with_gadgets()
    runs: list[tuple[str, str]] = []
    took_over = asyncio.Event()

    def controller(name: str) -> Controller[Gadget]:
        async def reconcile(obj: Gadget, ctx: Context) -> None:
            runs.append((name, obj.name))
            if runs[-1] == ("second", "b"):
                took_over.set()

        return controller_for(Gadget).build(reconcile)

    await world.client.create(gadget("a"))
    other = World.beside(world)
    first = AsyncExitStack()
    await first.enter_async_context(operating(world, controller("first"), election=election("first")))
    await asyncio.sleep(5)
    async with operating(other, controller("second"), election=election("second")):
        await asyncio.sleep(5)
        await world.client.create(gadget("b"))
        await settle()
        assert runs == [("first", "a"), ("first", "b")]
        listed = other.way.script.asked(lists("gadgets"))

        stopped = now()
        await first.aclose()
        await took_over.wait()

        assert now() - stopped < 3  # the lease was released, it did not expire
        assert other.way.script.asked(lists("gadgets")) == listed


async def test_who_takes_over_and_has_lost_its_watch_waits_until_it_hears_again() -> None:
    world = await world_with_gadgets()
    seen: list[tuple[str, int]] = []

    def controller(name: str) -> Controller[Gadget]:
        async def reconcile(obj: Gadget, ctx: Context) -> None:
            seen.append((name, obj.spec.size))

        return controller_for(Gadget).build(reconcile)

    await world.client.create(gadget("a"))
    other = World.beside(world)
    first = AsyncExitStack()
    await first.enter_async_context(operating(world, controller("first"), election=election("first")))
    await asyncio.sleep(5)
    async with operating(other, controller("second"), election=election("second")) as second:
        await asyncio.sleep(5)
        with other.way.script.standing(lambda asked: asked.path.endswith("/gadgets"), answered(503)):
            other.way.cut_streams()
            await world.client.patch(Gadget, "a", {"spec": {"size": 7}})
            await settle()
            await first.aclose()
            await asyncio.sleep(60)
            assert seen == [("first", 1), ("first", 7)]
            (stats,) = second.stats()
            assert stats.waits_for == "the watch of gadgets.test.konverge.dev is not open"
        await asyncio.sleep(60)
        assert seen[2:] == [("second", 7)]
        assert second.stats()[0].waits_for == ""


async def test_who_has_lost_its_lease_leaves_it_to_others() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> None: ...

    async with operating(world, controller_for(Gadget).build(reconcile), election=election("first")):
        await asyncio.sleep(5)
        with world.way.script.standing(lambda asked: "leases" in asked.path, answered(503)):
            await asyncio.sleep(60)
        renewed = await world.client.get(Lease, "gadget-lease")
        await asyncio.sleep(60)
        assert await world.client.get(Lease, "gadget-lease") == renewed


async def test_a_lease_that_cannot_be_renewed_ends_the_process_before_it_is_over() -> None:
    world = await world_with_gadgets()
    cancelled: list[float] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(now())

    await world.client.create(gadget("a"))
    manager = Manager(world.operator_client(), name="gadget-operator", election=election("only"))
    manager.add(controller_for(Gadget).timeout(3600).build(reconcile))
    serving = asyncio.ensure_future(manager.serve())
    await asyncio.sleep(20)
    cut = now()
    broken = world.way.script.standing(lambda asked: "leases" in asked.path, answered(503))
    with broken, pytest.raises(LeaseLost, match="does not lead any more"):
        await serving
    assert cut < cancelled[0] <= cut + 10 + 2


async def test_what_runs_may_end_within_the_grace() -> None:
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


async def test_a_watch_that_is_forbidden_is_named_by_readiness_and_heals() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> None: ...

    manager = Manager(world.operator_client(), name="gadget-operator")
    manager.add(controller_for(Gadget).owns(ConfigMap).build(reconcile))
    refusal = answered(
        403,
        reason="Forbidden",
        message='configmaps is forbidden: User "operator" cannot list resource "configmaps" in API group "" at the'
        " cluster scope",
    )
    with (
        world.way.script.standing(watches("configmaps"), refusal),
        world.way.script.standing(lists("configmaps"), refusal),
    ):
        async with manager.running() as process:
            await asyncio.sleep(30)
            report = process.measures.health.ready().text(verbose=True)
            assert "[-]caches failed: ConfigMap: watch is forbidden (needs list, watch on configmaps)" in report


async def test_a_manager_cannot_run_twice_at_once_and_can_run_again() -> None:
    world = await world_with_gadgets()
    manager = Manager(world.operator_client(), name="gadget-operator")
    async with manager.running():
        with pytest.raises(RuntimeError, match="runs already"):
            async with manager.running():
                pass
    async with manager.running():
        pass


@pytest.mark.real_time
async def test_an_address_that_is_taken_fails_the_start() -> None:
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    world = World()
    manager = Manager(world.operator_client(), probes=f"127.0.0.1:{port}")
    async with server:
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}"):
            async with manager.running():
                pass


async def test_the_end_of_a_manager_closes_no_client_that_it_was_given() -> None:
    world = await world_with_gadgets()
    client: Client = world.operator_client()
    async with Manager(client).running():
        pass
    assert await client.list(Gadget) is not None


@pytest.mark.real_time(limit=30)
async def test_the_first_signal_asks_for_an_orderly_end() -> None:
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


async def test_controllers_can_work_by_leases_of_their_own() -> None:
    world = await world_with_gadgets()
    told: list[tuple[str, bool]] = []
    maps: list[str] = []

    async def gadgets(obj: Gadget, ctx: Context) -> None: ...

    async def config_maps(obj: ConfigMap, ctx: Context) -> None:
        maps.append(obj.name)

    manager = Manager(world.operator_client(), name="gadget-operator", election=election("one"))
    manager.add(controller_for(Gadget).build(gadgets))
    other = Election("map-lease", "default", identity="one", clock=now)
    manager.add(controller_for(ConfigMap).build(config_maps), election=other)
    manager.on_leading(lambda lease, leads: told.append((lease, leads)))
    taken = Election("map-lease", "default", identity="somebody", clock=now)
    holder = Leadership(taken, lambda: nullcontext(world.client))
    competing = asyncio.ensure_future(holder.run())
    await asyncio.sleep(1)
    await world.client.create(ConfigMap(metadata=ObjectMeta(name="m", namespace="default")))

    async with manager.running():
        await asyncio.sleep(5)
        assert told == [("gadget-lease", True)]
        assert maps == []
        holder.stop()
        await competing
        await asyncio.sleep(5)
        assert told == [("gadget-lease", True), ("map-lease", True)]
        assert maps == ["m"]
    assert sorted(told[2:]) == [("gadget-lease", False), ("map-lease", False)]
