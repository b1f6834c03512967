"""The list/watch state machine without an event loop: responses in, changes and the next request out."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.errors import (
    ApiError,
    DecodeError,
    Expired,
    Forbidden,
    Invalid,
    KonvergeError,
    NotFound,
    ServerError,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from konverge.wire.frames import INITIAL_EVENTS_END, FrameReader
from konverge.wire.list_watch import (
    Change,
    List,
    ListWatchState,
    Progress,
    Put,
    Remove,
    Reset,
    Selection,
    Stage,
    Synced,
    Watch,
)
from model_collection import ModelCollection, bookmark, frame, status_frame
from recording_sink import RecordingSink

PASSING = [
    TransportError("cut"),
    DecodeError("garbage"),
    ServerError("down", status=503),
    TooManyRequests("slow down", status=429),
]
REFUSALS = [
    Forbidden("may not", status=403),
    Unauthorized("who are you", status=401),
    NotFound("no such collection", status=404),
]


def an_object(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def page(*names: str, version: str = "7", token: str = "") -> bytes:
    items = [an_object(name, 1) for name in names]
    return json.dumps({"metadata": {"resourceVersion": version, "continue": token}, "items": items}).encode()


def fed(state: ListWatchState, data: bytes) -> list[Change]:
    """Give all that the frames change; what they put and remove counts as stored."""
    changes = [change for each in FrameReader().feed(data) if (change := state.handle_frame(each)) is not None]
    for change in changes:
        if isinstance(change, Put | Remove):
            state.confirm(json.loads(change.raw)["metadata"]["resourceVersion"])
    return changes


def paging(**options: Any) -> ListWatchState:
    return ListWatchState(Selection(**options, streaming=False), kind="Widget")


def watching(version: str = "7") -> ListWatchState:
    state = paging()
    list(state.handle_page(page(version=version)))
    assert state.stage is Stage.WATCH
    return state


def list_options(state: ListWatchState) -> Any:
    question = state.next_request()
    assert isinstance(question, List)
    return question.options


def watch_options(state: ListWatchState) -> Any:
    question = state.next_request()
    assert isinstance(question, Watch)
    return question.options


# A list in pages


def test_a_list_in_pages_is_complete_after_the_last_one() -> None:
    state = paging(page_size=2)

    first = list(state.handle_page(page("a", "b", token="next")))
    assert first == [Reset(), *(Put(json.dumps(an_object(name, 1)).encode()) for name in "ab")]
    assert list_options(state).continue_ == "next"
    assert list_options(state).limit == 2

    last = list(state.handle_page(page("c", version="7")))
    assert last[-1] == Synced("7")
    assert Reset() not in last
    assert watch_options(state).resource_version == "7"


def test_selectors_are_part_of_every_question() -> None:
    state = ListWatchState(Selection(label_selector="app=web", field_selector="metadata.name=a"))

    stream = watch_options(state)
    state.handle_timeout()
    listed = list_options(state)
    list(state.handle_page(page()))
    watched = watch_options(state)

    for options in (stream, listed, watched):
        assert (options.label_selector, options.field_selector) == ("app=web", "metadata.name=a")


def test_a_list_of_no_objects_is_complete_too() -> None:
    null_items = b'{"metadata": {"resourceVersion": "7"}, "items": null}'

    assert list(paging().handle_page(null_items)) == [Reset(), Synced("7")]


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
def test_a_page_that_failed_is_asked_for_again(error: KonvergeError) -> None:
    state = paging()
    list(state.handle_page(page("a", token="next")))

    state.handle_error(error)

    assert list_options(state).continue_ == "next"


def test_a_page_that_did_not_come_is_asked_for_half_as_large_until_pages_come_again() -> None:
    state = paging(page_size=500)
    sizes = []
    for _ in range(7):
        sizes.append(list_options(state).limit)
        state.handle_error(TransportError("no answer within 45 s"))
    for token in "abcde":
        sizes.append(list_options(state).limit)
        list(state.handle_page(page("a", token=token)))

    assert sizes == [500, 250, 125, 62, 31, 20, 20, 20, 40, 80, 160, 320]


@pytest.mark.parametrize("error", [*REFUSALS, Invalid("bad token", status=400)], ids=lambda error: type(error).__name__)
def test_a_list_that_was_refused_half_way_starts_again(error: KonvergeError) -> None:
    state = paging()
    list(state.handle_page(page("a", token="next")))

    state.handle_error(error)

    assert list_options(state).continue_ == ""
    assert next(state.handle_page(page("a"))) == Reset()


def test_an_expired_page_starts_the_list_again_in_pages_and_then_in_one_piece() -> None:
    state = paging(page_size=2)
    limits = []
    for _ in range(3):
        limits.append(list_options(state).limit)
        list(state.handle_page(page("a", token="next")))
        state.handle_error(Expired("too old", status=410))
        assert list_options(state).continue_ == ""

    assert limits == [2, 2, 0]


def test_a_complete_list_forgets_that_earlier_ones_expired() -> None:
    state = paging(page_size=2)
    for _ in range(2):
        state.handle_error(Expired("too old", status=410))
    list(state.handle_page(page("a")))
    state.handle_error(Expired("too old", status=410))

    assert list_options(state).limit == 2


def test_a_first_page_read_twice_does_not_keep_what_only_the_first_reading_showed() -> None:
    state = paging()
    half_read = state.handle_page(page("a", "gone", token="next"))
    next(half_read), next(half_read)

    state.handle_error(DecodeError("an object has no name"))

    assert next(iter(state.handle_page(page("a")))) == Reset()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"null",
        b"[]",
        b"{}",
        b'{"metadata": {"resourceVersion": "7"}, "items": {}}',
        b'{"metadata": {"resourceVersion": "7"}}',
        b'{"metadata": {"resourceVersion": "7"}, "items": [' + b"[" * 100_000,
        b'\xff{"metadata"',
    ],
)
def test_an_answer_that_is_no_list_is_a_decode_error_and_the_list_is_asked_for_again(body: bytes) -> None:
    state = paging()

    with pytest.raises(DecodeError) as caught:
        state.handle_page(body)
    state.handle_error(caught.value)

    assert list_options(state).continue_ == ""
    assert list(state.handle_page(page())) == [Reset(), Synced("7")]


@pytest.mark.parametrize("metadata", [b"{}", b'{"resourceVersion": ""}', b'{"resourceVersion": "0"}'])
def test_a_list_without_a_version_counts_and_is_repeated_when_its_watch_ends(metadata: bytes) -> None:
    state = paging()
    body = b'{"metadata": ' + metadata + b', "items": [' + json.dumps(an_object("a", 5)).encode() + b"]}"

    changes = list(state.handle_page(body))
    assert [type(change) for change in changes] == [Reset, Put, Synced]
    assert changes[-1] == Synced("")

    assert watch_options(state).resource_version == ""
    fed(state, frame("ADDED", an_object("a", 5)))
    fed(state, frame("ADDED", an_object("b", 4)))
    assert watch_options(state).resource_version == "", "initial events have no order"
    state.handle_close()
    assert state.stage is Stage.PAGES


def test_after_any_error_a_list_without_a_version_is_repeated() -> None:
    for error in PASSING + REFUSALS:
        state = paging()
        list(state.handle_page(page(version="")))
        state.handle_error(error)
        assert state.stage is Stage.PAGES
        list(state.handle_page(page(version="7")))
        assert watch_options(state).resource_version == "7"


def test_a_list_without_a_version_is_rejected_once_lists_have_versions() -> None:
    state = watching("7")
    state.handle_error(Expired("compacted", status=410))

    with pytest.raises(DecodeError, match="it has no resourceVersion"):
        state.handle_page(page(version=""))

    assert state.stage is Stage.PAGES


def test_a_server_that_sends_the_same_page_for_ever_is_not_followed() -> None:
    state = paging()
    list(state.handle_page(page("a", token="next")))

    with pytest.raises(DecodeError, match="the next page has the same token"):
        state.handle_page(page("a", token="next"))

    assert list_options(state).continue_ == ""


def test_an_object_is_its_own_bytes_and_does_not_hold_the_page() -> None:
    changes = list(paging().handle_page(page("a", "b")))

    assert [type(change.raw) for change in changes if isinstance(change, Put)] == [bytes, bytes]


# A list as a stream


def initial_events_end(version: int = 9) -> bytes:
    return bookmark(version, **{INITIAL_EVENTS_END: "true"})


def test_a_streaming_list_is_asked_for_first_and_is_complete_with_its_bookmark() -> None:
    state = ListWatchState()
    asked = watch_options(state)

    assert asked.send_initial_events
    assert asked.resource_version == ""
    assert state.handle_open() == Reset()
    changes = fed(state, frame("ADDED", an_object("a", 3)) + frame("ADDED", an_object("b", 2)))
    assert all(isinstance(change, Put) for change in changes)
    assert state.resource_version == "", "initial events come in no order: none of their versions counts"
    assert fed(state, initial_events_end(9)) == [Synced("9")]
    assert watch_options(state).resource_version == "9"
    assert not watch_options(state).send_initial_events


def test_changes_go_on_in_the_same_stream_after_the_bookmark() -> None:
    state = ListWatchState()
    state.handle_open()
    fed(state, initial_events_end(9))

    fed(state, frame("MODIFIED", an_object("a", 12)))

    assert state.resource_version == "12"


def test_what_changes_before_the_bookmark_is_part_of_the_list() -> None:
    state = ListWatchState()
    state.handle_open()

    changes = fed(state, frame("ADDED", an_object("a", 3)) + frame("DELETED", an_object("a", 8)))

    assert [type(change) for change in changes] == [Put, Remove]
    assert state.resource_version == ""


def test_an_ordinary_bookmark_does_not_end_the_initial_events() -> None:
    state = ListWatchState()
    state.handle_open()

    assert fed(state, bookmark(8)) == []
    assert state.stage is Stage.STREAM


@pytest.mark.parametrize("status", [400, 422])
def test_a_server_that_refuses_streaming_lists_is_asked_for_pages_from_then_on(status: int) -> None:
    state = ListWatchState()

    state.handle_error(Invalid("sendInitialEvents is forbidden for watch", status=status))

    assert isinstance(state.next_request(), List)
    list(state.handle_page(page()))
    state.handle_error(Expired("too old", status=410))
    assert isinstance(state.next_request(), List), "remembered"
    assert not state.streaming


def test_a_server_that_never_ends_the_initial_events_is_asked_for_pages_from_then_on() -> None:
    state = ListWatchState()
    state.handle_open()
    fed(state, frame("ADDED", an_object("a", 3)))

    state.handle_timeout()

    assert isinstance(state.next_request(), List)
    assert next(iter(state.handle_page(page()))) == Reset()
    assert not state.streaming


def test_a_stream_that_keeps_breaking_off_is_replaced_by_pages_once() -> None:
    state = ListWatchState()
    for _ in range(3):
        assert state.stage is Stage.STREAM
        state.handle_open()
        state.handle_close()

    assert isinstance(state.next_request(), List)
    list(state.handle_page(page()))
    state.handle_error(Expired("too old", status=410))
    assert state.stage is Stage.STREAM, "it broke off, it was not refused"


def test_a_server_that_cannot_be_reached_says_nothing_about_streaming_lists() -> None:
    state = ListWatchState()
    for _ in range(20):
        for error in [*PASSING, *REFUSALS]:
            state.handle_error(error)

    assert state.stage is Stage.STREAM


def test_a_streaming_list_cut_in_the_middle_starts_again() -> None:
    state = ListWatchState()
    state.handle_open()
    fed(state, frame("ADDED", an_object("a", 3)))

    state.handle_error(TransportError("cut"))

    assert state.stage is Stage.STREAM
    assert state.handle_open() == Reset()


# A watch


def test_a_watch_resumes_from_the_last_change() -> None:
    state = watching("7")

    changes = fed(
        state,
        frame("ADDED", an_object("a", 8)) + frame("MODIFIED", an_object("a", 9)) + frame("DELETED", an_object("a", 11)),
    )
    state.handle_close()

    assert [type(change) for change in changes] == [Put, Put, Remove]
    assert watch_options(state).resource_version == "11"
    assert state.handle_open() is None


def test_a_change_that_could_not_be_stored_is_asked_for_again() -> None:
    state = watching("7")
    (read,) = FrameReader().feed(frame("ADDED", an_object("a", 8)))

    state.handle_frame(read)
    state.handle_error(DecodeError("it has no name"))

    assert watch_options(state).resource_version == "7"


def test_a_bookmark_moves_the_version() -> None:
    state = watching("7")

    assert fed(state, bookmark(40)) == [Progress("40")]
    assert watch_options(state).resource_version == "40"


def test_a_bookmark_of_the_same_version_says_that_nothing_is_missing() -> None:
    assert fed(watching("7"), bookmark(7)) == [Progress("7")]


@pytest.mark.parametrize("version", ["", "0", "7", "6", "9"])
def test_the_version_never_moves_back(version: str) -> None:
    state = watching("10")

    assert fed(state, frame("BOOKMARK", {"metadata": {"resourceVersion": version}})) == []
    state.confirm(version)

    assert state.resource_version == "10"


def test_versions_compare_as_numbers() -> None:
    state = watching("99")
    state.confirm("100")

    assert state.resource_version == "100"


def test_versions_that_are_not_numbers_count_as_newer() -> None:
    state = watching("b7")
    state.confirm("a9")

    assert state.resource_version == "a9"


def test_a_watch_bounds_its_time() -> None:
    question = watching().next_request(timeout=312.5)

    assert isinstance(question, Watch)
    assert ("timeoutSeconds", "313") in question.options.query()
    assert ("allowWatchBookmarks", "true") in question.options.query()


@pytest.mark.parametrize(
    "error", [Expired("too old", status=410), NotFound("no such collection", status=404)], ids=["410", "404"]
)
def test_a_compacted_version_leads_to_a_list(error: KonvergeError) -> None:
    state = watching()

    state.handle_error(error)

    assert isinstance(state.next_request(), List)
    assert state.resource_version == ""
    assert next(iter(state.handle_page(page()))) == Reset()


def test_an_expired_version_as_a_frame_is_the_same_as_one_as_a_status() -> None:
    state = watching()

    with pytest.raises(Expired) as caught:
        fed(state, status_frame(410, "Expired"))
    state.handle_error(caught.value)

    assert isinstance(state.next_request(), List)


@pytest.mark.parametrize("error", [*PASSING, *REFUSALS[:2]], ids=lambda error: type(error).__name__)
def test_every_other_failure_keeps_the_version(error: KonvergeError) -> None:
    state = watching("7")

    state.handle_error(error)

    assert watch_options(state).resource_version == "7"


@pytest.mark.parametrize(
    ("code", "class_"), [(500, ServerError), (504, ServerError), (429, TooManyRequests), (403, Forbidden)]
)
def test_an_error_frame_is_the_error_that_it_holds(code: int, class_: type[ApiError]) -> None:
    with pytest.raises(class_) as caught:
        fed(watching(), status_frame(code, retryAfterSeconds=3))

    assert caught.value.status == code
    assert str(caught.value).startswith("watch Widget: ")
    if isinstance(caught.value, ServerError | TooManyRequests):
        assert caught.value.retry_after == 3


def test_a_watch_that_fails_in_the_same_place_again_and_again_leads_to_a_list() -> None:
    state = watching()
    for _ in range(4):
        state.handle_error(DecodeError("garbage"))
    assert isinstance(state.next_request(), Watch)

    state.handle_error(ServerError("invalid version", status=500))

    assert isinstance(state.next_request(), List)


def test_a_watch_that_gets_on_is_never_replaced_by_a_list() -> None:
    state = watching("7")
    for version in range(8, 60):
        state.handle_error(DecodeError("torn"))
        state.confirm(str(version))

    assert watch_options(state).resource_version == "59"


def test_a_server_that_is_overloaded_or_unreachable_gets_no_list_request() -> None:
    state = watching("7")
    for _ in range(100):
        state.handle_error(TooManyRequests("slow down", status=429))
        state.handle_error(TransportError("refused"))
        state.handle_close()

    assert watch_options(state).resource_version == "7"


@pytest.mark.parametrize("type_", ["", "added", "CREATED"])
def test_a_frame_of_another_type_is_a_decode_error(type_: str) -> None:
    with pytest.raises(DecodeError, match="a frame has an unknown type"):
        fed(watching(), frame(type_, an_object("a", 8)))


def test_a_page_size_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0, got 0"):
        Selection(page_size=0)


# Anything at all


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 20) | st.sampled_from(["", "0", "8", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metadata", "resourceVersion", "annotations", "name", "code", "kind", "details"]), inner
        )
    ),
    max_leaves=8,
)
TYPES = st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "", "FOO"])
FRAMES = st.builds(lambda type_, found: json.dumps({"type": type_, "object": found}).encode() + b"\n", TYPES, ANY_JSON)
BYTES = st.lists(FRAMES | st.binary(max_size=20) | st.just(b"\n"), max_size=6).map(b"".join)


@given(st.lists(BYTES, max_size=6), st.booleans())
@settings(max_examples=100, deadline=None)
def test_whatever_a_server_sends_there_is_a_next_request(answers: list[bytes], streaming: bool) -> None:
    state, sink = ListWatchState(Selection(streaming=streaming)), RecordingSink()
    for answer in answers:
        try:
            _take(state, sink, answer, [])
        except KonvergeError as error:
            state.handle_error(error)
        question = state.next_request()
        if isinstance(question, Watch) and not question.options.send_initial_events:
            assert question.options.resource_version not in ("", "0"), "never from now"


# A model of a server


FAULTS = st.one_of(
    st.sampled_from([*PASSING, *REFUSALS, Expired("gone", status=410), ServerError("no", status=500)]),
    st.sampled_from([status_frame(code, retryAfterSeconds=1) for code in (410, 429, 500, 504)]),
    st.sampled_from([b"\0\0\n", b"<html>\n", b"\n\n", b'{"type": "ADDED", "object": {}}\n']),
)
NAMES = st.sampled_from("abcde")
CUTS = st.lists(st.integers(0, 600), max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES),
        st.tuples(st.just("delete"), NAMES),
        st.tuples(st.sampled_from(["elsewhere", "compact", "late"])),
        st.tuples(st.just("ask"), st.none(), st.just(1.0), CUTS),
        st.tuples(st.just("ask"), FAULTS, st.floats(0, 1), CUTS),
    ),
    min_size=3,
    max_size=40,
)


@given(STEPS, st.booleans(), st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_whatever_fails_the_sink_ends_equal_to_the_server(
    steps: list[Any], offers_streaming: bool, page_size: int
) -> None:
    server = ModelCollection(offers_streaming=offers_streaming)
    state, sink = ListWatchState(Selection(page_size=page_size)), RecordingSink()
    for what, *details in steps:
        match what:
            case "ask":
                _ask(server, state, sink, *details)
            case "late":
                state.handle_timeout()
            case _:
                getattr(server, what)(*details)
    for _ in range(20):
        _ask(server, state, sink, None, 1.0, [])

    assert sink.versions() == server.versions()
    _check_events(sink, server)


def _ask(
    server: ModelCollection, state: ListWatchState, sink: RecordingSink, fault: Any, whole: float, cuts: Iterable[int]
) -> None:
    """Ask once, and tell the machine what comes of it: all of the answer, a part of it, or a fault in its place."""
    try:
        if isinstance(fault, KonvergeError):
            raise fault
        answer = server.respond(state.next_request())
        if isinstance(fault, bytes) or whole < 1:
            answer = answer[: int(len(answer) * whole)]
        _take(state, sink, answer + (fault or b""), cuts)
    except KonvergeError as error:
        state.handle_error(error)


def _take(state: ListWatchState, sink: RecordingSink, answer: bytes, cuts: Iterable[int]) -> None:
    if isinstance(state.next_request(), List):
        for change in state.handle_page(answer):
            _apply(state, sink, change)
        return
    _apply(state, sink, state.handle_open())
    reader = FrameReader()
    for chunk in _pieces(answer, cuts):
        for each in reader.feed(chunk):
            _apply(state, sink, state.handle_frame(each))
    reader.close()
    state.handle_close()


def _apply(state: ListWatchState, sink: RecordingSink, change: Change | None) -> None:
    match change:
        case Reset():
            sink.begin()
        case Put():
            state.confirm(sink.put(change.raw))
        case Remove():
            state.confirm(sink.remove(change.raw))
        case Synced():
            sink.swap_now(change.resource_version)
        case Progress():
            sink.progress(change.resource_version)


def _pieces(data: bytes, cuts: Iterable[int]) -> Iterable[bytes]:
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    return [data[begin:end] for begin, end in itertools.pairwise(places)]


def _check_events(sink: RecordingSink, server: ModelCollection) -> None:
    """Replaying the events gives the state of the server; the events of an object are in the order of its states."""
    replayed: dict[str, str] = {}
    for event in sink.events:
        assert (event.type == "ADDED") == (event.name not in replayed)
        if event.type == "DELETED":
            del replayed[event.name]
        else:
            replayed[event.name] = event.version
    assert {f"/{name}": version for name, version in replayed.items()} == server.versions()
    for name in {event.name for event in sink.events}:
        seen = [event.version for event in sink.events if event.name == name and event.type != "DELETED"]
        real = iter(server.states(name))
        assert all(version in real for version in seen), f"{seen} is no subsequence of {server.states(name)}"
