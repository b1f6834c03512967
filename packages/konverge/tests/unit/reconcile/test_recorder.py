"""Events on the embedded server, on virtual time: what is written, how often, and what is dropped."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from konverge.client import Client, InProcessTransport
from konverge.k8s.core.v1 import ConfigMap
from konverge.k8s.events.v1 import Event
from konverge.objects import MicroTime, ObjectMeta
from konverge.reconcile.event_stats import EventStats
from konverge.reconcile.recorder import EventLimits, EventRecorder, Reference
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import (
    FaultScript,
    RecordedRequest,
    connection_refused,
    connection_reset,
    forbidden,
    status_response,
    stream_paused,
)
from konverge_cluster.embedded_server import EmbeddedServer

FIVE_MINUTES = 300.0


def widget(name: str = "a", namespace: str = "default", uid: str = "1") -> Reference:
    return Reference(api_version="example.com/v1", kind="Widget", namespace=namespace, name=name, uid=uid)


def creates(asked: RecordedRequest) -> bool:
    return asked.method == "POST"


def patches(asked: RecordedRequest) -> bool:
    return asked.method == "PATCH"


def writes(asked: RecordedRequest) -> bool:
    return asked.method != "GET"


@dataclass
class RecorderRig:
    """A running recorder, the client of its server, and the faults in between."""

    recorder: EventRecorder
    client: Client
    script: FaultScript

    def fail(self, message: str = "no room", *, regarding: Reference | None = None, reason: str = "Failed") -> None:
        self.recorder.record(regarding or widget(), type="Warning", reason=reason, message=message)

    async def events(self) -> list[Event]:
        return list(await self.client.list(Event))

    async def event(self) -> Event:
        (event,) = await self.events()
        return event


def rig(limits: EventLimits | None = None, **options: str) -> RecorderRig:
    script = FaultScript()
    client = Client(FaultTransport(InProcessTransport(EmbeddedServer(seed=1).handle), script), random=Random(1))
    recorder = EventRecorder(client, controller="widgets", limits=limits, random=Random(1), **options)
    return RecorderRig(recorder, client, script)


@asynccontextmanager
async def running(limits: EventLimits | None = None, *, grace: float = 0.0) -> AsyncIterator[RecorderRig]:
    it = rig(limits)
    async with asyncio.TaskGroup() as group:
        group.create_task(it.recorder.run())
        await asyncio.sleep(0)
        yield it
        it.recorder.close(grace)
    assert_every_event_is_counted(it)


def assert_every_event_is_counted(it: RecorderRig) -> None:
    stats = it.recorder.stats()
    assert stats.recorded == stats.written + stats.pending + stats.dropped


def most_in_five_minutes(times: list[float]) -> int:
    """Count the most that fall into any five minutes; a window that is fullest begins with one of them."""
    return max((sum(start <= other <= start + FIVE_MINUTES for other in times) for start in times), default=0)


# T22: floods


async def test_ten_thousand_identical_failures_are_one_event_that_is_counted() -> None:
    async with running() as it:
        for number in range(10_000):
            it.fail()
            if number % 20 == 0:
                await asyncio.sleep(1)
        await asyncio.sleep(FIVE_MINUTES)
        event = await it.event()
        assert event.series is not None
        assert event.series.count == 10_000
        assert it.recorder.stats().dropped == 0
        times = [asked.time for asked in it.script.requests(writes)]
        assert most_in_five_minutes(times) <= 40


async def test_ten_thousand_identical_failures_at_once_are_one_write() -> None:
    async with running() as it:
        for _ in range(10_000):
            it.fail()
        await asyncio.sleep(600)
        assert len(it.script.requests(writes)) == 1
        event = await it.event()
        assert event.series is not None
        assert event.series.count == 10_000


@pytest.mark.parametrize("pause", [0.0, 1.0, 5.0])
async def test_ten_thousand_failures_with_different_messages_stay_within_the_limits(pause: float) -> None:
    async with running() as it:
        for number in range(10_000):
            it.fail(f"attempt {number} went wrong")
            if pause and number % 20 == 0:
                await asyncio.sleep(pause)
        await asyncio.sleep(400)
        assert most_in_five_minutes([asked.time for asked in it.script.requests(writes)]) <= 40
        notes = [event.note or "" for event in await it.events()]
        assert notes.count("attempt 0 went wrong") == 1
        assert any(note.startswith("(combined from similar events): ") for note in notes)
        assert it.recorder.stats().dropped == 0


@pytest.mark.parametrize("pause", [0.0, 6.0])
async def test_ten_thousand_failing_objects_stay_within_the_limits(pause: float) -> None:
    async with running() as it:
        for number in range(10_000):
            it.fail("no room", regarding=widget(f"w{number % 5000}", uid=str(number % 5000)))
            if pause and number % 100 == 0:
                await asyncio.sleep(pause)
        await asyncio.sleep(60)
        asked = it.script.requests(writes)
        assert 80 <= most_in_five_minutes([one.time for one in asked]) <= 200
        stats = it.recorder.stats()
        assert stats.dropped_limit > 0
        assert stats.series <= it.recorder.limits.series


async def test_ten_thousand_different_reasons_for_one_object_stay_within_its_limit() -> None:
    async with running() as it:
        for number in range(10_000):
            it.fail(reason=f"Failed{number}")
            if number % 20 == 0:
                await asyncio.sleep(2)
        times = [asked.time for asked in it.script.requests(writes)]
        assert 25 <= most_in_five_minutes(times) <= 40


async def test_healthy_objects_do_not_crowd_out_the_failing_one() -> None:
    async with running() as it:
        for number in range(2_000):
            it.recorder.record(widget(f"w{number}"), reason="Created", message="made it")
        it.fail(regarding=widget("sick"))
        await asyncio.sleep(1)
        assert "Warning" in {event.type for event in await it.events()}


async def test_growing_counts_do_not_crowd_out_a_new_event() -> None:
    async with running() as it:
        for _ in range(30):
            for number in range(40):
                it.fail(regarding=widget(f"w{number}"))
            await asyncio.sleep(10)
        it.recorder.record(widget("new"), reason="Created", message="made it")
        await asyncio.sleep(1)
        assert "Created" in {event.reason for event in await it.events()}


async def test_a_server_that_fails_gets_no_more_than_the_limits_allow() -> None:
    async with running() as it:
        with it.script.active(writes, status_response(500)):
            for number in range(200):
                it.fail(regarding=widget(f"w{number}"))
                await asyncio.sleep(2)
        times = [asked.time for asked in it.script.requests(writes)]
        assert most_in_five_minutes(times) <= 200


# What is written


async def test_an_event_has_its_reporter_its_reason_and_its_object() -> None:
    async with running() as it:
        made = await it.client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
        it.recorder.record(
            Reference.of(made), reason="Made", message="is there", action="Create", related=widget("b", uid="7")
        )
        await asyncio.sleep(1)
        event = await it.event()
    assert (event.type, event.reason, event.action, event.note) == ("Normal", "Made", "Create", "is there")
    assert event.reporting_controller == "widgets"
    assert (event.reporting_instance or "").startswith("widgets-")
    assert event.regarding is not None
    assert (event.regarding.api_version, event.regarding.kind, event.regarding.uid) == ("v1", "ConfigMap", made.uid)
    assert event.related is not None
    assert (event.related.kind, event.related.name, event.related.uid) == ("Widget", "b", "7")
    assert event.event_time is not None
    assert event.series is None
    assert event.name.startswith("a.")


async def test_an_event_of_a_cluster_scoped_object_is_in_the_default_namespace() -> None:
    async with running() as it:
        it.fail(regarding=widget("a", namespace=""))
        await asyncio.sleep(1)
        event = await it.event()
    assert event.namespace == "default"
    assert event.regarding is not None
    assert event.regarding.namespace is None


async def test_another_controller_may_report_within_the_same_limits() -> None:
    async with running() as it:
        it.fail()
        it.recorder.record(widget(), type="Warning", reason="Failed", message="no room", controller="gadgets")
        await asyncio.sleep(1)
        assert {event.reporting_controller for event in await it.events()} == {"widgets", "gadgets"}


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\u20ac", "\U0001f600", "\ud800"])
async def test_a_note_is_truncated_to_the_limit_of_the_server(letter: str) -> None:
    async with running() as it:
        for length in (500, 1021, 1024, 1025, 5000):
            it.fail(letter * length, reason=f"Length{length}")
        await asyncio.sleep(1)
        events = await it.events()
    assert len(events) == 5
    for event in events:
        assert len((event.note or "").encode()) <= 1024
    longest = next(event.note or "" for event in events if event.reason == "Length5000")
    assert longest.endswith("...")
    assert set(longest.removesuffix("...")) == {letter if letter != "\ud800" else "?"}


@pytest.mark.parametrize("name", ["system:node", "A_b", "x" * 253, "a.b.c", "\u00fc"])
async def test_every_object_name_gives_a_valid_event_name(name: str) -> None:
    async with running() as it:
        it.fail(regarding=widget(name))
        await asyncio.sleep(1)
        event = await it.event()
    assert len(event.name) <= 253
    assert event.regarding is not None
    assert event.regarding.name == name


async def test_long_reasons_and_actions_are_truncated() -> None:
    async with running() as it:
        it.recorder.record(widget(), reason="R" * 500, message="", action="A" * 500)
        await asyncio.sleep(1)
        event = await it.event()
    assert event.reason == "R" * 128
    assert event.action == "A" * 128


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"type": "Error"}, "'Normal' or 'Warning'"),
        ({"reason": ""}, "one word like"),
        ({"reason": "it did not work"}, "one word like"),
        ({"action": "two words"}, "one word like"),
        ({"message": None}, "is a str"),
        ({"related": "x"}, r"Reference\.of"),
        ({"related": Reference(api_version="v1", kind="Pod", name="")}, "apiVersion, kind and name"),
        ({"controller": "not a name"}, "cannot report"),
    ],
)
def test_wrong_arguments_raise_an_error_that_says_what_to_write(wrong: dict[str, object], words: str) -> None:
    given: dict[str, object] = {"reason": "Failed", "message": "x", **wrong}
    with pytest.raises(ValueError, match=words):
        rig().recorder.record(widget(), **given)  # type: ignore[arg-type]


def test_an_event_needs_an_object() -> None:
    with pytest.raises(ValueError, match="Reference"):
        rig().recorder.record(None, reason="Failed", message="x")  # type: ignore[arg-type]


def test_a_controller_needs_a_name_that_the_server_accepts() -> None:
    with pytest.raises(ValueError, match="cannot report events"):
        EventRecorder(rig().client, controller="my controller")


# Series


async def test_a_series_grows_with_each_heartbeat_and_the_intervals_double() -> None:
    async with running() as it:
        for _ in range(200):
            it.fail()
            await asyncio.sleep(1)
        times = [round(asked.time) for asked in it.script.requests(patches)]
        assert times == [5, 15, 35, 75, 155]
        event = await it.event()
        assert event.series is not None
        assert event.series.count in (155, 156)


async def test_events_differ_by_object_reason_type_action_and_message() -> None:
    async with running() as it:
        for _ in range(2):
            it.fail()
            it.fail(regarding=widget("b"))
            it.fail(regarding=widget(uid="2"))
            it.fail(reason="Refused")
            it.fail("other words")
            it.recorder.record(widget(), reason="Failed", message="no room")
            it.recorder.record(widget(), type="Warning", reason="Failed", message="no room", action="Scale")
            await asyncio.sleep(10)
        events = await it.events()
    assert [event.series.count if event.series else 1 for event in events] == [2] * 7


async def test_a_new_version_of_the_object_does_not_make_the_event_new() -> None:
    async with running() as it:
        for version in range(5):
            regarding = Reference(
                api_version="v1", kind="Pod", namespace="default", name="a", resource_version=str(version)
            )
            it.fail(regarding=regarding)
            await asyncio.sleep(10)
        event = await it.event()
        assert event.series is not None
        assert event.series.count == 5


async def test_after_six_idle_minutes_an_event_is_new() -> None:
    async with running() as it:
        it.fail()
        await asyncio.sleep(359)
        it.fail()
        await asyncio.sleep(361)
        it.fail()
        await asyncio.sleep(1)
        counts = [event.series.count if event.series else 1 for event in await it.events()]
    assert sorted(counts) == [1, 2]


async def test_an_expired_series_is_dropped() -> None:
    async with running() as it:
        for number in range(50):
            it.fail(regarding=widget(f"w{number}"))
        await asyncio.sleep(361)
        assert it.recorder.stats().series == 0


async def test_an_event_that_the_server_has_deleted_is_created_again_with_its_count() -> None:
    async with running() as it:
        for _ in range(3):
            it.fail()
            await asyncio.sleep(6)
        first = await it.event()
        await it.client.delete(first)
        for _ in range(20):
            it.fail()
            await asyncio.sleep(6)
        second = await it.event()
        assert second.uid != first.uid
        assert second.series is not None
        assert second.series.count > 10


async def test_stored_series_are_bounded_and_lost_counts_are_counted_as_dropped() -> None:
    limits = EventLimits(series=5, total_burst=1000)
    async with running(limits) as it:
        for number in range(20):
            regarding = widget(f"w{number}")
            it.fail(regarding=regarding)
            await asyncio.sleep(0.1)
            it.fail(regarding=regarding)
        stats = it.recorder.stats()
        assert stats.series == 5
        assert stats.dropped_limit == 15


# Trouble


async def test_a_write_with_a_temporary_error_is_retried_and_written_once() -> None:
    async with running() as it:
        it.script.add(creates, status_response(500), times=2)
        it.fail()
        await asyncio.sleep(60)
        assert (await it.event()).note == "no room"
        assert len(it.script.requests(creates)) == 3


async def test_a_lost_response_creates_no_second_event() -> None:
    async with running() as it:
        it.script.add(creates, connection_reset(), times=1)
        it.fail()
        await asyncio.sleep(60)
        event = await it.event()
        assert event.series is None
        it.fail()
        await asyncio.sleep(60)
        event = await it.event()
        assert event.series is not None
        assert event.series.count == 2


async def test_an_unreachable_server_costs_a_few_attempts_and_the_drop_is_counted() -> None:
    async with running() as it:
        with it.script.active(writes, connection_refused()):
            it.fail()
            await asyncio.sleep(200)
        assert it.recorder.stats().dropped_failed == 1
        times = [asked.time for asked in it.script.requests(creates)]
        assert len(times) == it.recorder.limits.attempts
        pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert all(2**n <= pause <= 1.5 * 2**n + 0.1 for n, pause in enumerate(pauses)), pauses
        it.fail()
        await asyncio.sleep(10)
        assert (await it.event()).series is None


async def test_retry_after_is_respected() -> None:
    async with running() as it:
        busy = status_response(429, reason="TooManyRequests", details={"retryAfterSeconds": 30})
        it.script.add(creates, busy, times=1)
        it.fail()
        await asyncio.sleep(100)
        first, second = (asked.time for asked in it.script.requests(creates))
        assert second - first >= 30
        assert (await it.event()).note == "no room"


async def test_a_rejected_event_is_dropped_at_once_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as it:
        with it.script.active(writes, forbidden("create events.events.k8s.io")):
            for number in range(20):
                it.fail(regarding=widget(f"w{number}"))
            await asyncio.sleep(100)
        assert it.recorder.stats().dropped_failed == 20
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    fields = vars(record)
    assert record.getMessage() == "event dropped"
    assert (fields["kind"], fields["key"]) == ("Widget", "default/w0")
    assert fields["reason"] == "Failed"
    assert "create" in fields["error"]


async def test_a_dropped_event_is_logged_at_most_every_five_minutes(caplog: pytest.LogCaptureFixture) -> None:
    logged: list[float] = []
    async with running() as it:
        with it.script.active(writes, forbidden("create events.events.k8s.io")):
            for number in range(61):
                it.fail(regarding=widget(f"w{number}"))
                await asyncio.sleep(0.5)
                if len(caplog.records) > len(logged):
                    logged.append(number * 10.0)
                await asyncio.sleep(9.5)
    assert logged == [0.0, 300.0, 600.0]


class BrokenClient(Client):
    """Fails with an error of its own, not with one of the server."""

    async def create(self, *args: Any, **options: Any) -> Any:
        raise ZeroDivisionError("a bug")


async def test_a_bug_for_one_event_is_logged_and_counted_and_stops_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = BrokenClient(InProcessTransport(EmbeddedServer(seed=1).handle))
    recorder = EventRecorder(client, controller="widgets", random=Random(1))
    task = asyncio.create_task(recorder.run())
    await asyncio.sleep(0)
    for name in ("a", "b"):
        recorder.record(widget(name), reason="Made", message="is there")
    await asyncio.sleep(10)
    recorder.close(0)
    await task
    assert recorder.stats().dropped_failed == 2
    first, *_ = [record for record in caplog.records if record.exc_info]
    fields = vars(first)
    assert (first.levelname, first.getMessage()) == ("ERROR", "event write failed")
    assert (fields["kind"], fields["key"], fields["reason"]) == ("Widget", "default/a", "Made")


async def test_a_name_that_another_event_has_is_replaced() -> None:
    async with running() as it:
        it.script.add(creates, status_response(409, reason="AlreadyExists"), times=1)
        it.fail()
        await asyncio.sleep(60)
        assert (await it.event()).note == "no room"
        first, second = it.script.requests(creates)
        assert 1.0 <= second.time - first.time <= 1.6
        stats = it.recorder.stats()
        assert (stats.creates, stats.written, stats.dropped) == (1, 1, 0)


async def test_at_the_end_new_events_are_sent_before_counts_and_each_write_once() -> None:
    it = rig()
    task = asyncio.create_task(it.recorder.run())
    await asyncio.sleep(0)
    it.fail()
    await asyncio.sleep(1)
    it.fail()  # its count would be written in four seconds
    it.fail(regarding=widget("new"))
    it.recorder.close(5)
    await task
    methods = [asked.method for asked in it.script.requests(writes)]
    assert methods == ["POST", "POST", "PATCH"]
    assert_every_event_is_counted(it)
    assert it.recorder.stats().written == 3


async def test_at_the_end_a_write_that_fails_is_not_retried() -> None:
    it = rig()
    task = asyncio.create_task(it.recorder.run())
    await asyncio.sleep(0)
    with it.script.active(writes, status_response(500)):
        it.fail()
        it.recorder.close(60)
        await task
    assert len(it.script.requests(writes)) == 1
    assert it.recorder.stats().dropped_failed == 1
    assert asyncio.get_running_loop().time() < 5


async def test_a_count_waits_for_its_heartbeat_and_the_first_after_a_pause_is_written_at_once() -> None:
    async with running(EventLimits(heartbeat=10.0, max_heartbeat=15.0)) as it:
        it.fail()
        await asyncio.sleep(1)
        for second in (0, 30, 31, 60):
            await asyncio.sleep(max(0.0, second - asyncio.get_running_loop().time()))
            it.fail()
        await asyncio.sleep(100)
        times = [round(asked.time) for asked in it.script.requests(patches)]
    assert times == [10, 30, 45, 60]


async def test_every_number_of_the_recorder_is_known() -> None:
    async with running() as it:
        for _ in range(3):
            it.fail()
        it.fail(regarding=widget("b"))
        await asyncio.sleep(1)
        assert it.recorder.stats() == EventStats(
            recorded=4, written=4, pending=0, dropped_limit=0, dropped_queue=0, dropped_failed=0, dropped_stopped=0,
            creates=2, patches=0, series=2,
        )  # fmt: skip
        it.fail()
        assert it.recorder.stats().pending == 1
        await asyncio.sleep(10)
        assert it.recorder.stats() == EventStats(
            recorded=5, written=5, pending=0, dropped_limit=0, dropped_queue=0, dropped_failed=0, dropped_stopped=0,
            creates=2, patches=1, series=2,
        )  # fmt: skip


async def test_an_event_has_the_instance_and_by_default_its_reason_as_its_action() -> None:
    it = rig(instance="pod-" + "x" * 200)
    it.recorder.record(widget(), reason="Made", message="is there")
    it.recorder.close()
    await it.recorder.run()
    event = await it.event()
    assert event.action == "Made"
    assert event.reporting_instance == "pod-" + "x" * 121 + "..."


async def test_by_default_the_end_waits_five_seconds() -> None:
    it = rig()
    it.script.add(creates, stream_paused())
    it.fail()
    task = asyncio.create_task(it.recorder.run())
    await asyncio.sleep(1)
    it.recorder.close()
    await asyncio.sleep(4.9)
    assert not task.done()
    await asyncio.sleep(0.2)
    assert task.done()
    it.script.clear()


async def test_the_inbox_holds_as_many_events_as_the_queue() -> None:
    it = rig(EventLimits(queue=3))
    for number in range(5):
        it.fail(regarding=widget(f"w{number}"))
    stats = it.recorder.stats()
    assert (stats.recorded, stats.pending, stats.dropped_queue) == (5, 3, 2)


async def test_an_event_in_a_namespace_that_is_gone_is_dropped() -> None:
    async with running() as it:
        it.fail(regarding=widget("a", namespace="gone"))
        await asyncio.sleep(10)
        assert it.recorder.stats().dropped_failed == 1


async def test_events_beyond_the_queue_are_dropped_and_counted() -> None:
    async with running(EventLimits(queue=10, total_burst=1000)) as it:
        it.script.add(creates, stream_paused())
        for number in range(50):
            it.fail(regarding=widget(f"w{number}"))
        assert it.recorder.stats().dropped_queue == 40
        it.script.clear()


# Threads, and the end


async def test_events_of_other_threads_arrive() -> None:
    async with running() as it:

        def fail_often() -> None:
            for _ in range(500):
                it.fail()

        await asyncio.to_thread(fail_often)
        await asyncio.sleep(6)
        event = await it.event()
        assert event.series is not None
        assert event.series.count == 500


async def test_events_recorded_before_the_start_are_sent_after_it() -> None:
    it = rig()
    it.fail()
    async with asyncio.TaskGroup() as group:
        group.create_task(it.recorder.run())
        await asyncio.sleep(1)
        assert (await it.event()).note == "no room"
        it.recorder.close()


async def test_pending_events_are_sent_before_the_end() -> None:
    async with running(grace=5) as it:
        for _ in range(7):
            it.fail()
        await asyncio.sleep(1)
        for _ in range(4):
            it.fail()
        it.fail(regarding=widget("late"))
    counts = Counter(event.series.count if event.series else 1 for event in await it.events())
    assert counts == {11: 1, 1: 1}
    assert it.recorder.stats().pending == 0


async def test_the_recorder_ends_within_its_grace_period_whatever_the_server_does() -> None:
    async with running(grace=5) as it:
        it.script.add(writes, stream_paused())
        for number in range(10):
            it.fail(regarding=widget(f"w{number}"))
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began == pytest.approx(5)
    assert it.recorder.stats().dropped_stopped == 10


async def test_the_grace_period_can_be_shortened() -> None:
    async with running(grace=0) as it:
        it.script.add(writes, stream_paused())
        it.fail()
        await asyncio.sleep(1)
        it.recorder.close(1000)
        await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() == began
    it.recorder.close()


async def test_after_the_end_events_are_dropped_and_counted() -> None:
    async with running() as it:
        pass
    it.fail()
    assert it.recorder.stats().dropped_stopped == 1


async def test_a_cancelled_recorder_counts_dropped_events() -> None:
    it = rig()
    task = asyncio.create_task(it.recorder.run())
    await asyncio.sleep(1)
    it.fail()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert_every_event_is_counted(it)
    assert it.recorder.stats().dropped_stopped == 1


async def test_a_recorder_closed_before_it_runs_sends_its_events_and_ends() -> None:
    it = rig()
    it.fail()
    it.recorder.close(5)
    await it.recorder.run()
    assert (await it.event()).note == "no room"


@pytest.mark.parametrize("name", ["object_burst", "total_burst", "messages", "queue", "series", "attempts"])
def test_numbers_are_one_or_more(name: str) -> None:
    assert getattr(EventLimits(**{name: 1}), name) == 1
    for wrong in (0, -1, 1.5, "1", None):
        with pytest.raises(ValueError, match=f"^{name} is a number of 1 or more, got {wrong!r}$"):
            EventLimits(**{name: wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["object_interval", "total_interval", "window", "heartbeat", "max_heartbeat", "timeout"]
)
def test_durations_are_finite_and_greater_than_zero(name: str) -> None:
    for right in (0.001, 1, 1e9):
        assert getattr(EventLimits(**{name: right}), name) == right  # type: ignore[arg-type]
    for wrong in (0, -1.0, float("inf"), float("nan"), "1", None):
        with pytest.raises(ValueError, match=f"^{name} is a number of seconds greater than 0, got {wrong!r}$"):
            EventLimits(**{name: wrong})  # type: ignore[arg-type]


# The date


async def test_events_of_a_simulated_day_have_the_date_of_that_day() -> None:
    async with running() as it:
        begin = MicroTime.now()
        await asyncio.sleep(86_400)
        it.fail()
        await asyncio.sleep(10)
        it.fail()
        await asyncio.sleep(FIVE_MINUTES)
        event = await it.event()
    assert event.event_time == begin + timedelta(days=1)
    assert event.series is not None
    assert event.series.last_observed_time == begin + timedelta(days=1, seconds=10)
    created = event.metadata.creation_timestamp
    assert created is not None
    assert abs(created - event.event_time) <= timedelta(seconds=1)


async def test_an_event_of_another_thread_has_the_date_of_the_loop_that_sends_it() -> None:
    async with running() as it:
        await asyncio.sleep(86_400)
        await asyncio.to_thread(it.fail)
        moment = MicroTime.now()
        await asyncio.sleep(1)
        assert (await it.event()).event_time == moment
