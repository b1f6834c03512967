"""A watch stream as frames: chunks of bytes in, one frame for each event out.

The body of a watch is JSON documents, one on each line. This module does no I/O. Rules:

1. The borders of chunks have no effect: the same bytes give the same frames, and the same error at the end.
2. Every byte is scanned once for line ends and once by the JSON parser; objects stay raw.
3. The only exception is `DecodeError`, whatever the bytes are. Its message has none of them: objects may be Secrets.
4. A line, complete or not, is never longer than the limit.

Blank lines between documents are valid: JSON allows them and some proxies send them to keep a connection open.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from konverge.errors import DecodeError

__all__ = ["INITIAL_EVENTS_END", "MAX_FRAME_BYTES", "Bookmark", "Frame", "FrameReader"]

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""The limit of a line: ten times the server's limit of an object."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends the initial events of a streaming list."""


class Bookmark(NamedTuple):
    """The version that the stream has reached, and whether this bookmark ends the initial events."""

    resource_version: str
    initial_events_end: bool


class _BookmarkMetadata(msgspec.Struct, rename="camel"):
    resource_version: str
    annotations: dict[str, str] | None = None


class _BookmarkObject(msgspec.Struct):
    metadata: _BookmarkMetadata


_bookmark = msgspec.json.Decoder(_BookmarkObject)


class Frame(msgspec.Struct, frozen=True, gc=False):
    """An event of a watch. `type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR; `object` is raw JSON.

    `bytes(frame.object)` is a copy that does not keep the whole line in memory.
    """

    type: str
    object: msgspec.Raw

    def bookmark(self) -> Bookmark:
        """Decode a frame of type BOOKMARK.

        Raises: DecodeError when the object is not a bookmark.
        """
        try:
            metadata = _bookmark.decode(self.object).metadata
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise DecodeError(f"not a bookmark: {_describe(error)}") from error
        return Bookmark(metadata.resource_version, (metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true")


_frame = msgspec.json.Decoder(Frame)


class FrameReader:
    """Joins the chunks of a stream and returns the complete frames.

    Promises: frames are returned in order, each once, whatever the borders of the chunks; memory is limited to one
    chunk and one frame. After a `DecodeError` the stream is over: watch again from the last version that was read.
    """

    def __init__(self, *, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        if max_frame_bytes < 1:
            raise ValueError(f"max_frame_bytes: expected a number of bytes above 0, got {max_frame_bytes}")
        self._limit = max_frame_bytes
        self._pieces: list[bytes] = []  # of the incomplete line, none of them empty
        self._size = 0  # total length of the pieces

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Add a chunk and iterate over the frames that it completes; a frame is decoded when the iterator reaches it.

        Raises: DecodeError in place of a frame that is invalid or too long; the frames before it are returned.
        """
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._pieces:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
            self._pieces, self._size = [], 0
        if rest:
            self._size += len(rest)
            if self._size <= self._limit:
                self._pieces.append(rest)
        return self._read(lines, self._size)

    def close(self) -> None:
        """Check that the stream did not end in the middle of a frame.

        Raises: DecodeError when it did.
        """
        rest = b"".join(self._pieces)
        self._pieces, self._size = [], 0
        if rest.strip():
            raise DecodeError(f"the watch stream ended in the middle of a frame, after {len(rest)} bytes")

    def _read(self, lines: list[bytes], unfinished: int) -> Iterator[Frame]:
        decode, limit = _frame.decode, self._limit
        for line in lines:
            if len(line) > limit:
                raise self._too_long()
            try:
                frame = decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                if line.strip():
                    raise _invalid_line(line, error) from error
                continue
            yield frame
        if unfinished > limit:
            raise self._too_long()

    def _too_long(self) -> DecodeError:
        return DecodeError(f"a frame of the watch stream is longer than {self._limit} bytes")


def _invalid_line(line: bytes, error: Exception) -> DecodeError:
    if line.lstrip().startswith(b"<"):
        return DecodeError("a line of the watch stream is HTML or XML, not a frame (is there a proxy in between?)")
    return DecodeError(f"a line of the watch stream is not a frame: {_describe(error)}")


def _describe(error: Exception) -> str:
    if not isinstance(error, msgspec.MsgspecError):
        return "text that is not UTF-8" if isinstance(error, UnicodeDecodeError) else "nested too deeply"
    text = str(error).replace("`", "")
    return text[:1].lower() + text[1:]
