"""A running controller by itself, without a manager: readiness, sources, their tasks, and what it forgets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import konverge.controller
from gadgets import Gadget, World, gadget, operating, world_with_gadgets
from konverge import Context, Key, Kind, Result, controller_for
from konverge.cache import Cache, CacheOptions
from konverge.client import WriteEvent
from konverge.controller import Controller, ControllerStats, RunningController, running_controller
from konverge.controller.generations import GenerationObserver
from konverge.errors import NotSynced
from konverge.k8s.core.v1 import ConfigMap, Secret
from konverge.objects import kind_of
from konverge.queue import Backoff, Priority, RateLimit
from konverge.reconcile import (
    ActiveReconcile,
    EnqueueEvent,
    Journal,
    ReconcileDependencies,
    ReconcileEnd,
    ReconcileObserver,
)
from konverge.reconcile.last_applied import LastApplied
from konverge.telemetry import GenerationClock
from konverge.testing.faults import Fault, RecordedRequest, status_response
from konverge.triggers import Channel, Predicate, to_keys

GADGETS = kind_of(Gadget)
MONITOR = Kind("monitors.example.com", "v1", "Monitor", "monitors")
A = Key("default", "a")


def now() -> float:
    return asyncio.get_running_loop().time()


class Recorded(ReconcileObserver):
    """Records why keys are enqueued, which reconciles begin and end, and which keys are forgotten."""

    def __init__(self) -> None:
        self.enqueued: list[tuple[str, str, float]] = []
        self.begun: list[ActiveReconcile] = []
        self.ended: list[tuple[ActiveReconcile, ReconcileEnd]] = []
        self.forgotten: list[Key] = []

    def enqueue(self, event: EnqueueEvent) -> None:
        assert event.controller == "gadget"
        self.enqueued.append((event.key.name, str(event.reason), event.since))

    def begin(self, reconcile: ActiveReconcile) -> None:
        self.begun.append(reconcile)

    def end(self, reconcile: ActiveReconcile, end: ReconcileEnd) -> None:
        self.ended.append((reconcile, end))

    def forget(self, key: Key) -> None:
        self.forgotten.append(key)


async def nothing(obj: Any, ctx: Context) -> None: ...


def no_keys(_: object) -> tuple[Key, ...]:
    return ()


@asynccontextmanager
async def registered(
    world: World, controller: Controller[Any], **options: Any
) -> AsyncIterator[RunningController[Any]]:
    """Register a controller with an open cache; nothing runs."""
    async with world.operator_client() as client, Cache(client.collection, server=client) as cache:
        dependencies = ReconcileDependencies(
            controller=controller.name,
            client=client,
            cache=cache,
            field_manager="gadget-operator",
            last_applied=LastApplied(),
        )
        running = RunningController(controller, dependencies, **options)
        running.register()
        yield running


@asynccontextmanager
async def task_of(*runs: Any) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Run coroutines while the block runs."""
    tasks = [asyncio.create_task(run) for run in runs]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def opens_a_watch(asked: RecordedRequest) -> bool:
    return asked.watches and "sendInitialEvents" not in asked.query


def streams_a_list(asked: RecordedRequest) -> bool:
    return "sendInitialEvents" in asked.query


# Names


def test_what_runs_a_controller_is_loaded_on_first_use() -> None:
    load = konverge.controller.__getattr__
    assert load("RunningController") is running_controller.RunningController
    assert load("ControllerStats") is running_controller.ControllerStats
    for name in ("Worker", "runningcontroller", "CONTROLLERSTATS"):
        message = f"^module 'konverge.controller' has no attribute '{name}'$"
        with pytest.raises(AttributeError, match=message):
            load(name)


# Construction


async def test_a_controller_that_is_not_started_has_these_stats() -> None:
    world = await world_with_gadgets()
    controller = controller_for(Gadget).owns(ConfigMap).max_concurrent_reconciles(3).build(nothing)
    async with registered(world, controller) as it:
        assert it.stats() == ControllerStats(
            name="gadget",
            queue=it.queue.stats(),
            workers=3,
            active_workers=0,
            longest_running=0.0,
            unfinished=0.0,
            longest_running_key="",
            not_ready_reason="it is not started",
        )
        assert (it.queue.name, it.active_keys(), it.controller) == ("gadget", (), controller)
        assert it.missing_declarations() == ()


