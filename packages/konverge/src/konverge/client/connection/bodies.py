"""The bytes of an answer, unpacked and counted: no answer fills the memory, whatever it claims to be."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Self

from konverge.errors import DecodeError

__all__ = ["Chunks", "Unpacker", "read_whole", "too_large"]

_STEP = 1 << 20
"""Bytes that are unpacked at a time: a small piece may stand for a thousand times as much."""


async def read_whole(chunks: AsyncIterator[bytes], *, limit: int) -> bytes:
    """Read all chunks.

    Raises: DecodeError as soon as they are longer than the limit together.
    """
    pieces = []
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise too_large(limit)
        pieces.append(chunk)
    return b"".join(pieces)


def too_large(limit: int) -> DecodeError:
    """Make the error for a body that is longer than the limit."""
    return DecodeError(f"the answer is larger than {limit} bytes (ask for it in pages, or raise Limits.body)")


class Unpacker:
    """Undoes the content encoding of a body: none, or gzip, which is all that is ever asked for.

    Raises: DecodeError when the encoding is another one.
    """

    def __init__(self, encoding: str) -> None:
        encoding = encoding.strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise DecodeError(f"the answer has the content encoding {encoding[:40]!r}, and only gzip was asked for")
        self._gzip = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS) if "gzip" in encoding else None

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Give what a chunk stands for, in pieces of bounded size, each made when it is asked for.

        Raises: DecodeError when the bytes are not what the encoding says.
        """
        if self._gzip is None:
            yield chunk
            return
        while chunk:
            try:
                piece = self._gzip.decompress(chunk, _STEP)
            except zlib.error as error:
                raise DecodeError("the answer says it is gzip, and is not") from error
            if piece:
                yield piece
            chunk = self._gzip.unconsumed_tail

    def close(self) -> None:
        """Say that the body has ended.

        Raises: DecodeError when it ended too early.
        """
        if self._gzip is not None and not self._gzip.eof:
            raise DecodeError("the answer ends in the middle of its gzip stream")


class Chunks:
    """A body piece by piece, unpacked; `receive` gives the next bytes as they come, b"" after the last.

    No generator, so that one that is left half-way leaves nothing to be cleaned up.
    """

    def __init__(self, receive: Callable[[], Awaitable[bytes]], encoding: str) -> None:
        self._receive = receive
        self._unpacker = Unpacker(encoding)
        self._ready: Iterator[bytes] = iter(())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while True:
            for piece in self._ready:
                return piece
            chunk = await self._receive()
            if not chunk:
                self._unpacker.close()
                raise StopAsyncIteration
            self._ready = self._unpacker.feed(chunk)
