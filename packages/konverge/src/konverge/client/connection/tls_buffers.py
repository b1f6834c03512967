"""How much memory a TLS connection reads into.

asyncio reads each connection into 256 kB of its own, resident from the first moment, and asks for as much again for
every piece that it decrypts, only to give most of it back. A worker and a watch have a connection each, and what they
read is mostly a few kB: with 24 workers such buffers are 8 MB.
"""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["READ_BYTES", "read_in_small_pieces"]

READ_BYTES = 64 * 1024
"""Four TLS records at their largest: a long list is read as fast as with more."""


def read_in_small_pieces(transport: asyncio.BaseTransport | None) -> None:
    """Let a connection read at most `READ_BYTES` at a time, into as much memory.

    Call it between two reads, from the loop. What is no TLS connection of asyncio's own stays as it is; and so does one
    of a version of asyncio that holds its buffer in another place.
    """
    protocol: Any = getattr(transport, "_ssl_protocol", None)
    if len(getattr(protocol, "_ssl_buffer", b"")) > READ_BYTES:
        protocol.max_size = READ_BYTES
        protocol._ssl_buffer = bytearray(READ_BYTES)
        protocol._ssl_buffer_view = memoryview(protocol._ssl_buffer)
