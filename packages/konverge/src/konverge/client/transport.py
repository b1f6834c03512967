"""HTTP/1.1 over sockets, by konverge's own engine. WebSockets are aiohttp's.

Rules:

1. A request is sent once. The exception is a 401: the server has not processed the request, and it is sent again with
   new credentials if there are any.
2. `Request.before_write` is called right before the first byte of a request is handed to the operating system, with
   nothing awaited in between, and again before each later part that did not fit into the buffer of the socket: a
   request that it stops in the middle is cut, so the server does not process it.
3. Redirects are not followed, cookies are not stored, and environment variables are not read: the config has all
   options.
4. Errors contain method, address and path, never the query, a header or a body.
5. Connections are pooled by TLS context. A rotated certificate or CA leads to a new context: new requests open new
   connections, and the old ones are closed when they are idle for too long or their stream ends.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias
from urllib.parse import urlsplit
from weakref import WeakSet

from konverge.client.access.config import ClientConfig
from konverge.client.access.credentials import Identity
from konverge.client.connection.expiries import Expiries
from konverge.client.connection.failures import describe_error
from konverge.client.connection.http_connection import HttpConnection
from konverge.client.connection.limits import Limits, TransportStats
from konverge.client.connection.pool import ConnectionPool, PoolClosed
from konverge.client.connection.proxies import ProxyRoute
from konverge.client.connection.responses import HttpResponse
from konverge.client.connection.routes import ConnectionFailed, Route
from konverge.errors import TransportError
from konverge.wire.http1 import encode_fields, encode_request
from konverge.wire.messages import Request, Response, WebSocket
from konverge.wire.paths import request_target

if TYPE_CHECKING:
    from konverge.client.aiohttp_transport import AiohttpTransport

__all__ = ["HttpTransport"]

_CLOSED = "the transport is closed"
_Fields: TypeAlias = tuple[tuple[str, str], ...]


class HttpTransport:
    """The transport to one API server over HTTP.

    Promises:

    - construction starts nothing and needs no event loop; the transport belongs to the loop of its first request;
    - every failure is a TransportError, a DecodeError when the body cannot be decompressed or is too large, or a
      ConfigError when the credentials are unusable;
    - `sent` of a TransportError is False only if no part of the request was sent;
    - cancelling a request closes its connection and leaves nothing open.
    """

    def __init__(self, config: ClientConfig, *, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._config = config
        self._server = config.server.rstrip("/")
        self._proxy = ProxyRoute(config.proxy)
        self._defaults = _default_lines(config, self._proxy)
        self._current_identity: Callable[[], Identity | None] = getattr(config.credentials, "current", _unknown)
        self._impersonation = config.impersonation.headers() if config.impersonation is not None else ()
        self._prefix = _target_prefix(self._server, through_proxy=self._proxy.url is not None and not config.secure)
        self._fields = lru_cache(maxsize=64)(self._encode_fields)  # most requests of an operator have one of a few
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pool: ConnectionPool | None = None
        self._expiries: Expiries | None = None
        self._websockets: AiohttpTransport | None = None
        self._open: WeakSet[HttpResponse] = WeakSet()
        self._closed = False
        self._completed = self._failed = self._renewed = 0

    def copy(self) -> Self:
        """Return a new transport to the same server, for another event loop."""
        return type(self)(self._config, limits=self._limits)

    def stats(self) -> TransportStats:
        """Return the counts of requests so far."""
        return TransportStats(self._completed, self._failed, self._renewed)

    async def send(self, request: Request) -> Response:
        """Send a request and return when the headers of its response have arrived."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._start(loop)
        end = None if request.timeout is None else loop.time() + request.timeout
        try:
            if request.timeout is not None and request.timeout <= 0:
                raise self._error(request, "its timeout has passed already")
            response = await self._send(request, end)
        except BaseException:
            self._failed += 1
            raise
        self._completed += 1
        return response

    async def open_websocket(self, request: Request, protocols: tuple[str, ...]) -> WebSocket | Response:
        """Upgrade a request to one of the subprotocols; return the response if the server refuses."""
        if self._websockets is None:
            from konverge.client.aiohttp_transport import AiohttpTransport

            self._websockets = AiohttpTransport(self._config, limits=self._limits)
        return await self._websockets.open_websocket(request, protocols)

    async def close(self) -> None:
        """Close all connections; safe to call twice. Responses that are still being read are aborted."""
        self._closed = True
        self._fields.cache_clear()  # they contain credentials
        if self._pool is not None:
            self._pool.stop()
        for response in tuple(self._open):
            response.abort()
        if self._expiries is not None:
            self._expiries.close()
        if self._pool is not None:
            await self._pool.close()
        if self._websockets is not None:
            await self._websockets.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not None:
            raise RuntimeError("a transport belongs to the event loop of its first request (create one for each loop)")
        self._loop = loop
        self._expiries = Expiries(loop)
        route = Route(self._server, server_name=self._config.tls.server_name, proxy=self._proxy, limits=self._limits)
        self._pool = ConnectionPool(route, self._limits)

    async def _send(self, request: Request, end: float | None) -> HttpResponse:
        identity = self._current_identity() or await self._identity(request, end)
        response = await self._send_once(request, identity, end)
        if response.status != 401:
            return response
        try:
            renewed = await self._config.credentials.renew(identity)
        except BaseException:
            response.abort()
            raise
        if renewed is None:
            return response
        response.abort()
        self._renewed += 1
        return await self._send_once(request, renewed, end)

    async def _identity(self, request: Request, end: float | None) -> Identity:
        try:
            async with asyncio.timeout_at(end):
                return await self._config.credentials.identity()
        except TimeoutError:
            what = f"no credentials within {request.timeout:g} s: {self._config.credentials!r} was not done"
            raise self._error(request, what) from None

    async def _send_once(self, request: Request, identity: Identity, end: float | None) -> HttpResponse:
        assert self._pool is not None
        assert self._expiries is not None
        context = self._config.ssl_context(identity)
        head = self._encode(request, identity)
        connection = self._pool.take_idle(context, stream=request.stream)
        if connection is None:
            connection = await self._connect(request, context, end)
        response = HttpResponse(
            request,
            self._server,
            connection=connection,
            pool=self._pool,
            expiries=self._expiries,
            body_limit=self._limits.body,
        )
        try:
            if request.before_write is not None:
                request.before_write()
            connection.reader = response
            connection.write(head, request.body, request.before_write)
            if end is not None:
                self._expiries.add(response, end)
            await response.wait_for_header()
        except BaseException:
            response.abort()
            raise
        if not response.finished:
            self._open.add(response)
        return response

    async def _connect(self, request: Request, context: ssl.SSLContext | None, end: float | None) -> HttpConnection:
        assert self._pool is not None
        deadline = asyncio.timeout_at(end)
        try:
            async with deadline:
                return await self._pool.take(context, stream=request.stream)
        except PoolClosed:
            raise self._error(request, _CLOSED) from None
        except ConnectionFailed as error:
            raise self._error(request, f"{error}{self._through_proxy}") from error.__cause__
        except OSError as error:  # a TimeoutError is one
            if deadline.expired():
                raise self._error(request, f"no connection within {request.timeout:g} s") from None
            if type(error) is TimeoutError and error.errno is None:
                what = f"no connection within {self._limits.connect:g} s"
                raise self._error(request, what + self._through_proxy) from None
            raise self._error(request, f"{describe_error(error)}{self._through_proxy}") from error

    @property
    def _through_proxy(self) -> str:
        return f" (through the proxy {self._proxy.display_url})" if self._proxy.display_url else ""

    def _encode(self, request: Request, identity: Identity) -> bytes:
        names = tuple(request.headers.items())
        fields = self._fields(names, tuple(request.extra_headers), identity.authorization, stream=request.stream)
        if request.body or request.method not in ("GET", "HEAD"):
            fields = f"{fields}content-length: {len(request.body)}\r\n"
        return encode_request(request.method, self._prefix + request_target(request.path, request.query), fields)

    def _encode_fields(self, own: _Fields, extra: _Fields, authorization: str | None, *, stream: bool) -> str:
        """Return the lines of all header fields but the length, which depends on the body."""
        fields = {name: value for name, value in own if name != "content-length"}
        if stream:
            fields["accept-encoding"] = "identity"
        if authorization is not None:
            fields.setdefault("authorization", authorization)
        lines = encode_fields([*fields.items(), *extra])
        if self._impersonation and "impersonate-user:" not in lines.lower():
            lines += encode_fields(self._impersonation)
        return "".join([line for name, line in self._defaults if name not in fields]) + lines

    def _error(self, request: Request, what: str) -> TransportError:
        """Return the error of a request that was not sent."""
        return TransportError(f"{request.method} {self._server}{request.path}: {what}", sent=False)


def _default_lines(config: ClientConfig, proxy: ProxyRoute) -> list[tuple[str, str]]:
    """Return the names and the lines of the header fields that every request has unless it sets them."""
    encoding = "identity" if config.disable_compression else "gzip"
    host = urlsplit(config.server).netloc.rpartition("@")[2]
    fields = {"host": host, "user-agent": config.user_agent, "accept": "*/*", "accept-encoding": encoding}
    if proxy.headers is not None and not config.secure:
        # Without TLS there is no CONNECT request: the proxy receives the request itself.
        fields |= proxy.headers
    return [(name, encode_fields([(name, value)])) for name, value in fields.items()]


def _target_prefix(server: str, *, through_proxy: bool) -> str:
    """Return what is before the path of each request: the prefix of the server, for a proxy the whole address."""
    return server if through_proxy else urlsplit(server).path


def _unknown() -> None:
    """Return None: the credentials have to be awaited."""
