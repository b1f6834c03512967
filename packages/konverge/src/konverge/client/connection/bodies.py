"""The body of a response, decompressed within a limit: no response can fill the memory."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from io import BytesIO
from typing import Self

from konverge.errors import DecodeError

__all__ = ["Chunks", "Decompressor", "read_all", "too_large"]

_STEP = 1 << 20
"""Bytes that are decompressed at a time: a small chunk may decompress to a thousand times its size."""


async def read_all(chunks: AsyncIterator[bytes], *, limit: int) -> bytes:
    """Read all chunks and return them joined.

    Raises: DecodeError as soon as their total length exceeds the limit.
    """
    received = BytesIO()  # unlike a list of chunks that are joined, it never holds the body twice
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise too_large(limit)
        received.write(chunk)
    return received.getvalue()


def too_large(limit: int) -> DecodeError:
    """Return the error for a body that is longer than the limit."""
    return DecodeError(f"the response is larger than {limit} bytes (list in pages, or increase Limits.body)")


class Decompressor:
    """Decompresses a body whose content encoding is gzip or none; requests accept no other.

    Raises: DecodeError for another encoding.
    """

    def __init__(self, encoding: str) -> None:
        encoding = encoding.strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise DecodeError(f"the response has content encoding {encoding[:40]!r}, expected gzip")
        self._gzip = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS) if "gzip" in encoding else None
        self._begun = False  # a response without a body may name an encoding too

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the decompressed content of a chunk in parts of bounded size.

        Raises: DecodeError when the bytes are not gzip, or follow its end.
        """
        if self._gzip is None:
            yield chunk
            return
        self._begun = True
        while chunk:
            if self._gzip.eof:
                raise DecodeError("the response goes on after the end of its gzip stream")
            try:
                part = self._gzip.decompress(chunk, _STEP)
            except zlib.error as error:
                raise DecodeError("the response has content encoding gzip and is not valid gzip") from error
            if part:
                yield part
            chunk = self._gzip.unconsumed_tail or self._gzip.unused_data

    def close(self) -> None:
        """Check that the body is complete.

        Raises: DecodeError when the gzip stream is not.
        """
        if self._gzip is not None and self._begun and not self._gzip.eof:
            raise DecodeError("the response ends in the middle of its gzip stream")


class Chunks:
    """A body as an iterator of decompressed chunks; `receive` returns the next bytes, b"" after the last.

    Not a generator: one that is not exhausted would need to be closed.
    """

    def __init__(self, receive: Callable[[], Awaitable[bytes]], encoding: str) -> None:
        self._receive = receive
        self._decompressor = Decompressor(encoding)
        self._ready: Iterator[bytes] = iter(())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while True:
            for part in self._ready:
                return part
            chunk = await self._receive()
            if not chunk:
                self._decompressor.close()
                raise StopAsyncIteration
            self._ready = self._decompressor.feed(chunk)
