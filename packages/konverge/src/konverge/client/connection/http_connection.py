"""One connection of HTTP/1.1, for one request at a time."""

from __future__ import annotations

import asyncio
import select
import ssl
from collections.abc import Callable
from typing import Protocol, cast

from konverge.client.connection.sockets import WriteGuardSocket
from konverge.client.connection.tls_buffers import pending_write_bytes
from konverge.client.connection.tls_session import TlsSession

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
        self._tls: TlsSession | None = None
        self._handshake: asyncio.Future[None] | None = None
        self._poll: select.poll | None = None

    @property
    def usable(self) -> bool:
        """True while the connection is open on both sides, as far as is known."""
        return self.transport is not None and not self.transport.is_closing()

    def has_pending_input(self) -> bool:
        """Report whether bytes, or the end of the connection, wait to be read.

        On an idle connection they belong to no request, and the next one would get them as its response: the event loop
        may be about to read them, after the step that sends that request.
        """
        if self._tls is not None and self._tls.incomplete:
            return True
        return self._poll is not None and bool(self._poll.poll(0))

    async def start_tls(self, context: ssl.SSLContext, server_name: str) -> None:
        """Return when the TLS handshake is done.

        Raises: ssl.SSLError, or another OSError when the connection is lost.
        """
        self._tls = TlsSession(context, server_name)
        self._handshake = asyncio.get_running_loop().create_future()
        self._advance_handshake(b"")
        try:
            await self._handshake
        finally:
            self._handshake = None

    def write(self, head: bytes, body: bytes, before_send: Callable[[], object] | None = None) -> None:
        """Send a request; `before_send` is called before each part of it is sent, which may be later."""
        assert self.transport is not None
        if self.socket is not None:
            self.socket.before_send = before_send
        if self._tls is not None:
            self.transport.write(self._tls.encrypt(head + body))
        elif len(body) < READ_BYTES:
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
        """Begin to use the transport."""
        self.transport = cast("asyncio.Transport", transport)
        socket = transport.get_extra_info("socket")
        if socket is not None:
            self._poll = select.poll()
            self._poll.register(socket.fileno(), select.POLLIN)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return the buffer to read into."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on what was read."""
        data = self._buffer[:nbytes]
        if self._tls is None:
            self._pass_on(bytes(data))
        elif self._handshake is None:
            self._decrypt(self._tls, data)
        else:
            self._advance_handshake(data)

    def eof_received(self) -> bool:
        """End the response and let the transport close."""
        self._end(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End the response and leave the pool."""
        self._end(exc)
        self.transport = None
        self._lost(self)

    def _pass_on(self, data: bytes) -> None:
        if self.reader is None:
            self.abort()
        else:
            self.reader.receive(data)

    def _decrypt(self, tls: TlsSession, data: memoryview) -> None:
        try:
            text = tls.decrypt(data)
        except ssl.SSLError as error:
            self._send_pending(tls)
            self._end(error)
            self.abort()
            return
        self._send_pending(tls)
        if text:
            self._pass_on(text)
        if tls.ended:
            self._end(None)
            self.abort()

    def _advance_handshake(self, data: bytes | memoryview) -> None:
        assert self._tls is not None
        assert self._handshake is not None
        try:
            done = self._tls.advance_handshake(data)
        except ssl.SSLError as error:
            self._send_pending(self._tls)
            self._fail_handshake(error)
            return
        self._send_pending(self._tls)
        if done and not self._handshake.done():
            self._handshake.set_result(None)

    def _send_pending(self, tls: TlsSession) -> None:
        if (output := tls.pending_output()) and self.transport is not None:
            self.transport.write(output)

    def _fail_handshake(self, error: BaseException) -> None:
        if self._handshake is not None and not self._handshake.done():
            self._handshake.set_exception(error)

    def _end(self, error: Exception | None) -> None:
        self._fail_handshake(error or ConnectionResetError())
        reader, self.reader = self.reader, None
        if reader is not None:
            reader.connection_lost(error)