async def test_the_parts_of_a_controller_reach_its_queue_its_journal_and_its_reconciles() -> None:
    world, journal = await world_with_gadgets(), Journal()
    limiters: list[Any] = []

    def limiter() -> Any:
        limiters.append(controller_for(Gadget).build(nothing).rate_limiter())
        return limiters[-1]

    builder = controller_for(Gadget).rate(RateLimit(per_second=1, burst=2)).rate_limiter(limiter).read_only()
    async with registered(world, builder.build(nothing), journal=journal) as it:
        assert it.journal is journal
        assert it.queue._retries._limiter is limiters[0]
        assert it.queue._bucket is not None
        dependencies = it._dependencies
        assert (dependencies.read_only, dependencies.stopping()) == (True, False)
        assert dependencies.record_write == it._filter.record_write
        assert dependencies.observers is it._observers
        it.close()
        assert dependencies.stopping()
    async with registered(world, controller_for(Gadget).build(nothing)) as it:
        assert it.journal is not journal
        assert it.queue._bucket is None
        assert not it._dependencies.read_only


async def test_workers_need_a_registered_controller() -> None:
    world = await world_with_gadgets()
    async with registered(world, controller_for(Gadget).build(nothing)) as it:
        unregistered = RunningController(it.controller, it._dependencies)
        with pytest.raises(AssertionError, match=r"^call register before run_workers$"):
            await unregistered.run_workers()
        assert (unregistered.active_keys(), unregistered.stats().active_workers) == ((), 0)


async def test_an_index_is_added_to_every_lister_of_its_kind_and_to_no_other() -> None:
    world = await world_with_gadgets()
    builder = controller_for(Gadget).watches(ConfigMap, no_keys).watches(Secret, no_keys)
    builder.watches(ConfigMap, no_keys, options=CacheOptions(labels="app=web"))
    controller = builder.index(ConfigMap, "app", ".data.app").index(Gadget, "text", ".spec.text").build(nothing)
    async with registered(world, controller) as it:
        indexes = {name: one.informers[0].store.stats().indexes for name, one in it._listers.items()}
    assert indexes == {
        "for Gadget": ("text",),
        "watches ConfigMap": ("app",),
        "watches Secret": (),
        "watches ConfigMap (3)": ("app",),
    }


# Readiness


async def test_a_controller_names_each_reason_why_it_is_not_ready_once() -> None:
    world = await world_with_gadgets()
    controller = controller_for(Gadget).watches(MONITOR, no_keys).owns(ConfigMap).owns(Secret).build(nothing)
    forbidden = status_response(403, reason="Forbidden", message="no")
    with world.transport.script.active(lambda asked: "configmaps" in asked.path, forbidden):
        async with registered(world, controller) as it, task_of(it.run_workers()):
            await asyncio.sleep(5)
            reason = it.not_ready_reason()
            assert it.stats().not_ready_reason == reason
    resource = "monitors.monitors.example.com"
    assert reason == (
        f"the server does not serve {resource} (is its CRD installed, is the version right?);"
        " watch is forbidden (needs list, watch on configmaps)"
    )


async def test_no_reconcile_starts_before_the_watch_is_open() -> None:
    world, seen = await world_with_gadgets(), Recorded()
    await world.client.create(gadget("a"))
    script = world.transport.script
    with script.active(streams_a_list, status_response(400)):
        async with registered(world, controller_for(Gadget).build(nothing), observers=(seen,)) as it:
            with script.active(opens_a_watch, Fault(delay=40.0)):
                async with task_of(it.run_sources(), it.run_workers()):
                    await asyncio.sleep(30)
                    assert it.not_ready_reason() == "the watch of gadgets.test.konverge.dev is not open"
                    assert seen.begun == []
                    await asyncio.sleep(15)
                    assert it.not_ready_reason() == ""
                    assert [one.key for one in seen.begun] == [A]
                    script.add(opens_a_watch, Fault(delay=40.0))
                    world.transport.reset_streams()
                    await asyncio.sleep(10)
                    assert it.not_ready_reason() == "", "the workers have started"


