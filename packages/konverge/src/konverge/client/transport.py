"""HTTP over sockets: the transport to a real API server. The only file of the client that knows the HTTP library.

Rules that hold here:

1. One request is sent once. The library's own repeats are off, since a write must not leave after its guard was asked;
   the one exception is a 401, which the server gives before it does anything, and only when there are new credentials.
2. Redirects are never followed, cookies never kept, and the environment is not asked: all settings are in the config.
3. Errors say method, address and path, never the query, a header or a body. None of the library's comes through.
4. Connections are pooled by TLS context. When a certificate or the CA rotates, the context is a new one: new requests
   open new connections, and the old ones are closed when they have been idle for a while or their stream ends.
"""

from __future__ import annotations

import asyncio
import io
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar
from weakref import WeakSet

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict
from yarl import URL

from konverge.client.access.config import ClientConfig
from konverge.client.access.credentials import Identity
from konverge.client.connection.bodies import Chunks, read_whole, too_large
from konverge.client.connection.deadlines import DeadlineReached, Deadlines
from konverge.client.connection.failures import words_of
from konverge.client.connection.limits import Limits, TransportStats
from konverge.client.connection.proxies import ProxyRoute
from konverge.client.connection.sockets import notice_dead_peer
from konverge.client.connection.tls_buffers import read_in_small_pieces
from konverge.errors import TransportError
from konverge.wire.messages import Request, Response
from konverge.wire.paths import target

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

    from konverge.client.connection.socks import SocksProxy

__all__ = ["HttpTransport"]

T = TypeVar("T")

_LIBRARY_ERRORS = (aiohttp.ClientError, HttpProcessingError, OSError)

_LARGE_BODY = 1 << 20
"""The library warns of a body in one piece that is larger: it wants a file."""

_HEADER_BYTES = 64 << 10
_WHILE_CONNECTING = "while connecting"
_CLOSED = "the transport is closed"


class _Unanswered(Exception):
    """There is no answer; the text says why. Not an error of the library's, so it does not repeat the request."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class HttpTransport:
    """The way to one API server, over HTTP.

    Promises:

    - making one starts nothing and needs no event loop; it belongs to the loop of its first request;
    - whatever goes wrong is a TransportError, a DecodeError when the body cannot be unpacked or is too large, or the
      ConfigError of credentials that are of no use;
    - `sent` of a TransportError is False only if nothing of the request left;
    - cancelling a request closes its connection, and nothing stays behind.
    """

    def __init__(self, config: ClientConfig, *, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._config = config
        self._server = str(URL(config.server)).rstrip("/")
        self._proxy = ProxyRoute(config.proxy)
        self._headers = _standing_headers(config, self._proxy)
        self._impersonation = config.impersonation.headers() if config.impersonation is not None else ()
        self._deadlines = Deadlines()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None
        # The library would let those who read them wait for ever when it closes their connections.
        self._open: WeakSet[_HttpResponse] = WeakSet()
        self._closed = False
        self._answered = self._failed = self._renewed = 0

    def stats(self) -> TransportStats:
        """Tell what was done so far."""
        return TransportStats(self._answered, self._failed, self._renewed)

    async def send(self, request: Request) -> Response:
        """Send a request and wait for the headers of its answer."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._start(loop)
        end = None if request.timeout is None else loop.time() + request.timeout
        try:
            if end is not None and end <= loop.time():
                raise self._error(request, "no time is left for it", sent=False)
            response = await self._within(end, self._send(request))
        except DeadlineReached as reached:
            self._failed += 1
            raise self._late(request, reached) from None
        except BaseException:
            self._failed += 1
            raise
        self._answered += 1
        answer = _HttpResponse(self, request, response, end)
        if not response.content.is_eof():
            self._open.add(answer)
        return answer

    async def close(self) -> None:
        """Close all connections; safe to call twice. Answers that are still being read are cut."""
        self._closed = True
        for response in tuple(self._open):
            response.cut()
        self._deadlines.close()
        for session in (self._calls, self._streams):
            if session is not None:
                await session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _within(self, end: float | None, work: Awaitable[T]) -> T:
        """Await something until a time of the loop's clock; DeadlineReached when it is not done by then."""
        return await work if end is None else await self._deadlines.within(end, work)

    def _error(self, request: Request, what: str, *, sent: bool = True) -> TransportError:
        """Make the error of a request that got no complete answer."""
        return TransportError(f"{request.method} {self._server}{request.path}: {what}", sent=sent)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not None:
            raise RuntimeError("a transport belongs to the event loop of its first request: make one for each loop")
        self._loop = loop
        self._calls = self._session(self._limits.connections)
        self._streams = self._session(0)

    def _session(self, connections: int) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=_Connector(connections, limits=self._limits, proxy=self._proxy),
            timeout=aiohttp.ClientTimeout(sock_connect=self._limits.connect, ceil_threshold=float("inf")),
            cookie_jar=aiohttp.DummyCookieJar(),
            response_class=_SentOnce,
            auto_decompress=False,
            proxy=self._proxy.url,
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
        )

    async def _send(self, request: Request) -> aiohttp.ClientResponse:
        identity = await self._config.credentials.identity()
        response = await self._exchange(request, identity)
        if response.status != 401:
            return response
        try:
            renewed = await self._config.credentials.renew(identity)
        except BaseException:
            response.close()
            raise
        if renewed is None:
            return response
        response.close()
        self._renewed += 1
        return await self._exchange(request, renewed)

    async def _exchange(self, request: Request, identity: Identity) -> aiohttp.ClientResponse:
        session = self._streams if request.stream else self._calls
        if self._closed or session is None:
            raise self._error(request, _CLOSED, sent=False)
        try:
            return await session.request(
                request.method,
                URL(self._server + target(request.path, request.query), encoded=True),
                headers=self._headers_of(request, identity),
                data=_data(request.body),
                allow_redirects=False,
                ssl=self._config.ssl_context(identity) or True,
                server_hostname=self._config.tls.server_name,
                proxy_headers=self._proxy.headers,
            )
        except _Unanswered as error:
            raise self._error(request, str(error), sent=error.sent) from error.__cause__
        except _LIBRARY_ERRORS as error:
            raise self._error(request, _answer_words(error)) from _root(error)

    def _headers_of(self, request: Request, identity: Identity) -> CIMultiDict[str]:
        headers = self._headers.copy()
        if request.stream:
            headers["accept-encoding"] = "identity"
        if identity.authorization is not None:
            headers["authorization"] = identity.authorization
        headers.update(request.headers)
        if request.extra_headers:
            headers.extend(request.extra_headers)
        if self._impersonation and "impersonate-user" not in headers:
            headers.extend(self._impersonation)
        return headers

    def _late(self, request: Request, reached: DeadlineReached) -> TransportError:
        unconnected = _WHILE_CONNECTING in getattr(reached.__cause__, "__notes__", ())
        what = "no connection" if unconnected else "no answer"
        return self._error(request, f"{what} within {request.timeout:g} s", sent=not unconnected)


