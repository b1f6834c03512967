"""The buffers of TLS connections.

asyncio allocates a buffer of 256 kB for each TLS connection, resident from the start, and allocates as much again for
every decrypted read. Each worker and each watch has a connection and mostly reads a few kB: with 24 workers these
buffers take 8 MB.
"""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["READ_BYTES", "limit_read_buffer", "pending_write_bytes"]

READ_BYTES = 64 * 1024
"""Four TLS records of maximum size: a larger buffer does not make long lists faster."""


def limit_read_buffer(transport: asyncio.BaseTransport | None) -> None:
    """Limit the read buffer of a TLS connection to `READ_BYTES`.

    Call it between two reads, on the event loop. Other transports are left alone, and so is a TLS transport of a
    version of asyncio whose buffer is in another attribute.
    """
    protocol: Any = getattr(transport, "_ssl_protocol", None)
    if len(getattr(protocol, "_ssl_buffer", b"")) > READ_BYTES:
        protocol.max_size = READ_BYTES
        protocol._ssl_buffer = bytearray(READ_BYTES)
        protocol._ssl_buffer_view = memoryview(protocol._ssl_buffer)


def pending_write_bytes(transport: asyncio.Transport) -> int:
    """Return how much of what was written is not yet handed to the operating system, below TLS too."""
    below: Any = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None)
    return transport.get_write_buffer_size() + (below.get_write_buffer_size() if below is not None else 0)