async def test_a_watch_that_ended_before_the_workers_start_is_not_enough() -> None:
    world, seen = await world_with_gadgets(), Recorded()
    await world.client.create(gadget("a"))
    controller = controller_for(Gadget).build(nothing)
    async with registered(world, controller, observers=(seen,)) as it, task_of(it.run_sources()):
        await asyncio.sleep(5)
        assert it.not_ready_reason() == "", "it was open once, and no worker waits for more"
        with world.transport.script.active(opens_a_watch, Fault(delay=20.0)):
            world.transport.reset_streams()
            await asyncio.sleep(1)
            async with task_of(it.run_workers()):
                await asyncio.sleep(5)
                assert it.not_ready_reason() == "the watch of gadgets.test.konverge.dev is not open"
                assert seen.begun == []
                await asyncio.sleep(30)
                assert [one.key for one in seen.begun] == [A]


async def test_a_watch_that_is_open_when_the_workers_start_is_enough() -> None:
    world, seen = await world_with_gadgets(), Recorded()
    await world.client.create(gadget("a"))
    controller = controller_for(Gadget).build(nothing)
    async with registered(world, controller, observers=(seen,)) as it, task_of(it.run_sources()):
        await asyncio.sleep(5)
        async with task_of(it.run_workers()):
            await asyncio.sleep(1)
            assert [one.key for one in seen.begun] == [A]
            assert seen.begun[0].queue_wait == pytest.approx(5.0, abs=0.01)


async def test_caches_that_are_not_synced_in_time_are_an_error_with_each_reason() -> None:
    world = await world_with_gadgets()
    other = Kind("monitors.example.com", "v1", "Probe", "probes")
    builder = controller_for(Gadget).watches(MONITOR, no_keys).watches(other, no_keys).cache_sync_timeout(2.5)
    async with registered(world, builder.build(nothing)) as it:
        with pytest.raises(ExceptionGroup) as caught:
            await it.run_sources()
    (error,) = caught.value.exceptions
    assert isinstance(error, NotSynced)
    reasons = {
        str(kind): f"the server does not serve {kind.resource} (is its CRD installed, is the version right?)"
        for kind in (MONITOR, other)
    }
    texts = [f"{kind} cache not synced after 2.5 s: {reason}" for kind, reason in reasons.items()]
    assert str(error) == f"controller gadget: {'; '.join(texts)}"
    assert error.reasons == reasons
    assert now() == 2.5


async def test_a_controller_without_a_timeout_waits_for_its_caches() -> None:
    world = await world_with_gadgets()
    controller = controller_for(Gadget).watches(MONITOR, no_keys).build(nothing)
    async with registered(world, controller) as it, task_of(it.run_sources(), it.wait_for_cache_sync()) as tasks:
        await asyncio.sleep(600)
        assert [task.done() and task.exception() for task in tasks] == [None, False]


# Sources


async def test_the_tasks_of_a_controller_have_names() -> None:
    world = await world_with_gadgets()
    controller = (
        controller_for(Gadget)
        .watches(MONITOR, no_keys, options=CacheOptions(optional=True))
        .watches(Kind("monitors.example.com", "v1", "Probe", "probes"), no_keys)
        .resync(60)
        .every(63, lambda: ())
        .channel(Channel())
        .cache_sync_timeout(100)
        .max_concurrent_reconciles(2)
        .build(nothing)
    )
    async with registered(world, controller) as it, task_of(it.run_sources()):
        await asyncio.sleep(1)
        names = {one.get_name() for one in asyncio.all_tasks() if one.get_name().startswith("gadget")}
        assert names == {
            "gadget: cache sync",
            "gadget: resync",
            "gadget: Monitor served",
            "gadget: every 63 s",
            "gadget: channel",
        }
    controller = controller_for(Gadget).max_concurrent_reconciles(2).build(nothing)
    async with registered(World.beside(world), controller) as it, task_of(it.run_workers()):
        await asyncio.sleep(1)
        names = {one.get_name() for one in asyncio.all_tasks() if one.get_name().startswith("gadget")}
        assert names == {"gadget worker 0", "gadget worker 1"}


