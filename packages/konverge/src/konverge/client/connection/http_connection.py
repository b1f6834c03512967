"""One connection of HTTP/1.1, for one request at a time."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Protocol, cast

from konverge.client.connection.sockets import WriteGuardSocket
from konverge.client.connection.tls_buffers import pending_write_bytes

__all__ = ["READ_BYTES", "HttpConnection", "ResponseReader"]

READ_BYTES = 64 << 10


class ResponseReader(Protocol):
    """What gets the bytes that arrive."""

    def receive(self, data: bytes) -> None:
        """Receive bytes."""
        ...

    def connection_lost(self, error: BaseException | None) -> None:
        """Receive the end of the connection, orderly without an error."""
        ...


class HttpConnection(asyncio.BufferedProtocol):
    """A connection, idle or with the reader of a response.

    Bytes that arrive on an idle connection close it: they belong to no request. The connections of a pool read into one
    buffer, since each read is copied from it before the next begins; a buffer for each connection, as asyncio's streams
    have it, takes 64 to 256 kB.
    """

    def __init__(self, buffer: memoryview, lost: Callable[[HttpConnection], None]) -> None:
        self._buffer = buffer
        self._lost = lost
        self.transport: asyncio.Transport | None = None
        self.socket: WriteGuardSocket | None = None
        self.reader: ResponseReader | None = None
        self.context: ssl.SSLContext | None = None
        self.is_call = False
        self.idle_since = 0.0

    @property
    def usable(self) -> bool:
        """True while the connection is open on both sides, as far as is known."""
        return self.transport is not None and not self.transport.is_closing()

    def write(self, head: bytes, body: bytes, before_send: Callable[[], object] | None = None) -> None:
        """Send a request; `before_send` is called before each part of it is sent, which may be later."""
        assert self.transport is not None
        if self.socket is not None:
            self.socket.before_send = before_send
        if len(body) < READ_BYTES:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            self.transport.write(body)

    def finish(self) -> bool:
        """Let go of a request; return True if all of it was sent, so that another one may follow."""
        self.reader = None
        if self.socket is not None:
            self.socket.before_send = None
        return self.transport is not None and not pending_write_bytes(self.transport)

    def pause_reading(self) -> None:
        """Read nothing until `resume_reading`; the peer then has to wait."""
        if self.transport is not None:
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        if self.transport is not None:
            self.transport.resume_reading()

    def abort(self) -> None:
        """Close the connection without the end of TLS, which would wait for a peer that may be gone."""
        if self.transport is not None:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to use the transport; the second one is TLS through a proxy."""
        self.transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return the buffer to read into."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on what was read."""
        if self.reader is None:
            self.abort()
        else:
            self.reader.receive(bytes(self._buffer[:nbytes]))

    def eof_received(self) -> bool:
        """End the response and let the transport close."""
        self._end(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End the response and leave the pool."""
        self._end(exc)
        self.transport = None
        self._lost(self)

    def _end(self, error: Exception | None) -> None:
        reader, self.reader = self.reader, None
        if reader is not None:
            reader.connection_lost(error)
