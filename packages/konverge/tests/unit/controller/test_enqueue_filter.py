"""Which keys are enqueued: never an echo, and every change by others, whatever the order of events and responses."""

from __future__ import annotations

import asyncio
import json
from random import Random

import pytest

from konverge.client import WriteEvent
from konverge.controller.enqueue_filter import EnqueueFilter
from konverge.objects import Key, Kind
from konverge.queue import Backoff, Priority, WorkQueue
from konverge.reconcile import EnqueueEvent, Observers, ReconcileObserver
from konverge.triggers import EnqueueReason, EnqueueRequest

POD = Kind("", "v1", "Pod", "pods")
WEB, BOX = Key("shop", "web"), Key("shop", "box")


class Reasons(ReconcileObserver):
    """Records why keys were enqueued, and since when."""

    def __init__(self) -> None:
        self.versions: list[str] = []
        self.since: list[float] = []

    def enqueue(self, event: EnqueueEvent) -> None:
        self.versions.append(event.reason.version)
        self.since.append(event.since)


class Forgetful(ReconcileObserver):
    """Fails always."""

    def enqueue(self, event: EnqueueEvent) -> None:
        raise RuntimeError("dropped")


class Rig:
    """A filter with its queue."""

    def __init__(self, *observers: ReconcileObserver) -> None:
        self.reasons = Reasons()
        self.queue: WorkQueue[Key] = WorkQueue(backoff=Backoff(base_delay=60, jitter=0))
        self.enqueue_filter = EnqueueFilter("webapp", self.queue, Observers(self.reasons, *observers))

    async def begin(self) -> None:
        """Begin a reconcile of WEB."""
        self.queue.add(WEB)
        assert await self.queue.get() == WEB
        self.enqueue_filter.begin(WEB)

    def end(self) -> bool:
        """End it; report whether the key is queued again."""
        self.enqueue_filter.end(WEB)
        self.queue.done(WEB)
        return self.queue.stats().ready == 1

    def event(self, version: int, *, what: str = "updated", listed: bool = False, writer: object = None) -> None:
        reason = EnqueueReason("owns Pod", "Pod", BOX, str(version), what, listed)
        self.enqueue_filter.add(EnqueueRequest(WEB, reason, Priority.NORMAL, False, writer))

    def write(self, version: int, *, base: int = 0, created: bool = False, verb: str = "apply") -> None:
        metadata = {"name": "box", "namespace": "shop", "resourceVersion": str(version)}
        response = json.dumps({"metadata": metadata}).encode()
        write = WriteEvent(verb, POD, BOX, response, created, str(base) if base else "")
        self.enqueue_filter.record_write(WEB, write)


async def test_the_event_of_a_write_enqueues_nothing_before_and_after_its_response() -> None:
    rig = Rig()
    await rig.begin()
    rig.event(5)
    rig.write(5, base=4)
    rig.event(5)
    assert not rig.end()
    assert rig.reasons.versions == []


async def test_an_event_that_names_this_key_as_its_writer_enqueues_nothing() -> None:
    rig = Rig()
    rig.event(5, writer=("webapp", WEB))
    assert rig.queue.stats().ready == 0
    for writer in (None, ("db", WEB), ("webapp", BOX), "webapp", 5):
        rig.event(6, writer=writer)
    assert len(rig.reasons.versions) == 5


async def test_a_change_by_another_among_echoes_enqueues_and_only_it_is_a_reason() -> None:
    rig = Rig()
    await rig.begin()
    rig.event(5)
    rig.event(6)
    rig.write(5, created=True)
    assert rig.end()
    assert rig.reasons.versions == ["6"]


async def test_a_held_reason_counts_from_its_event_on() -> None:
    rig = Rig()
    await rig.begin()
    rig.event(5)
    await asyncio.sleep(3)
    assert rig.end()
    assert rig.reasons.since == [0.0]


@pytest.mark.parametrize(("base", "created"), [(0, False), (5, False)])
async def test_a_version_that_another_client_made_is_no_echo(base: int, created: bool) -> None:
    """The write had no precondition, or it changed nothing."""
    rig = Rig()
    await rig.begin()
    rig.event(5)
    rig.write(5, base=base, created=created)
    assert rig.end()


@pytest.mark.parametrize("fact", [{"what": "deleted"}, {"listed": True}])
async def test_a_deletion_and_a_list_are_more_than_an_echo(fact: dict[str, object]) -> None:
    rig = Rig()
    await rig.begin()
    rig.write(5, base=4)
    rig.event(5, **fact)  # type: ignore[arg-type]
    assert rig.end()


async def test_the_response_to_a_delete_makes_no_version() -> None:
    rig = Rig()
    await rig.begin()
    rig.write(5, base=4, verb="delete")
    rig.event(5)
    assert rig.end()


async def test_a_version_of_the_last_reconcile_is_no_echo_of_the_next() -> None:
    rig = Rig()
    await rig.begin()
    rig.write(5, base=4)
    assert not rig.end()
    await rig.begin()
    rig.event(5)
    assert rig.end()


async def test_a_write_after_the_end_of_its_reconcile_is_ignored() -> None:
    rig = Rig()
    rig.write(5, base=4)
    rig.event(5)
    assert rig.queue.stats().ready == 1


async def test_timers_and_channels_enqueue_during_a_reconcile() -> None:
    rig = Rig()
    await rig.begin()
    rig.enqueue_filter.add_key(WEB, EnqueueReason("channel", "", WEB, "", "channel"))
    assert rig.queue.is_in_flight(WEB)
    assert rig.end()


async def test_new_input_during_a_failing_reconcile_resets_its_backoff() -> None:
    rig = Rig()
    await rig.begin()
    reason = EnqueueReason("for Pod", "Pod", WEB, "7", "updated")
    rig.enqueue_filter.add(EnqueueRequest(WEB, reason, Priority.NORMAL, True))
    rig.enqueue_filter.end(WEB)
    assert rig.queue.retry(WEB) == 0.0
    rig.queue.done(WEB)
    assert await rig.queue.get() == WEB


async def test_a_storm_during_a_reconcile_is_stored_in_bounded_space() -> None:
    rig = Rig()
    await rig.begin()
    for version in range(1000):
        rig.event(version)
    assert len(rig.reasons.versions) == 900  # these are enqueued at once
    for version in range(1000):
        rig.write(version, created=True)
    assert rig.end()


async def test_observers_that_fail_change_no_decision(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig(Forgetful())
    rig.event(1)
    assert rig.queue.stats().ready == 1
    assert [record.message for record in caplog.records] == ["observer failed"]


@pytest.mark.parametrize("seed", range(60))
async def test_a_key_runs_again_if_and_only_if_another_client_made_a_version_since(seed: int) -> None:
    """A model: versions are made by this key or by others; each has an event, each own one a response, in any order."""
    dice, rig = Random(seed), Rig()
    await rig.begin()
    steps, foreign = [], False
    for version in range(10, 10 + dice.randrange(8)):
        if dice.random() < 0.8:
            steps += [("write", version), ("event", version)]
        else:
            steps += [("event", version)]
            foreign = True
    dice.shuffle(steps)
    for step, version in steps:
        if step == "write":
            rig.write(version, base=version - 1)
        else:
            rig.event(version)
    assert rig.end() == foreign