class _HttpResponse:
    """An answer on its way. Its connection goes back to the pool with the last byte; closed earlier, it is cut."""

    def __init__(
        self, transport: HttpTransport, request: Request, response: aiohttp.ClientResponse, end: float | None
    ) -> None:
        self._transport = transport
        self._request = request
        self._response = response
        self._end = None if request.stream else end
        self._received = 0
        self._body: bytes | None = None
        self.status: int = response.status

    @property
    def headers(self) -> Mapping[str, str]:
        came = self._response.headers
        return {name.lower(): ", ".join(came.getall(name)) for name in came}

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._response.headers.getall("warning", ()))

    async def read(self) -> bytes:
        if self._body is None:
            body = self._read_now()
            self._body = body if body is not None else await self._read()
        return self._body

    def chunks(self) -> AsyncIterator[bytes]:
        return Chunks(self._receive if self._end is None else self._receive_in_time, self._encoding)

    def cut(self) -> None:
        """Close at once; whoever is reading gets a TransportError."""
        _abort(self._response.connection)
        self._response.close()

    async def close(self) -> None:
        self.cut()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()

    def _read_now(self) -> bytes | None:
        """Give the body if all of it came with the headers, as small ones do."""
        content = self._response.content
        if not content.is_eof() or content.exception() is not None or "content-encoding" in self._response.headers:
            return None
        body = content.read_nowait()
        if len(body) > self._transport._limits.body:
            raise too_large(self._transport._limits.body)
        return body

    async def _read(self) -> bytes:
        limit = self._transport._limits.body
        if (self._response.content_length or 0) > limit:
            raise too_large(limit)
        whole = read_whole(Chunks(self._receive, self._encoding), limit=limit)
        try:
            return await self._transport._within(self._end, whole)
        except DeadlineReached:
            raise self._late() from None

    async def _receive(self) -> bytes:
        try:
            chunk = await self._response.content.readany()
        except _LIBRARY_ERRORS as error:
            raise self._broken(error) from _root(error)
        self._received += len(chunk)
        return chunk

    async def _receive_in_time(self) -> bytes:
        try:
            return await self._transport._within(self._end, self._receive())
        except DeadlineReached:
            raise self._late() from None

    @property
    def _encoding(self) -> str:
        return self._response.headers.get("content-encoding", "")

    def _late(self) -> TransportError:
        within = f"within {self._request.timeout:g} s"
        return self._transport._error(
            self._request, f"no complete answer {within}, {self._received} bytes of the body came"
        )

    def _broken(self, error: Exception) -> TransportError:
        why = "" if isinstance(error, aiohttp.ClientPayloadError) else f" ({_answer_words(error)})"
        return self._transport._error(
            self._request, f"the answer was cut in the middle of the body, after {self._received} bytes{why}"
        )