async def test_a_resync_enqueues_all_objects_at_its_interval() -> None:
    world, seen = await world_with_gadgets(), Recorded()
    for name in ("a", "b"):
        await world.client.create(gadget(name))
    await world.client.create(ConfigMap(metadata=gadget("map").metadata))
    mapper = to_keys(lambda one: [Key("default", f"of-{one.name}")], ConfigMap)
    controller = controller_for(Gadget).resync(10).watches(ConfigMap, mapper, resync=15).build(nothing)
    async with registered(world, controller, observers=(seen,)) as it, task_of(it.run_sources()):
        await asyncio.sleep(22)
    resyncs = [(name, reason, round(since)) for name, reason, since in seen.enqueued if "resync" in reason]
    assert resyncs == [
        ("a", "for Gadget: resync of Gadget default/a", 10),
        ("b", "for Gadget: resync of Gadget default/b", 10),
        ("of-map", "watches ConfigMap: resync of ConfigMap default/map", 15),
        ("a", "for Gadget: resync of Gadget default/a", 20),
        ("b", "for Gadget: resync of Gadget default/b", 20),
    ]


class Entries:
    """A lister with 1,001 entries, and the trigger that maps them; it counts the turns of the event loop."""

    informers = ()

    def __init__(self) -> None:
        self.turns = 0
        self.seen: list[int] = []

    def entries(self) -> range:
        return range(1_001)

    def resync(self, _entry: int) -> tuple[()]:
        if self.turns not in self.seen:
            asyncio.get_running_loop().call_soon(self._turn)
        self.seen.append(self.turns)
        return ()

    def _turn(self) -> None:
        self.turns += 1


async def test_a_resync_lets_other_tasks_run_after_each_500_objects() -> None:
    world, entries = await world_with_gadgets(), Entries()
    fake: Any = entries
    async with registered(world, controller_for(Gadget).build(nothing)) as it, task_of(it._run_resync(1.0, fake, fake)):
        await asyncio.sleep(1.5)
    assert [entries.seen.count(turn) for turn in range(3)] == [500, 500, 1]


async def test_keys_of_a_timer_wait_for_those_of_changes_and_channels() -> None:
    world, channel, seen = await world_with_gadgets(), Channel("orders"), Recorded()
    timer, ordered = Key("default", "timer"), Key("default", "ordered")
    controller = controller_for(Gadget).every(10, lambda: [timer]).channel(channel).build(nothing)
    async with registered(world, controller, observers=(seen,)) as it, task_of(it.run_sources()):
        await asyncio.sleep(11)
        channel.put(ordered)
        async with asyncio.timeout(1):
            assert [await it.queue.get(), await it.queue.get()] == [ordered, timer]
        assert it.queue._in_flight[timer].priority is Priority.LOW
        assert it.queue._in_flight[ordered].priority is Priority.NORMAL
    assert [(name, reason) for name, reason, _ in seen.enqueued] == [("timer", "every 10 s"), ("ordered", "orders")]


async def test_objects_are_enqueued_again_when_an_optional_kind_is_served() -> None:
    world, seen = await world_with_gadgets(), Recorded()
    await world.client.create(gadget("a"))
    builder = controller_for(Gadget).watches(ConfigMap, no_keys, options=CacheOptions(optional=True))
    with world.transport.script.active(lambda asked: "configmaps" in asked.path, status_response(404)):
        async with registered(world, builder.build(nothing), observers=(seen,)) as it, task_of(it.run_sources()):
            await asyncio.sleep(5)
            assert it.not_ready_reason() == ""
            world.transport.script.clear()
            await asyncio.sleep(60)
    assert [reason for _, reason, _ in seen.enqueued][1:] == ["for Gadget: resync of Gadget default/a"]
    served = Recorded()
    beside = World.beside(world)
    async with registered(beside, builder.build(nothing), observers=(served,)) as it, task_of(it.run_sources()):
        await asyncio.sleep(60)
    assert len(served.enqueued) == 1, "it was served from the start"


async def test_a_deleted_object_is_forgotten_and_a_deleted_child_is_not() -> None:
    world, seen = await world_with_gadgets(), Recorded()
    made = await world.client.create(gadget("a"))
    child = await world.client.create(ConfigMap(metadata=gadget("b").metadata))
    controller = controller_for(Gadget).watches(ConfigMap, no_keys).build(nothing)
    async with registered(world, controller, observers=(seen,)) as it, task_of(it.run_sources(), it.run_workers()):
        await asyncio.sleep(1)
        await world.client.delete(child)
        await asyncio.sleep(1)
        assert seen.forgotten == []
        await world.client.delete(made)
        await asyncio.sleep(1)
    assert seen.forgotten == [A]


