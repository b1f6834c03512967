"""A watch stream as frames: bytes cut anywhere in, one frame for each change out.

A watch answers with JSON documents, one on each line. Nothing here reads sockets or waits. Rules that hold here:

1. How the bytes are cut into chunks never shows: the same bytes give the same frames, and the same error at the end.
2. Every byte is looked at once for the end of its line and once by the JSON reader; objects stay raw.
3. Whatever the bytes are, the only error is `DecodeError`. It shows nothing of them: objects hold secrets.
4. A line, finished or not, never grows past the limit.

Blank lines between documents are no error: JSON allows them and some proxies send them to keep a connection open.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from konverge.errors import DecodeError

__all__ = ["INITIAL_EVENTS_END", "MAX_FRAME_BYTES", "Bookmark", "Frame", "FrameReader"]

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""A line may be this long: ten times what the server lets one object be."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends the initial events of a streaming list."""


class Bookmark(NamedTuple):
    """How far the stream has come, and whether the initial events are complete with it."""

    resource_version: str
    initial_events_end: bool


class _BookmarkMetadata(msgspec.Struct, rename="camel"):
    resource_version: str
    annotations: dict[str, str] | None = None


class _BookmarkObject(msgspec.Struct):
    metadata: _BookmarkMetadata


_bookmark = msgspec.json.Decoder(_BookmarkObject)


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One event of a watch. `type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR; `object` is JSON, as it came.

    `bytes(frame.object)` is a copy that does not hold on to the whole line.
    """

    type: str
    object: msgspec.Raw

    def bookmark(self) -> Bookmark:
        """Read a frame of type BOOKMARK; its object is small, and this reads only what it says.

        Raises: DecodeError when the object is no bookmark.
        """
        try:
            metadata = _bookmark.decode(self.object).metadata
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise DecodeError(f"not a bookmark: {_lowered(error)}") from error
        return Bookmark(metadata.resource_version, (metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true")


_frame = msgspec.json.Decoder(Frame)


class FrameReader:
    """Puts chunks of a stream together and hands out the frames that are complete.

    Promises: frames come in order, each once, however the chunks are cut; memory is bounded by one chunk and one frame.
    After a `DecodeError` the stream is over: watch again from the last version that was read.
    """

    def __init__(self, *, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        if max_frame_bytes < 1:
            raise ValueError(f"max_frame_bytes is a number of bytes above 0, got {max_frame_bytes}")
        self._limit = max_frame_bytes
        self._pieces: list[bytes] = []  # of the line that has no end yet, none of them empty
        self._size = 0  # of all pieces together

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Take the next bytes and hand out the frames that they complete, each read when it is asked for.

        Raises: DecodeError, in the place of the frame that is broken or too long; frames before it are handed out.
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
        """Say that the stream has ended.

        Raises: DecodeError when it ended in the middle of a frame.
        """
        torn = b"".join(self._pieces)
        self._pieces, self._size = [], 0
        if torn.strip():
            raise DecodeError(f"the watch stream ended in the middle of a frame, {len(torn)} bytes into it")

    def _read(self, lines: list[bytes], unfinished: int) -> Iterator[Frame]:
        decode, limit = _frame.decode, self._limit
        for line in lines:
            if len(line) > limit:
                raise self._too_long()
            try:
                frame = decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                if line.strip():
                    raise _broken(line, error) from error
                continue
            yield frame
        if unfinished > limit:
            raise self._too_long()

    def _too_long(self) -> DecodeError:
        return DecodeError(f"a frame of the watch stream is longer than {self._limit} bytes")


def _broken(line: bytes, error: Exception) -> DecodeError:
    if line.lstrip().startswith(b"<"):
        return DecodeError("a line of the watch stream is HTML or XML, not a frame (is there a proxy in between?)")
    return DecodeError(f"a line of the watch stream is no frame: {_lowered(error)}")


def _lowered(error: Exception) -> str:
    if not isinstance(error, msgspec.MsgspecError):
        return "text that is not UTF-8" if isinstance(error, UnicodeDecodeError) else "nested too deeply"
    text = str(error).replace("`", "")
    return text[:1].lower() + text[1:]
