"""The response to a request that was sent over a connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Self

from konverge.client.connection.bodies import Chunks, read_all, too_large
from konverge.client.connection.expiries import Expiries
from konverge.client.connection.failures import describe_error
from konverge.client.connection.http_connection import HttpConnection
from konverge.client.connection.pool import ConnectionPool
from konverge.errors import TransportError
from konverge.wire.http1 import HttpError, ResponseParser
from konverge.wire.messages import Request

__all__ = ["HttpResponse"]

_UNREAD_BYTES = 256 << 10
"""A body that nobody reads is received up to this size; then the peer has to wait."""


class HttpResponse:
    """A response that arrives, or has arrived, over a connection.

    Promises:

    - the connection is released as soon as the last byte has arrived, whether the body is read or not;
    - what has arrived is returned before an error is raised;
    - the deadline of the request holds for the whole body, that of a stream for the header only.
    """

    def __init__(
        self,
        request: Request,
        server: str,
        *,
        connection: HttpConnection,
        pool: ConnectionPool,
        expiries: Expiries,
        body_limit: int,
    ) -> None:
        self._request = request
        self._server = server
        self._connection: HttpConnection | None = connection
        self._pool = pool
        self._expiries = expiries
        self._body_limit = body_limit
        self._parser = ResponseParser(request.method)
        self._parts: deque[bytes] = deque()
        self._unread = self._received = 0
        self._paused = self._expired = False
        self._failure: str | None = None
        self._cause: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._body: bytes | None = None

    @property
    def status(self) -> int:
        return self._parser.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._parser.headers

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._parser.warnings)

    @property
    def finished(self) -> bool:
        """True when nothing more arrives: the response is complete, or its connection is closed."""
        return self._connection is None

    async def wait_for_header(self) -> None:
        """Wait for the status and the header fields.

        Raises: TransportError without them.
        """
        while not self._parser.status:
            if self._failure is not None:
                raise self._error(self._failure or "the connection was closed") from self._cause
            await self._wait()
        if self._request.stream:
            self._expiries.remove(self)

    async def read(self) -> bytes:
        if self._body is None:
            if not self._parser.complete or self._encoding:
                self._body = await self._read()
            else:
                self._body = self._take_all()
        return self._body

    def chunks(self) -> AsyncIterator[bytes]:
        return Chunks(self._receive, self._encoding)

    def abort(self) -> None:
        """Close the connection, unless the response is complete; a pending read raises TransportError."""
        if self._connection is not None:
            self._fail("")

    async def close(self) -> None:
        self.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    # Called by the connection and by the deadline.

    def receive(self, data: bytes) -> None:
        """Receive bytes from the connection."""
        try:
            self._keep(self._parser.feed(data))
        except HttpError as error:
            self._keep(self._parser.parts)
            self._fail(f"the response is not HTTP: {error}")
            return
        if self._parser.complete:
            self._end(keep_alive=self._parser.keep_alive)
        elif self._unread > _UNREAD_BYTES and not self._paused and self._connection is not None:
            self._paused = True
            self._connection.pause_reading()
        self._wake()

    def _keep(self, parts: list[bytes]) -> None:
        for part in parts:
            self._unread += len(part)
            self._received += len(part)
        self._parts.extend(parts)

    def connection_lost(self, error: BaseException | None) -> None:
        """Receive the end of the connection."""
        if error is None and self._parser.feed_eof():
            self._end(keep_alive=False)
            self._wake()
        elif self._parser.status:
            self._fail("" if error is None else describe_error(error), error)
        elif error is None:
            self._fail("the server closed the connection without a response")
        else:
            self._fail(describe_error(error), error)

    def expire(self) -> None:
        """End the response at the deadline of its request."""
        self._expired = True
        self._fail(f"no response within {self._request.timeout:g} s")

    def _fail(self, reason: str, cause: BaseException | None = None) -> None:
        if self._failure is None and not self._parser.complete:
            self._failure = reason
            self._cause = cause
        self._end(keep_alive=False)
        self._wake()

    def _end(self, *, keep_alive: bool) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        self._expiries.remove(self)
        if self._paused:
            connection.resume_reading()
        self._pool.release(connection, keep_alive=connection.finish() and keep_alive)

    # Reading.

    async def _read(self) -> bytes:
        has_body = self._unread or not self._parser.complete
        if has_body and int(self._parser.headers.get("content-length", "0")) > self._body_limit:
            raise too_large(self._body_limit)
        return await read_all(Chunks(self._receive, self._encoding), limit=self._body_limit)

    async def _receive(self) -> bytes:
        while not self._parts:
            if self._parser.complete:
                return b""
            if self._failure is not None:
                raise self._body_error() from self._cause
            await self._wait()
        part = self._parts.popleft()
        self._unread -= len(part)
        if self._paused and not self._unread and self._connection is not None:
            self._paused = False
            self._connection.resume_reading()
        return part

    def _take_all(self) -> bytes:
        if self._unread > self._body_limit:
            raise too_large(self._body_limit)
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._unread = 0
        return body

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def _encoding(self) -> str:
        return self._parser.encoding

    def _body_error(self) -> TransportError:
        if self._expired:
            timeout = f"{self._request.timeout:g} s"
            return self._error(f"no complete response within {timeout}, received {self._received} bytes of the body")
        reason = f" ({self._failure})" if self._failure else ""
        return self._error(f"the response ended in the middle of the body, after {self._received} bytes{reason}")

    def _error(self, what: str) -> TransportError:
        return TransportError(f"{self._request.method} {self._server}{self._request.path}: {what}", sent=True)