class _SentOnce(aiohttp.ClientResponse):
    """Turns the errors by which the library knows that it may repeat a request into one that it does not know."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        try:
            return await super().start(connection)
        except BaseException as error:
            _abort(connection)
            if isinstance(error, _LIBRARY_ERRORS):
                raise _Unanswered(_answer_words(error), sent=True) from _root(error)
            raise


class _Connector(aiohttp.TCPConnector):
    """Opens connections, and says in words why one cannot be opened."""

    def __init__(self, connections: int, *, limits: Limits, proxy: ProxyRoute) -> None:
        super().__init__(
            limit=connections,
            keepalive_timeout=limits.idle,
            resolver=aiohttp.ThreadedResolver(),
            socket_factory=lambda address: notice_dead_peer(socket.socket(*address[:3]), limits.dead_peer),
        )
        self._limits = limits
        self._proxy = proxy

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        try:
            return await super().connect(req, traces, timeout)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if self.closed and not (task and task.cancelling()):
                raise _Unanswered(_CLOSED, sent=False) from None
            error.add_note(_WHILE_CONNECTING)
            raise
        except (*_LIBRARY_ERRORS, UnicodeError) as error:  # the latter for names that cannot be looked up
            through = f" (through the proxy {self._proxy.shown})" if self._proxy.shown else ""
            why = _CLOSED if self.closed else _connection_words(error, self._limits.connect)
            raise _Unanswered(why + through, sent=False) from _root(error)

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        if self._proxy.tunnel is None:
            made = await super()._create_connection(req, traces, timeout)
        else:
            made = await self._connect_through(self._proxy.tunnel, req, timeout)
        read_in_small_pieces(made.transport)
        return made

    async def _connect_through(
        self, tunnel: SocksProxy, req: aiohttp.ClientRequest, timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        context = req.ssl if isinstance(req.ssl, ssl.SSLContext) else None
        name = (req.server_hostname or req.host).rstrip(".") if context else None
        async with asyncio.timeout(timeout.sock_connect):
            link = await tunnel.open(req.host, req.port or 443)
            try:
                notice_dead_peer(link, self._limits.dead_peer)
                made = await self._loop.create_connection(self._factory, sock=link, ssl=context, server_hostname=name)
            except BaseException:
                link.close()
                raise
        return made[1]


def _standing_headers(config: ClientConfig, proxy: ProxyRoute) -> CIMultiDict[str]:
    # All that the library would add by itself is said here: that costs less than telling it to leave them out.
    encoding = "identity" if config.disable_compression else "gzip"
    headers = CIMultiDict({"user-agent": config.user_agent, "accept": "*/*", "accept-encoding": encoding})
    if proxy.headers is not None and not config.secure:
        # Without TLS there is no CONNECT: the proxy reads the request itself.
        headers.update(proxy.headers)
    return headers


def _data(body: bytes) -> bytes | io.BytesIO | None:
    return io.BytesIO(body) if len(body) > _LARGE_BODY else body or None


def _abort(connection: Connection | None) -> None:
    """Drop a connection in the middle of something. A polite end would wait for a peer that may be gone."""
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


def _root(error: BaseException) -> BaseException | None:
    """Give what lies below the library's error, which may show headers; None when nothing does."""
    while isinstance(error, aiohttp.ClientError):
        if error.__cause__ is None:
            return None
        error = error.__cause__
    return error


def _connection_words(error: BaseException, limit: float) -> str:
    root = _root(error)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy refused: HTTP {error.status} {error.message}"
    if isinstance(error, aiohttp.ClientResponseError | HttpProcessingError):
        return "the proxy does not speak HTTP"
    if type(root) is TimeoutError and root.errno is None:
        return f"no connection within {limit:g} s"
    if isinstance(error, aiohttp.InvalidURL | UnicodeError):
        return "there is no such address"
    return words_of(root) if root is not None else "the connection was closed before it could be used"


def _answer_words(error: BaseException) -> str:
    root = _root(error)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection without an answer"
    if isinstance(error, aiohttp.ClientResponseError | HttpProcessingError):
        first_line = str(error.message).partition("\n")[0].rstrip(" :")
        return f"the answer is not HTTP: {first_line[:200]}"
    return words_of(root) if root is not None else "the connection was closed"
