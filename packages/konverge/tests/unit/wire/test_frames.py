from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.errors import DecodeError
from konverge.wire import Bookmark, Frame, FrameReader


def line(type_: str, **object_: Any) -> bytes:
    return json.dumps({"type": type_, "object": object_}).encode() + b"\n"


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


def outcome(chunks: list[bytes], limit: int = 1 << 20) -> tuple[list[tuple[str, bytes]], str]:
    """Read a stream to its end: all frames, and the error that ended it."""
    reader = FrameReader(max_frame_bytes=limit)
    frames: list[tuple[str, bytes]] = []
    try:
        for chunk in chunks:
            frames.extend((frame.type, bytes(frame.object)) for frame in reader.feed(chunk))
        reader.close()
    except DecodeError as error:
        return frames, str(error)
    return frames, ""


objects = st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.integers(), max_size=3)
good_lines = st.builds(lambda t, o: line(t, o=o), st.sampled_from(["ADDED", "MODIFIED", "DELETED"]), objects)
bad_lines = st.sampled_from(
    [
        b"\n",
        b" \r\n",
        b"\0\n",
        b"<html>\n",
        b"{}\n",
        b'{"type":"ADDED"}\n',
        b"[" * 5000 + b"\n",
        b"\xff\n",
        b"x" * 300 + b"\n",
    ]
)


def test_frames_come_in_order_with_their_objects_as_they_came() -> None:
    stream = b'{"type":"ADDED","object":{"a" : 1.10}}\n{"object":{"b":2},"type":"DELETED"}\n'
    assert outcome([stream]) == ([("ADDED", b'{"a" : 1.10}'), ("DELETED", b'{"b":2}')], "")


def test_a_frame_is_handed_out_when_its_line_ends() -> None:
    reader = FrameReader()
    assert list(reader.feed(b'{"type":"ADDED","object":{}}')) == []
    assert [frame.type for frame in reader.feed(b"\n")] == ["ADDED"]


@settings(max_examples=200, deadline=None)
@given(st.lists(good_lines | bad_lines, max_size=6), st.binary(max_size=20), st.lists(st.integers(0, 5000), max_size=8))
def test_how_the_stream_is_cut_never_shows(lines: list[bytes], tail: bytes, places: list[int]) -> None:
    stream = b"".join(lines) + tail.replace(b"\n", b"")
    assert outcome(cut(stream, places), limit=250) == outcome([stream], limit=250)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=8))
def test_no_bytes_raise_anything_but_decode_errors(chunks: list[bytes]) -> None:
    frames, error = outcome(chunks)
    assert frames or error or not b"".join(chunks).strip()


def test_frames_before_a_broken_one_are_handed_out() -> None:
    frames, error = outcome([line("ADDED", n=1) + line("ADDED", n=2) + b'{"type":\n' + line("ADDED", n=3)])
    assert [object_ for _, object_ in frames] == [b'{"n": 1}', b'{"n": 2}']
    assert "not a frame" in error


@pytest.mark.parametrize(
    ("garbage", "says"),
    [
        (b"<html><body>502</body></html>", "HTML"),
        (b"\0\0\0", "malformed"),
        (b'{"type":"ADDED","object":{"token":"hunter2"', "truncated"),
        (b'{"type":"ADDED","object":{}} {}', "trailing"),
        (b'{"type":1,"object":{}}', "expected str, got int"),
        (b'{"object":{}}', "missing required field type"),
        (b'{"type":"\xff","object":{}}', "not UTF-8"),
        (b'{"type":"ADDED","object":' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_garbage_is_a_decode_error_that_shows_nothing_of_it(garbage: bytes, says: str) -> None:
    with pytest.raises(DecodeError, match=says) as caught:
        list(FrameReader().feed(garbage + b"\n"))
    assert "hunter2" not in str(caught.value)


def test_blank_lines_keep_a_connection_open_and_mean_nothing() -> None:
    assert outcome([b"\n\r\n  \n", line("ADDED"), b"\n \t"]) == ([("ADDED", b"{}")], "")


def test_a_stream_that_ends_in_the_middle_of_a_frame_is_torn() -> None:
    reader = FrameReader()
    list(reader.feed(line("ADDED") + b'{"type":"ADD'))
    with pytest.raises(DecodeError, match="in the middle of a frame, after 12 bytes"):
        reader.close()


def test_a_line_as_long_as_the_limit_is_read_and_a_longer_one_is_not() -> None:
    whole = line("ADDED", text="x" * 100)
    limit = len(whole) - 1
    assert outcome([whole], limit=limit)[1] == ""
    for chunks in ([whole], cut(whole, list(range(0, len(whole), 7)))):
        assert outcome(chunks, limit=limit - 1) == ([], f"a frame of the watch stream is longer than {limit - 1} bytes")


def test_a_line_that_never_ends_does_not_fill_the_memory() -> None:
    reader = FrameReader(max_frame_bytes=1000)
    list(reader.feed(b"x" * 1000))
    for _ in range(3):
        with pytest.raises(DecodeError, match="longer than 1000 bytes"):
            list(reader.feed(b"x" * 1000))


def test_a_limit_is_a_number_of_bytes() -> None:
    with pytest.raises(ValueError, match="above 0"):
        FrameReader(max_frame_bytes=0)


def only(chunk: bytes) -> Frame:
    (frame,) = FrameReader().feed(chunk)
    return frame


def test_a_bookmark_says_how_far_the_stream_has_come() -> None:
    frame = only(line("BOOKMARK", kind="Pod", metadata={"resourceVersion": "42", "creationTimestamp": None}))
    assert frame.bookmark() == Bookmark("42", initial_events_end=False)


@pytest.mark.parametrize(("value", "ends"), [("true", True), ("false", False)])
def test_a_bookmark_says_where_the_initial_events_end(value: str, ends: bool) -> None:
    metadata = {"resourceVersion": "42", "annotations": {"k8s.io/initial-events-end": value}}
    assert only(line("BOOKMARK", metadata=metadata)).bookmark() == Bookmark("42", ends)


@pytest.mark.parametrize("object_", [b"{}", b"null", b'{"metadata":{"resourceVersion":7}}', b'{"metadata":{"\xff":1}}'])
def test_a_bookmark_without_a_version_is_a_decode_error(object_: bytes) -> None:
    frame = only(b'{"type":"BOOKMARK","object":' + object_ + b"}\n")
    with pytest.raises(DecodeError, match="not a bookmark"):
        frame.bookmark()
