"""Scenarios T14 to T16, T18, T19, T21 and T22: load, failures and limits of controllers, observed from outside."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random

import pytest
from prometheus_client import generate_latest

from delayed_watches import DelayedWatches
from konverge import Context, Key, ObjectMeta, OwnerReference, Reconciler, Result, controller_for
from konverge.client import RetryPolicy
from konverge.k8s.core.v1 import ConfigMap
from konverge.k8s.events.v1 import Event
from konverge.testing.faults import Fault, RecordedRequest, status_response
from widget_operator import Widget, Widgets, widgets
from widget_rigs import OpenWidgets, OperatorTransport, WidgetRig, Write

MINUTE = 60.0


def names(count: int, letter: str = "w") -> list[str]:
    return [f"{letter}{number:05}" for number in range(count)]


# T14


class Watched(Widgets):
    """A slow reconciler; it records when each state was reconciled, and whether a key ran twice at once."""

    def __init__(self, rig: WidgetRig, take_time: Callable[[], Awaitable[object]]) -> None:
        super().__init__(rig.ledger)
        self._clock = rig.now
        self._take_time = take_time
        self.running: Counter[Key] = Counter()
        self.overlaps: list[Key] = []
        self.starts: list[tuple[float, str, int]] = []

    async def reconcile(self, obj: Widget, ctx: Context) -> None:
        self.starts.append((self._clock(), obj.name, obj.metadata.generation or 0))
        self.running[obj.key] += 1
        if self.running[obj.key] > 1:
            self.overlaps.append(obj.key)
        try:
            await self._take_time()
            await super().reconcile(obj, ctx)
        finally:
            self.running[obj.key] -= 1


class Storm:
    """Changes of widgets, as fast as the server accepts them: a real one accepts a few hundred per second."""

    def __init__(self, rig: WidgetRig, keys: list[str], changes: int) -> None:
        self._rig = rig
        self._keys = keys
        self._changes = changes
        self._made = 0
        self._gust = asyncio.Event()

    async def blow(self) -> None:
        dice = Random(14)
        while self._made < self._changes:
            await self._rig.change(*dice.choices(self._keys, k=50), payload=f"p{self._made}")
            self._made += 50
            gust, self._gust = self._gust, asyncio.Event()
            gust.set()
            await asyncio.sleep(0.01)

    async def pass_by(self, changes: int) -> None:
        """Wait for a number of further changes: this scales the duration with the speed of the server."""
        end = min(self._made + changes, self._changes)
        while self._made < end:
            await self._gust.wait()


async def test_t14_under_heavy_updates_no_key_runs_twice_at_once_and_nothing_is_lost(
    open_widgets: OpenWidgets,
) -> None:
    async with open_widgets() as rig:
        keys = names(rig.share(200, 20))
        await rig.create(*keys, replicas=1)
        storm = Storm(rig, keys, rig.share(50_000, 250))
        # Meanwhile each key changes twice.
        watched = Watched(rig, lambda: storm.pass_by(2 * len(keys)))
        async with rig.operating(widgets().max_concurrent_reconciles(64).build(watched)):
            await storm.blow()
            await rig.converges(within=30)

        assert watched.overlaps == []
        assert len(watched.starts) > 2 * len(keys)


# T15


async def test_t15_a_hot_key_does_not_delay_others(open_virtual_widgets: OpenWidgets) -> None:
    async with open_virtual_widgets() as rig:
        cold, seconds = names(rig.share(100, 8)), 30.0 if rig.full else 0.6
        await rig.create("hot", *cold, replicas=0)
        watched = Watched(rig, lambda: asyncio.sleep(0.01))
        changed: list[tuple[float, str, int]] = []

        async def heat(end: float) -> None:
            number = 0
            while rig.now() < end:
                number += 1
                await rig.change("hot", payload=str(number))
                await asyncio.sleep(0.002)

        async def stir(name: str, end: float, first: float) -> None:
            await asyncio.sleep(first)
            while rig.now() < end:
                begin = rig.now()
                patched = await rig.user.patch(Widget, name, {"spec": {"payload": str(begin)}}, namespace=rig.namespace)
                changed.append((rig.now(), name, patched.metadata.generation or 0))
                await asyncio.sleep(1.0)

        async with rig.operating(widgets().max_concurrent_reconciles(4).build(watched)) as (manager, _):
            await rig.converges(within=10)
            end = rig.now() + seconds
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(heat(end))
                for number, name in enumerate(cold):
                    tasks.create_task(stir(name, end, number / len(cold) / 2))
            (stats,) = manager.stats()
            assert stats.queue.ready + stats.queue.delayed <= len(cold) + 1
            await rig.converges(within=10)

        waits = sorted(_waits(changed, watched.starts))
        assert len(waits) >= len(cold)
        assert waits[int(len(waits) * 0.99) - 1] <= 1.0 + rig.slack / 10


def _waits(changed: list[tuple[float, str, int]], starts: list[tuple[float, str, int]]) -> list[float]:
    """Return the time from each change to the start of the first reconcile that saw it."""
    by_name: dict[str, list[tuple[float, int]]] = {}
    for time, name, generation in starts:
        by_name.setdefault(name, []).append((time, generation))
    return [
        max(0.0, next(time for time, seen in by_name[name] if seen >= generation) - at)
        for at, name, generation in changed
    ]


# T16


async def test_t16_a_key_that_always_fails_and_one_that_hangs_do_not_affect_others_and_are_reported(
    open_widgets: OpenWidgets,
) -> None:
    async with open_widgets() as rig:
        good = names(rig.share(200, 20))
        await rig.create("bad", payload="raise now")
        await rig.create("stuck", payload="hang now")
        await rig.create(*good, replicas=2)
        controller = widgets().max_concurrent_reconciles(2).timeout(5).build(Widgets(rig.ledger))
        async with rig.operating(controller) as (manager, process):
            begin = rig.now()
            await rig.until(lambda: _settled(rig, good), within=10)
            await rig.until(lambda: _opened(rig, "stuck") >= 2 and _opened(rig, "bad") >= 3, within=15)
            assert rig.now() - begin >= 5, "a reconcile that hangs is cancelled at its timeout, not before"

            (last, *_) = manager.why("widget", Key(rig.namespace, "bad"))
            assert "the payload asks for it" in last["error"]
            runs = manager.why("widget", Key(rig.namespace, "stuck"))
            assert any("not done after 5 s, cancelled" in run.get("error", "") for run in runs)
            metrics = generate_latest(process.monitoring.registry).decode()
            errors = [line for line in metrics.splitlines() if line.startswith("reconcile_errors_total{")]
            assert sum(float(line.rpartition(" ")[2]) for line in errors) >= 4

        assert not any("bad" in str(write) or "stuck-" in str(write) for write in rig.writes()[len(good) * 4 :])


async def _settled(rig: WidgetRig, keys: list[str]) -> bool:
    wrong = await rig.problems()
    return not any(text.startswith(tuple(keys)) for text in wrong)


def _opened(rig: WidgetRig, name: str) -> int:
    return sum(line.startswith(f"open {rig.namespace}/{name} ") for line in rig.ledger.lines)


# T18


class OneChild(Reconciler[Widget]):
    """Creates a child with a generated name if it sees none: with a stale cache it would create two."""

    async def reconcile(self, obj: Widget, ctx: Context) -> None:
        if not ctx.owned(ConfigMap):
            owner = OwnerReference(api_version=obj.api_version, kind=obj.kind, name=obj.name, uid=obj.uid)
            metadata = ObjectMeta(generate_name=f"{obj.name}-", namespace=obj.namespace, owner_references=[owner])
            await ctx.client.create(ConfigMap(metadata=metadata))


@pytest.mark.parametrize("late", [("configmaps",), ("widgets",), ("configmaps", "widgets")])
async def test_t18_a_delayed_watch_does_not_cause_a_second_child(
    open_widgets: OpenWidgets, late: tuple[str, ...]
) -> None:
    async with open_widgets() as rig:
        controller = controller_for(Widget).watches(ConfigMap, lambda _: ()).build(OneChild())
        transport = OperatorTransport(DelayedWatches(rig.transport(), *late, by=3.0))
        async with rig.operating(controller, transport=transport) as (manager, _):
            await rig.create("a")
            await rig.until(rig.children, within=30)
            for number in range(2):
                await rig.user.patch(Widget, "a", {"metadata": {"labels": {"n": str(number)}}}, namespace=rig.namespace)
                await asyncio.sleep(0.5)
            await asyncio.sleep(10)

            assert len(manager.why("widget", Key(rig.namespace, "a"))) >= 2, "the patches enqueued it"
            assert len(await rig.children()) == 1


# T19


async def test_t19_a_restart_with_everything_converged_writes_nothing(open_widgets: OpenWidgets) -> None:
    async with open_widgets() as rig:
        count = rig.share(10_000, 30)
        await rig.create(*names(count), replicas=1, payload="x")
        async with rig.operating():
            await rig.converges(within=rig.time_for(writes=3 * count))
        assert len(rig.writes()) == 3 * count, "a finalizer, a child and a status each"
        rig.audit.clear()
        opened = len(rig.ledger.lines)

        async with rig.operating() as (manager, _):
            await rig.until(lambda: len(rig.ledger.lines) - opened >= count, within=rig.time_for(writes=count))
            await rig.until(lambda: manager.stats()[0].active_workers == 0, within=30)
            await asyncio.sleep(5)

        assert rig.writes() == []


# T21


@pytest.mark.parametrize("attempts", [1, 4], ids=["by-the-queue", "by-the-client"])
async def test_t21_no_request_is_retried_before_the_retry_after_of_the_server(
    open_widgets: OpenWidgets, attempts: int
) -> None:
    dice = Random(21)
    refused: dict[tuple[str, str, bool], list[float]] = {}

    def is_refused(asked: RecordedRequest) -> bool:
        if "accessreviews" in asked.path or dice.random() >= 0.3:
            return False
        refused.setdefault(_what(asked), []).append(asked.time)
        return True

    said = status_response(429, reason="TooManyRequests", details={"retryAfterSeconds": 5})
    too_many = Fault(status=429, headers={**said.headers, "retry-after": "5"}, body=said.body)
    async with open_widgets() as rig:
        transport = rig.transport()
        transport.script.add(is_refused, too_many)
        await rig.create(*names(rig.share(100, 8)), replicas=2)
        async with rig.operating(transport=transport, retry=RetryPolicy(attempts=attempts)):
            for number in range(5):
                await asyncio.sleep(3)
                await rig.change(*names(5), payload=f"p{number}")
                transport.close_streams()
            await rig.converges(within=10 * MINUTE)

        assert sum(map(len, refused.values())) >= 20
        for what, times in refused.items():
            asked = [one.time for one in transport.script.log if _what(one) == what]
            for at in times:
                later = [time for time in asked if time > at]
                assert not later or later[0] - at >= 5 - 0.001, f"{what} again after {later[0] - at} s"


def _what(asked: RecordedRequest) -> tuple[str, str, bool]:
    return asked.method, asked.path, asked.watches


# T22


class Loud(Reconciler[Widget]):
    """Reports a thousand failures per run, ten times: with the same message, or with different ones."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._said: Counter[str] = Counter()

    async def reconcile(self, obj: Widget, ctx: Context) -> Result:
        for _ in range(self._each if self._said[obj.name] < 10 * self._each else 0):
            self._said[obj.name] += 1
            same = obj.spec.payload == "same"
            ctx.event("Failed", "the same message" if same else f"number {self._said[obj.name]}", warning=True)
        return Result.requeue(after=20)


async def test_t22_ten_thousand_failures_are_a_few_events(open_widgets: OpenWidgets) -> None:
    async with open_widgets() as rig:
        await rig.create("same", payload="same")
        await rig.create("other", *names(rig.share(50, 4)))
        async with rig.operating(controller_for(Widget).build(Loud(1_000))):
            await asyncio.sleep(5 * MINUTE - 2)
            written = _event_writes(rig)
            await asyncio.sleep(5 * MINUTE)
            found = await rig.user.list(Event, namespace=rig.namespace)
        about = {one.name: one.regarding.name for one in found if one.regarding}
        by_object = Counter(about[_event_name(write.path, write.body)] for write in written)

        assert 0 < len(written) <= 200
        assert max(by_object.values()) <= 40
        (same,) = [one for one in found if one.regarding and one.regarding.name == "same"]
        assert same.series is not None
        assert same.series.count == 10_000, "repeats are counted, not created"


def _event_writes(rig: WidgetRig) -> list[Write]:
    return [write for write in rig.audit if "/events" in write.path and write.status < 300]


def _event_name(path: str, body: bytes) -> str:
    last = path.rpartition("/")[2]
    return last if last != "events" else str(json.loads(body)["metadata"]["name"])