async def test_the_failures_of_a_deleted_object_are_forgotten_at_once() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        raise RuntimeError("bad")

    made = await world.client.create(gadget("a"))
    predicate = Predicate(lambda event: event.new is not None)  # the deletion itself enqueues nothing
    controller = controller_for(Gadget).predicate(predicate).backoff(Backoff(base_delay=60, jitter=0)).build(reconcile)
    async with registered(world, controller) as it, task_of(it.run_sources(), it.run_workers()):
        await asyncio.sleep(1)
        assert it.queue.failures(A) == 1
        await world.client.delete(made)
        await asyncio.sleep(1)
        assert it.queue.failures(A) == 0


async def test_the_stats_name_the_key_that_started_first() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        await asyncio.sleep(30)

    controller = controller_for(Gadget).build(reconcile)
    async with registered(world, controller) as it, task_of(it.run_sources(), it.run_workers()):
        for name in ("b", "a", "c"):
            await world.client.create(gadget(name))
            await asyncio.sleep(5)
        assert (it.stats().longest_running_key, round(it.stats().longest_running)) == ("default/b", 15)


async def test_the_stats_name_the_active_keys() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        await asyncio.sleep(30)

    await world.client.create(gadget("a"))
    controller = controller_for(Gadget).build(reconcile)
    async with registered(world, controller) as it, task_of(it.run_sources(), it.run_workers()):
        await asyncio.sleep(5)
        assert it.active_keys() == (A,)
        assert it.stats().active_workers == 1


# Generations


def status(generation: int, *, kind: Kind = GADGETS, name: str = "a", subresource: str = "status") -> WriteEvent:
    metadata = b'{"name":"%b","namespace":"default","resourceVersion":"7"}' % name.encode()
    response = b'{"metadata":%b,"status":{"observedGeneration":%d}}' % (metadata, generation)
    return WriteEvent("patch", kind, Key("default", name), response, subresource=subresource)


def active() -> ActiveReconcile:
    return ActiveReconcile(controller="gadget", kind=GADGETS, key=A, reconcile_id="1")


@pytest.mark.parametrize(
    ("write", "latencies"),
    [
        (status(3), [5.0]),
        (status(2), []),
        (status(3, kind=MONITOR), []),
        (status(3, name="b"), []),
        (status(3, subresource=""), []),
    ],
)
async def test_a_status_that_observes_a_generation_ends_its_latency(write: WriteEvent, latencies: list[float]) -> None:
    clock, reconcile = GenerationClock(), active()
    clock.seen(A, 3, now())
    await asyncio.sleep(5)
    GenerationObserver(clock).write(reconcile, write)
    assert reconcile.generation_latencies == latencies


async def test_the_generations_of_a_deleted_object_are_forgotten() -> None:
    clock, reconcile = GenerationClock(), active()
    observer = GenerationObserver(clock)
    clock.seen(A, 3, now())
    observer.forget(A)
    observer.write(reconcile, status(3))
    assert reconcile.generation_latencies == []


async def test_the_latency_of_a_generation_counts_from_its_event() -> None:
    world, seen = await world_with_gadgets(), Recorded()

    async def reconcile(obj: Gadget, ctx: Context) -> Result:
        await asyncio.sleep(3)
        obj.status.observed_generation = obj.metadata.generation or 0
        await ctx.update_status(obj)
        return Result.done()

    async with operating(world, controller_for(Gadget).build(reconcile), observers=(seen,)):
        await asyncio.sleep(1)
        made = await world.client.create(gadget("a"))
        await asyncio.sleep(10)
        await world.client.delete(made)
        await asyncio.sleep(1)
        await world.client.create(gadget("a"))
        await asyncio.sleep(10)
    latencies = [one.generation_latencies for one, _ in seen.ended if one.generation_latencies]
    assert latencies == [[pytest.approx(3.0)], [pytest.approx(3.0)]]
