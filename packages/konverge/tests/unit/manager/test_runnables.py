"""Runnables and shared objects of a manager, and the parts of an operator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from gadgets import Gadget, World, gadget, world_with_gadgets
from konverge import Client, Context, Key, Manager, Operator, controller_for
from konverge.errors import WriteRefused
from konverge.k8s.coordination.v1 import Lease
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager import LeaderElection, Runnable, RunnableContext
from konverge.reconcile import BlockingContext
from konverge.testing import settle
from konverge.testing.faults import Fault, status_response
from konverge.triggers import Channel


class Session:
    """A shared object that records what happens."""

    def __init__(self, log: list[str]) -> None:
        self.log = log


def now() -> float:
    return asyncio.get_running_loop().time()


def election(identity: str) -> LeaderElection:
    return LeaderElection("gadget-lease", "default", identity=identity, clock=now)


async def nothing(obj: Gadget, ctx: Context) -> None: ...


async def test_a_runnable_feeds_a_channel_and_reads_what_it_wrote() -> None:
    world, runs = await world_with_gadgets(), list[str]()
    await world.client.create(gadget("a"))

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(obj.name)

    async def poll(ctx: RunnableContext) -> None:
        while True:
            await asyncio.sleep(60)
            made = await ctx.client.create(gadget(f"made-{int(now())}"))
            found = await ctx.cache.get(Gadget, made.key)
            assert found is not None
            ctx.channel("orders").put(Key("default", "a"))

    controller = controller_for(Gadget).channel(Channel("orders")).build(reconcile)
    operator = Operator(name="gadget-operator", controllers=(controller,), runnables=(poll,))
    async with operator.manager(world.operator_client()).running():
        await asyncio.sleep(185)
    assert runs.count("a") == 4
    made = await world.client.get(Gadget, "made-60")
    assert [one.manager for one in made.metadata.managed_fields or []] == ["gadget-operator"]


async def test_a_runnable_starts_when_the_caches_are_synced() -> None:
    world, found = await world_with_gadgets(), list[str]()
    await world.client.create(gadget("a"))

    async def count(ctx: RunnableContext) -> None:
        found.extend(one.name for one in await ctx.cache.list(Gadget))

    manager = Manager(world.operator_client(), name="gadget-operator")
    manager.add(controller_for(Gadget).build(nothing))
    manager.add_runnable(count)
    async with AsyncExitStack() as stack:
        with world.transport.script.active(lambda one: one.path.endswith("/gadgets"), status_response(503)):
            await stack.enter_async_context(manager.running())
            await asyncio.sleep(10)
            assert found == []
        await asyncio.sleep(60)
        assert found == ["a"], "a runnable that returns is not called again"


async def test_only_the_leader_runs_a_leader_only_runnable_and_hands_over_at_once() -> None:
    world = await world_with_gadgets()
    log: list[str] = []
    second_leads = asyncio.Event()

    def manager(name: str, client: Client) -> Manager:
        async def leading(ctx: RunnableContext) -> None:
            log.append(f"{name} leads")
            if name == "second":
                second_leads.set()
            try:
                await asyncio.Event().wait()
            finally:
                log.append(f"{name} stops")

        async def everywhere(ctx: RunnableContext) -> None:
            log.append(f"{name} runs")

        manager = Manager(client, name="gadget-operator", leader_election=election(name))
        manager.add_runnable(leading)
        manager.add_runnable(everywhere, leader_only=False)
        return manager

    first = AsyncExitStack()
    await first.enter_async_context(manager("first", world.operator_client()).running())
    await asyncio.sleep(5)
    async with manager("second", World.beside(world).operator_client()).running():
        await asyncio.sleep(60)
        assert log == ["first runs", "first leads", "second runs"]
        await first.aclose()
        stopped = now()
        assert (await world.client.get(Lease, "gadget-lease")).spec.holder_identity == ""
        await second_leads.wait()
        assert now() - stopped < 3
        assert log[3:] == ["first stops", "second leads"]


async def test_a_lease_is_not_released_while_a_cancelled_write_may_be_in_flight() -> None:
    world = await world_with_gadgets()
    writing = asyncio.Event()

    async def write(ctx: RunnableContext) -> None:
        writing.set()
        await ctx.client.create(gadget("late"))

    manager = Manager(world.operator_client(), name="gadget-operator", leader_election=election("first"), grace=1)
    manager.add_runnable(write)
    async with manager.running():
        with world.transport.script.active(lambda one: one.method == "POST" and "gadgets" in one.path, Fault(delay=60)):
            await writing.wait()
            await asyncio.sleep(1)
            manager.stop()
    assert (await world.client.get(Lease, "gadget-lease")).spec.holder_identity == "first"


async def test_a_runnable_stops_and_cannot_write_when_the_lease_is_lost() -> None:
    world = await world_with_gadgets()
    refused: list[type[BaseException]] = []

    async def write(ctx: RunnableContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            try:
                await ctx.client.create(gadget("late"))
            except WriteRefused as error:
                refused.append(type(error))

    manager = Manager(world.operator_client(), name="gadget-operator", leader_election=election("first"))
    manager.add_runnable(write)
    async with manager.running():
        await asyncio.sleep(5)
        lease = await world.client.get(Lease, "gadget-lease")
        lease.spec.holder_identity = "somebody else"
        await world.client.update(lease)
        await asyncio.sleep(60)
        assert refused == [WriteRefused]
    assert [one.name for one in await world.client.list(Gadget)] == []


async def test_an_error_of_a_runnable_stops_the_manager_and_names_it() -> None:
    world, log = await world_with_gadgets(), list[str]()

    @asynccontextmanager
    async def session(client: Client) -> AsyncGenerator[Session]:
        yield Session(log)
        log.append("closed")

    async def fails(ctx: RunnableContext) -> None:
        await asyncio.sleep(30)
        raise OSError("the remote is gone")

    manager = Manager(world.operator_client(), name="gadget-operator")
    manager.add(controller_for(Gadget).build(nothing))
    manager.add_runnable(fails)
    manager.share(session)
    with pytest.raises(OSError, match="the remote is gone") as failure:
        await manager.serve()
    assert any("raised by the runnable" in note and "fails" in note for note in failure.value.__notes__)
    assert log == ["closed"]


async def test_shared_objects_are_open_for_reconcilers_and_runnables_and_close_after_the_last_reconcile() -> None:
    world, log = await world_with_gadgets(), list[str]()

    @asynccontextmanager
    async def session(client: Client) -> AsyncGenerator[Session]:
        log.append(f"{len(await client.list(Gadget))} gadgets at start-up")
        yield Session(log)
        log.append("closed")

    @asynccontextmanager
    async def hook(client: Client) -> AsyncGenerator[None]:
        log.append("start-up")
        yield
        log.append("shutdown")

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        try:
            await asyncio.sleep(5)
        finally:
            ctx.shared(Session).log.append("reconciled")

    async def run(ctx: RunnableContext) -> None:
        ctx.shared(Session).log.append("run")
        with pytest.raises(ValueError, match=r"no Lease is shared: .* \(shared: NoneType, Session\)"):
            ctx.shared(Lease)
        with pytest.raises(
            ValueError,
            match=r"^no controller has a channel 'orders': add \.channel\(Channel\('orders'\)\) \(there are: .*\)$",
        ):
            ctx.channel("orders")

    controller = controller_for(Gadget).build(reconcile)
    operator = Operator(name="gadget", controllers=(controller,), runnables=(run,), shared=(hook, session))
    await world.client.create(gadget("a"))
    async with operator.manager(world.operator_client()).running():
        await asyncio.sleep(1)
    assert log == ["start-up", "1 gadgets at start-up", "run", "reconciled", "closed", "shutdown"]


async def test_a_blocking_reconciler_gets_shared_objects() -> None:
    world, log = await world_with_gadgets(), list[str]()

    @asynccontextmanager
    async def session(client: Client) -> AsyncGenerator[Session]:
        yield Session(log)

    def reconcile(obj: Gadget, ctx: BlockingContext) -> None:
        ctx.shared(Session).log.append(obj.name)

    await world.client.create(gadget("a"))
    manager = Manager(world.operator_client())
    manager.add(controller_for(Gadget).build(reconcile))
    manager.share(session)
    async with manager.running():
        await settle()
    assert log == ["a"]


async def test_a_shared_object_that_cannot_be_opened_fails_the_start() -> None:
    world = await world_with_gadgets()

    @asynccontextmanager
    async def session(client: Client) -> AsyncGenerator[Session]:
        await client.list(Lease, namespace="no/such")
        yield Session([])

    manager = Manager(world.operator_client())
    manager.share(session)
    with pytest.raises(ValueError, match="no/such"):
        await manager.serve()


def test_a_runnable_is_an_async_function() -> None:
    def blocking(ctx: RunnableContext) -> None: ...

    class Poll:
        async def __call__(self, ctx: RunnableContext) -> None: ...

    manager = Manager()
    for wrong in (blocking, 5):
        with pytest.raises(TypeError, match=r"^a runnable is an async function of its context, got "):
            manager.add_runnable(wrong)  # type: ignore[arg-type]
    assert Runnable(Poll()).name == "Poll"
    assert Operator(name="a", controllers=(), runnables=(Poll(), Runnable(Poll(), leader_only=False))).runnables


def test_the_kinds_of_an_operator_are_those_that_its_controllers_reconcile() -> None:
    gadgets = controller_for(Gadget).owns(ConfigMap).build(nothing)
    again = controller_for(Gadget).named("again").build(nothing)
    maps = controller_for(ConfigMap).build(lambda obj, ctx: None)

    assert Operator(name="gadgets", controllers=(gadgets, again, maps)).kinds == (Gadget,)
    assert Operator(name="gadgets", controllers=(gadgets,), kinds=()).crds() == []
    with pytest.raises(TypeError, match=r"controller_for\(Gadget\) is not built"):
        Operator(name="gadgets", controllers=(controller_for(Gadget),))  # type: ignore[arg-type]


async def test_a_cleanup_that_hangs_does_not_delay_the_end_of_a_lost_lease() -> None:
    world, ended = await world_with_gadgets(), list[float]()

    async def hang(ctx: RunnableContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(3600)

    manager = Manager(world.operator_client(), name="gadget-operator", leader_election=election("first"), grace=0)
    manager.add_runnable(hang)
    manager.on_leader_change(lambda _lease, leading: None if leading else ended.append(now()))
    async with manager.running():
        await asyncio.sleep(5)
        lease = await world.client.get(Lease, "gadget-lease")
        lease.spec.holder_identity = "somebody else"
        await world.client.update(lease)
        began = now()
        await asyncio.wait_for(manager._stopping.wait(), 60)
        assert now() - began < 10
    assert len(ended) == 1


async def test_the_log_of_a_runnable_names_it(caplog: pytest.LogCaptureFixture) -> None:
    world = await world_with_gadgets()

    async def sweep(ctx: RunnableContext) -> None:
        ctx.log.warning("swept")

    manager = Manager(world.operator_client(), name="gadget-operator")
    manager.add_runnable(sweep)
    async with manager.running():
        await settle()
    (record,) = [one for one in caplog.records if one.getMessage() == "swept"]
    assert vars(record)["runnable"].endswith("sweep")
