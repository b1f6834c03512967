"""The reflector with a scripted source: each timeout at its exact value, each error as a whole, each number."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from random import Random
from typing import Any

import pytest

from konverge.cache.backoff import Stagger
from konverge.cache.options import ReflectorOptions
from konverge.cache.reflector import Reflector
from konverge.cache.reflector_stats import ReflectorState, ReflectorStats
from konverge.errors import (
    Cause,
    Expired,
    Forbidden,
    KonvergeError,
    NotFound,
    ServerError,
    TooManyRequests,
    TransportError,
)
from konverge.wire.list_watch import Selection
from konverge.wire.messages import BufferedResponse
from konverge.wire.options import ListOptions, WatchOptions
from recording_sink import RecordingSink
from reflector_harness import running

PAGES = Selection(streaming=False)
FOREVER = 1e6


def now() -> float:
    return asyncio.get_running_loop().time()


def obj(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": str(version)}}


def frame(type_: str, name: str, version: int) -> bytes:
    return json.dumps({"type": type_, "object": obj(name, version)}).encode() + b"\n"


def bookmark(version: int, *, end: bool = False) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return json.dumps({"type": "BOOKMARK", "object": {"metadata": metadata}}).encode() + b"\n"


def page(*names: str, version: int = 10, token: str = "") -> bytes:
    items = [obj(name, place + 1) for place, name in enumerate(names)]
    return json.dumps({"metadata": {"resourceVersion": str(version), "continue": token}, "items": items}).encode()


Sent = list[tuple[str, float]]
Step = float | bytes | Exception
"""A step of a stream: seconds to wait, data, or an error."""


class Stream(BufferedResponse):
    """A response whose body is a script; it ends after the last step."""

    def __init__(self, *steps: Step) -> None:
        super().__init__(200)
        self._steps = steps

    async def chunks(self) -> AsyncIterator[bytes]:
        for step in self._steps:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, bytes):
                yield step
            else:
                await asyncio.sleep(step)


SILENT = Stream(FOREVER)


class Scripted:
    """A source that answers with a script: lists and watches, one after the other. What is missing never answers."""

    def __init__(self, *, lists: Sequence[Step] = (), watches: Sequence[Stream | Exception | float] = ()) -> None:
        self._lists, self._watches = list(lists), list(watches)
        self.requests: list[tuple[str, float, ListOptions | WatchOptions]] = []

    async def list(self, options: ListOptions) -> bytes:
        self.requests.append(("probe" if options.resource_version_match else "list", now(), options))
        while self._lists:
            step = self._lists.pop(0)
            if isinstance(step, Exception):
                raise step
            if isinstance(step, bytes):
                return step
            await asyncio.sleep(step)
        await asyncio.sleep(FOREVER)
        raise AssertionError("unreachable")

    async def watch(self, options: WatchOptions) -> Stream:
        self.requests.append(("watch", now(), options))
        while self._watches:
            step = self._watches.pop(0)
            if isinstance(step, Exception):
                raise step
            if isinstance(step, Stream):
                return step
            await asyncio.sleep(step)
        await asyncio.sleep(FOREVER)
        raise AssertionError("unreachable")

    @property
    def sent(self) -> Sent:
        return [(what, round(time, 3)) for what, time, _ in self.requests]


def reflector_of(source: Any, sink: RecordingSink | None = None, **options: Any) -> Reflector:
    reflector_options = ReflectorOptions(**options)
    sink = RecordingSink() if sink is None else sink
    return Reflector(source, sink, kind="Widget", selection=PAGES, options=reflector_options, random=Random(1))


def streaming(source: Any, sink: RecordingSink | None = None) -> Reflector:
    return Reflector(source, RecordingSink() if sink is None else sink, kind="Widget", random=Random(1))


async def error_after(seconds: float, reflector: Reflector) -> str:
    async with running(reflector):
        await asyncio.sleep(seconds)
        return str(reflector.error)


# Lists


async def test_initial_events_may_be_idle_for_thirty_seconds() -> None:
    source = Scripted(watches=[5.0, Stream(29.9, frame("ADDED", "a", 1), FOREVER)])
    async with running(streaming(source)):
        await asyncio.sleep(100)
    assert source.sent[:2] == [("watch", 0), ("list", 5 + 29.9 + 30)]


async def test_initial_events_may_take_ten_times_as_long_in_all() -> None:
    steps = [step for number in range(100) for step in (20.0, frame("ADDED", f"a{number}", 1))]
    source = Scripted(watches=[5.0, Stream(*steps)])
    async with running(streaming(source)):
        await asyncio.sleep(1000)
    assert source.sent[:2] == [("watch", 0), ("list", 305)]


async def test_a_list_by_a_stream_becomes_a_watch_without_another_request() -> None:
    sink = RecordingSink()
    source = Scripted(watches=[Stream(frame("ADDED", "a", 1), bookmark(10, end=True), 40.0, frame("ADDED", "b", 11))])
    reflector = streaming(source, sink)
    async with running(reflector):
        await asyncio.sleep(39)
        assert (sink.names(), sink.swaps, reflector.state) == (["a"], ["10"], ReflectorState.WATCHING)
        assert (reflector.stats().events, reflector.stats().lists, reflector.watch_count) == (0, 1, 1)
        await asyncio.sleep(0.9)
        assert source.sent == [("watch", 0)]


async def test_the_time_that_the_sink_needs_is_not_idle_time() -> None:
    class Slow(RecordingSink):
        async def swap(self, resource_version: str) -> None:
            await asyncio.sleep(100)
            await super().swap(resource_version)

    sink = Slow()
    source = Scripted(watches=[Stream(bookmark(10, end=True), 40.0, frame("ADDED", "b", 11), FOREVER)])
    async with running(streaming(source, sink)):
        await asyncio.sleep(144)
        assert (sink.names(), source.sent) == (["b"], [("watch", 0)])


async def test_a_page_without_an_answer_fails_after_the_idle_timeout() -> None:
    source = Scripted(lists=[50.0])
    reflector = reflector_of(source)
    assert await error_after(44.9, reflector) == "None"
    assert await error_after(45.1, reflector_of(Scripted(lists=[50.0]))) == "list Widget: no response within 45 s"


async def test_a_list_in_one_response_may_take_any_time() -> None:
    source = Scripted(lists=[Expired("x"), Expired("x"), 1000.0, page("a")], watches=[SILENT])
    sink = RecordingSink()
    async with running(reflector_of(source, sink)):
        await asyncio.sleep(1010)
    limits = [request.limit for _, _, request in source.requests if isinstance(request, ListOptions)]
    assert limits[:3] == [500, 500, 0]
    assert sink.names() == ["a"]


async def test_pages_are_requested_one_after_the_other_and_count_as_one_list() -> None:
    source = Scripted(lists=[page("a", token="t"), page("b", token="u"), page("c")], watches=[SILENT])
    reflector = reflector_of(source)
    async with running(reflector):
        await asyncio.sleep(1)
        stats = reflector.stats()
    assert (stats.lists, stats.pages, stats.watches) == (1, 3, 1)
    assert source.sent == [("list", 0), ("list", 0), ("list", 0), ("watch", 0)]


# Watches


async def test_an_idle_watch_is_opened_again_after_45_seconds_from_the_last_data() -> None:
    source = Scripted(lists=[page()], watches=[Stream(10.0, frame("ADDED", "a", 11), FOREVER), SILENT])
    reflector = reflector_of(source)
    async with running(reflector):
        await asyncio.sleep(56)
        assert source.sent == [("list", 0), ("watch", 0), ("watch", 55)]
        assert reflector.error is None
    watches = [request for _, _, request in source.requests if isinstance(request, WatchOptions)]
    assert [one.resource_version for one in watches] == ["10", "11"]
    timeouts = [one.timeout or 0 for one in watches]
    assert [300 <= timeout <= 600 for timeout in timeouts] == [True, True], "an event came"


async def test_the_second_watch_without_data_is_short_and_a_failure_if_it_does_not_end() -> None:
    source = Scripted(lists=[page(), page()], watches=[SILENT, SILENT])
    reflector = reflector_of(source)
    async with running(reflector):
        await asyncio.sleep(46)
        assert source.sent == [("list", 0), ("watch", 0), ("probe", 45), ("watch", 45.25)]
        await asyncio.sleep(45)
        assert str(reflector.error) == "watch Widget: stalled, no data and no end within 45 s"
    timeouts = [one.timeout or 0 for _, _, one in source.requests if isinstance(one, WatchOptions)]
    assert 300 <= timeouts[0] <= 600
    assert 0.8 * 45 <= timeouts[1] <= 0.9 * 45


async def test_a_stalled_watch_recovers_with_data_and_not_by_being_open() -> None:
    lists = [page()] * 4
    source = Scripted(lists=lists, watches=[SILENT, SILENT, Stream(20.0, frame("ADDED", "a", 11), FOREVER)])
    reflector = reflector_of(source)
    async with running(reflector):
        await asyncio.sleep(110)
        assert source.sent[-1][0] == "watch"
        assert reflector.stats().error is not None, "it is open for more than 4 s"
        await asyncio.sleep(10)
        assert reflector.stats().error is None
        assert reflector.stats().events == 1


@pytest.mark.parametrize(("seconds", "failed"), [(3.9, True), (4.0, False)])
async def test_a_watch_that_ends_within_four_seconds_is_a_failure(seconds: float, failed: bool) -> None:
    source = Scripted(lists=[page()], watches=[Stream(seconds), SILENT])
    reflector = reflector_of(source)
    async with running(reflector):
        await asyncio.sleep(seconds + 0.1)
        text = f"watch Widget: the stream was closed {seconds} s after it was opened"
        assert str(reflector.error) == (text if failed else "None")
        assert isinstance(reflector.error, TransportError) is failed


async def test_a_watch_that_is_open_for_four_seconds_ends_the_backoff() -> None:
    refused = TransportError("refused")
    source = Scripted(lists=[refused, refused, page()], watches=[5.0, SILENT])
    reflector, recovered = reflector_of(source), list[float]()
    async with running(reflector):
        await asyncio.sleep(0.5)
        assert reflector.stats().error_age == 0.5
        reflector.on_change = lambda: recovered.append(now()) if reflector.error is None else None
        await asyncio.sleep(20)
        assert (reflector.stats().error_age, reflector.stats().failures) == (None, 2)
    opened = next(time for what, time, _ in source.requests if what == "watch") + 5.0
    assert recovered[0] == pytest.approx(opened + 4.0)


async def test_a_source_that_cannot_stall_has_no_idle_timeout() -> None:
    class Local(Scripted):
        can_stall = False

    source = Local(lists=[page()], watches=[Stream(1e5, frame("ADDED", "a", 11), FOREVER)])
    sink = RecordingSink()
    async with running(reflector_of(source, sink)):
        await asyncio.sleep(2e5)
    assert (sink.names(), source.sent) == (["a"], [("list", 0), ("watch", 0)])


@pytest.mark.parametrize("where", ["list", "watch", "stream"])
async def test_a_timeout_of_the_source_itself_is_an_error_of_the_source(where: str) -> None:
    own = TimeoutError("own")
    source = {
        "list": Scripted(lists=[own]),
        "watch": Scripted(lists=[page()], watches=[own]),
        "stream": Scripted(lists=[page()], watches=[Stream(own)]),
    }[where]
    assert await error_after(0.1, reflector_of(source)) == "watch Widget: TimeoutError: own"


async def test_a_stream_that_ends_in_the_middle_of_a_frame_is_an_error() -> None:
    source = Scripted(lists=[page()], watches=[Stream(10.0, b'{"type":')])
    text = "the watch stream ended in the middle of a frame, after 8 bytes"
    assert await error_after(10.1, reflector_of(source)) == text


async def test_an_error_without_a_kind_has_none() -> None:
    reflector = Reflector(Scripted(), RecordingSink(), random=Random(1))
    assert await error_after(46, reflector) == "watch : no response within 45 s"


# Failures


async def test_an_expired_version_is_a_failure_only_if_it_is_repeated(caplog: pytest.LogCaptureFixture) -> None:
    again = Expired("again")
    source = Scripted(lists=[page(), page(), page()], watches=[Expired("first"), again])
    reflector = reflector_of(source)
    async with running(reflector):
        await asyncio.sleep(0.5)
        assert (reflector.error, reflector.stats().failures) == (None, 1)
        assert caplog.messages == []
        await asyncio.sleep(3)
        assert (reflector.error, reflector.stats().failures) == (again, 2)
        assert [(one.message, vars(one)["error"]) for one in caplog.records] == [("watch failed", "again")]


async def test_an_error_is_logged_when_its_type_changes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "konverge.cache")
    errors = [TransportError("one"), TransportError("two"), ServerError("three"), TransportError("four")]
    reflector = reflector_of(Scripted(lists=errors))
    async with running(reflector):
        await asyncio.sleep(30)
        assert reflector.error is errors[-1]
    assert [vars(one)["error"] for one in caplog.records] == ["one", "three", "four"]


@pytest.mark.parametrize("type_", [TooManyRequests, ServerError])
async def test_the_retry_after_of_the_server_delays_the_next_request(type_: Any) -> None:
    error = type_("busy")
    error.retry_after = 20.0
    source = Scripted(lists=[error, page()], watches=[SILENT])
    async with running(reflector_of(source)):
        await asyncio.sleep(30)
    assert source.sent == [("list", 0), ("list", 20), ("watch", 21)]


async def test_retries_wait_for_their_turn_and_the_first_request_does_not() -> None:
    stagger = Stagger(interval=30.0, max_total=1000.0)
    await stagger.wait()
    source = Scripted(lists=[NotFound("x"), page(), page()], watches=[Stream(10.0), SILENT])
    reflector = Reflector(source, RecordingSink(), selection=PAGES, stagger=stagger, random=Random(1))
    async with running(reflector):
        await asyncio.sleep(100)
    assert source.sent == [("list", 0), ("list", 30), ("watch", 31), ("probe", 60), ("watch", 90)]


async def test_a_reflector_counts_among_the_members_of_its_stagger_while_it_runs() -> None:
    stagger = Stagger()
    async with running(Reflector(Scripted(), RecordingSink(), stagger=stagger)):
        await asyncio.sleep(1)
        assert stagger._members == 1
    assert stagger._members == 0


# The history of the server


@pytest.mark.parametrize(("seconds", "asked"), [(45 / 8 - 0.01, False), (45 / 8, True)])
async def test_a_watch_without_data_is_a_reason_to_ask_if_it_lasted_an_eighth_of_the_timeout(
    seconds: float, asked: bool
) -> None:
    source = Scripted(lists=[page(), page()], watches=[Stream(seconds), SILENT])
    async with running(reflector_of(source)):
        await asyncio.sleep(20)
    assert (("probe", round(seconds, 3)) in source.sent) is asked


@pytest.mark.parametrize("data", [frame("ADDED", "a", 11), bookmark(11)])
async def test_a_watch_with_data_is_no_reason_to_ask(data: bytes) -> None:
    source = Scripted(lists=[page(), page()], watches=[Stream(data, 20.0), SILENT])
    async with running(reflector_of(source)):
        await asyncio.sleep(25)
    assert source.sent == [("list", 0), ("watch", 0), ("watch", 20)]


def too_large(current: int) -> ServerError:
    text = f"Too large resource version: 10, current: {current}"
    return ServerError(text, status=504, causes=(Cause("", "ResourceVersionTooLarge", ""),))


async def test_a_restarted_history_is_listed_again_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    source = Scripted(lists=[page("a"), *[too_large(5)] * 4, page("b", version=3)], watches=[Stream(10.0), SILENT])
    sink = RecordingSink()
    async with running(reflector_of(source, sink)):
        await asyncio.sleep(60)
    assert (sink.restarts, sink.names(), sink.swaps) == (1, ["b"], ["10", "3"])
    assert [what for what, _ in source.sent] == ["list", "watch", *["probe"] * 4, "list", "watch"]
    (record,) = [one for one in caplog.records if "history" in one.message]
    assert (record.levelname, record.message) == ("WARNING", "server history restarted: listing again")
    assert (vars(record)["kind"], vars(record)["version"]) == ("Widget", "10")


@pytest.mark.parametrize("error", [ServerError("x"), TransportError("x"), TooManyRequests("x")])
async def test_a_question_that_fails_is_a_failure_and_is_asked_again(error: KonvergeError) -> None:
    source = Scripted(lists=[page(), error, page()], watches=[Stream(10.0), SILENT])
    reflector = reflector_of(source)
    async with running(reflector):
        await asyncio.sleep(10.5)
        assert reflector.error is error
        await asyncio.sleep(5)
        assert [what for what, _ in source.sent] == ["list", "watch", "probe", "probe", "watch"]


async def test_a_question_that_is_not_allowed_is_not_asked_again() -> None:
    source = Scripted(lists=[page(), Forbidden("x")], watches=[Stream(10.0), SILENT])
    reflector = reflector_of(source)
    async with running(reflector):
        await asyncio.sleep(12)
        assert (reflector.error, reflector.stats().failures) == (None, 0)
    assert source.sent == [("list", 0), ("watch", 0), ("probe", 10), ("watch", 10.25)]


async def test_a_question_without_an_answer_fails_after_the_idle_timeout() -> None:
    source = Scripted(lists=[page(), FOREVER], watches=[Stream(10.0), SILENT])
    assert await error_after(55.5, reflector_of(source)) == "list Widget: no response within 45 s"


async def test_a_list_that_the_sink_rejects_is_a_reason_to_ask() -> None:
    class Rejecting(RecordingSink):
        async def swap(self, resource_version: str) -> None:
            if len(self.swaps) == 1:
                self.swaps.append("10")
                raise Expired("older")
            await super().swap(resource_version)

    source = Scripted(lists=[page(), page(version=5), page(), page()], watches=[Expired("x"), SILENT])
    reflector = reflector_of(source, Rejecting())
    async with running(reflector):
        await asyncio.sleep(8)
    assert [what for what, _ in source.sent] == ["list", "watch", "list", "probe", "list", "watch"]


# Numbers


async def test_the_stats_of_a_reflector_as_a_whole() -> None:
    source = Scripted(
        lists=[page("a", token="t"), page("b")],
        watches=[2.0, Stream(3.0, frame("ADDED", "c", 11), frame("DELETED", "c", 12), 1.0, bookmark(13), FOREVER)],
    )
    reflector = reflector_of(source)
    idle = ReflectorStats(
        state=ReflectorState.IDLE,
        state_age=0.0,
        synced=False,
        error=None,
        error_age=None,
        idle_time=0.0,
        bookmark_age=None,
        resource_version="",
        streaming=False,
        lists=0,
        pages=0,
        watches=0,
        events=0,
        bookmarks=0,
        failures=0,
    )
    assert reflector.stats() == idle
    async with running(reflector):
        await asyncio.sleep(16)
        assert reflector.stats() == ReflectorStats(
            state=ReflectorState.WATCHING,
            state_age=14.0,
            synced=True,
            error=None,
            error_age=None,
            idle_time=10.0,
            bookmark_age=10.0,
            resource_version="13",
            streaming=False,
            lists=1,
            pages=2,
            watches=1,
            events=2,
            bookmarks=1,
            failures=0,
        )
        assert (reflector.now(), reflector.watch_count) == (16.0, 1)
    assert reflector.state is ReflectorState.STOPPED


async def test_the_states_of_a_reflector_in_order() -> None:
    source = Scripted(lists=[page(), page()], watches=[Stream(10.0), TransportError("x"), SILENT])
    reflector, states = reflector_of(source), list[ReflectorState]()
    reflector.on_change = lambda: states.append(reflector.state)
    async with running(reflector):
        await asyncio.sleep(20)
    unique = [one for place, one in enumerate(states) if place == 0 or states[place - 1] is not one]
    assert unique == [
        ReflectorState.LISTING,
        ReflectorState.OPENING,
        ReflectorState.WATCHING,
        ReflectorState.OPENING,
        ReflectorState.WAITING,
        ReflectorState.OPENING,
        ReflectorState.WATCHING,
        ReflectorState.STOPPED,
    ]
