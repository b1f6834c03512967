"""HTTP over sockets by aiohttp: WebSockets, and requests if `KONVERGE_HTTP_ENGINE=aiohttp` selects it.

Rules:

1. A request is sent once. The library's own retries are off, since a write must not be sent after the check of its
   guard. The exception is a 401: the server has not processed the request, and it is sent again with new credentials if
   there are any.
2. Redirects are not followed, cookies are not stored, and environment variables are not read: the config has all
   options.
3. Errors contain method, address and path, never the query, a header or a body. No error of the library gets out.
4. Connections are pooled by TLS context. A rotated certificate or CA leads to a new context: new requests open new
   connections, and the old ones are closed when they are idle for too long or their stream ends.
"""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar
from weakref import WeakSet

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict
from yarl import URL

from konverge.client.access.config import ClientConfig
from konverge.client.access.credentials import Identity
from konverge.client.connection.bodies import Chunks, read_all, too_large
from konverge.client.connection.deadlines import DeadlineReached, Deadlines
from konverge.client.connection.failures import describe_error
from konverge.client.connection.limits import Limits, TransportStats
from konverge.client.connection.proxies import ProxyRoute
from konverge.client.connection.sockets import open_socket, set_keep_alive
from konverge.client.connection.tls_buffers import limit_read_buffer
from konverge.errors import TransportError
from konverge.wire.messages import BufferedResponse, Request, Response, WebSocket
from konverge.wire.paths import request_target

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

    from konverge.client.connection.socks import SocksProxy

__all__ = ["AiohttpTransport"]

T = TypeVar("T")

_LIBRARY_ERRORS = (aiohttp.ClientError, HttpProcessingError, OSError)

_LARGE_BODY = 1 << 20
"""The library logs a warning for a larger body unless it is a file object."""

_HEADER_BYTES = 64 << 10
_REFUSAL_BYTES = 1 << 20
_MESSAGE_BYTES = 16 << 20
_CLOSE_TIMEOUT = aiohttp.ClientWSTimeout(ws_close=1.0)  # pyright: ignore[reportCallIssue]
_WHILE_CONNECTING = "while connecting"
_WHILE_AUTHENTICATING = "while waiting for credentials"
_CLOSED = "the transport is closed"


class _NoResponse(Exception):
    """There is no response; the text is the reason. The library does not know this class, so it does not retry."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class _Refused(Exception):
    """The server has refused an upgrade; the library would drop the body of its response."""

    def __init__(self, response: BufferedResponse) -> None:
        super().__init__(response.status)
        self.response = response


class AiohttpTransport:
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
        self._server = str(URL(config.server)).rstrip("/")
        self._proxy = ProxyRoute(config.proxy)
        self._headers = _default_headers(config, self._proxy)
        self._impersonation = config.impersonation.headers() if config.impersonation is not None else ()
        self._deadlines = Deadlines()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None
        # Cut on close: the library would let their readers wait for ever.
        self._open: WeakSet[_HttpResponse | _HttpWebSocket] = WeakSet()
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
        end = self._end(request)
        response = await self._count(request, end, lambda: self._send(request))
        wrapped = _HttpResponse(self, request, response, end)
        if not response.content.is_eof():
            self._open.add(wrapped)
        return wrapped

    async def open_websocket(self, request: Request, protocols: tuple[str, ...]) -> WebSocket | Response:
        """Upgrade a request to one of the subprotocols; return the response if the server refuses."""
        opened = await self._count(request, self._end(request), lambda: self._upgrade(request, protocols))
        if isinstance(opened, BufferedResponse):
            return opened
        wrapped = _HttpWebSocket(self, request, opened)
        self._open.add(wrapped)
        return wrapped

    def _end(self, request: Request) -> float | None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._start(loop)
        return None if request.timeout is None else loop.time() + request.timeout

    async def _count(self, request: Request, end: float | None, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work of a request until its end, and count it."""
        try:
            if end is not None and end <= asyncio.get_running_loop().time():
                raise self._error(request, "its timeout has passed already", sent=False)
            result = await self._within(end, work())
        except DeadlineReached as reached:
            self._failed += 1
            raise self._timeout_error(request, reached) from None
        except BaseException:
            self._failed += 1
            raise
        self._completed += 1
        return result

    async def close(self) -> None:
        """Close all connections; safe to call twice. Responses that are still being read are aborted."""
        self._closed = True
        for response in tuple(self._open):
            response.abort()
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
        """Await `work` until a time of the loop's clock; raise DeadlineReached when it is not done by then."""
        return await work if end is None else await self._deadlines.within(end, work)

    def _error(self, request: Request, what: str, *, sent: bool = True) -> TransportError:
        """Return the error of a request without a complete response."""
        return TransportError(f"{request.method} {self._server}{request.path}: {what}", sent=sent)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not None:
            raise RuntimeError("a transport belongs to the event loop of its first request (create one for each loop)")
        self._loop = loop
        self._calls = self._session(self._limits.connections)
        self._streams = self._session(0)

    def _session(self, connections: int) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=_Connector(connections, limits=self._limits, proxy=self._proxy),
            timeout=aiohttp.ClientTimeout(sock_connect=self._limits.connect, ceil_threshold=float("inf")),
            cookie_jar=aiohttp.DummyCookieJar(),
            response_class=_SingleAttemptResponse,
            auto_decompress=False,
            proxy=self._proxy.url,
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
        )

    async def _send(self, request: Request) -> aiohttp.ClientResponse:
        identity = await self._identity()
        response = await self._send_once(request, identity)
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
        return await self._send_once(request, renewed)

    async def _identity(self) -> Identity:
        try:
            return await self._config.credentials.identity()
        except asyncio.CancelledError as error:
            error.add_note(_WHILE_AUTHENTICATING)
            raise

    async def _send_once(self, request: Request, identity: Identity) -> aiohttp.ClientResponse:
        session = self._streams if request.stream else self._calls
        if self._closed or session is None:
            raise self._error(request, _CLOSED, sent=False)
        try:
            return await session.request(
                request.method,
                URL(self._server + request_target(request.path, request.query), encoded=True),
                headers=self._headers_of(request, identity),
                data=_data(request.body),
                allow_redirects=False,
                ssl=self._config.ssl_context(identity) or True,
                server_hostname=self._config.tls.server_name,
                proxy_headers=self._proxy.headers,
            )
        except _NoResponse as error:
            raise self._error(request, str(error), sent=error.sent) from error.__cause__
        except _LIBRARY_ERRORS as error:
            raise self._error(request, _describe_response_error(error)) from _root_cause(error)

    async def _upgrade(
        self, request: Request, protocols: tuple[str, ...]
    ) -> aiohttp.ClientWebSocketResponse | BufferedResponse:
        identity = await self._identity()
        try:
            return await self._upgrade_once(request, protocols, identity)
        except _Refused as refused:
            renewed = await self._config.credentials.renew(identity) if refused.response.status == 401 else None
            if renewed is None:
                return refused.response
        self._renewed += 1
        try:
            return await self._upgrade_once(request, protocols, renewed)
        except _Refused as refused:
            return refused.response

    async def _upgrade_once(
        self, request: Request, protocols: tuple[str, ...], identity: Identity
    ) -> aiohttp.ClientWebSocketResponse:
        if self._closed or self._streams is None:
            raise self._error(request, _CLOSED, sent=False)
        try:
            return await self._streams.ws_connect(
                URL(self._server + request_target(request.path, request.query), encoded=True),
                protocols=protocols,
                headers=self._headers_of(request, identity),
                max_msg_size=_MESSAGE_BYTES,
                timeout=_CLOSE_TIMEOUT,
                ssl=self._config.ssl_context(identity) or True,
                server_hostname=self._config.tls.server_name,
                proxy_headers=self._proxy.headers,
            )
        except _NoResponse as error:
            raise self._error(request, str(error), sent=error.sent) from error.__cause__
        except aiohttp.WSServerHandshakeError as error:
            raise self._error(request, f"the upgrade failed: {error.message}") from None
        except _LIBRARY_ERRORS as error:
            raise self._error(request, _describe_response_error(error)) from _root_cause(error)

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

    def _timeout_error(self, request: Request, reached: DeadlineReached) -> TransportError:
        notes = getattr(reached.__cause__, "__notes__", ())
        if _WHILE_AUTHENTICATING in notes:
            what = f"no credentials within {request.timeout:g} s: {self._config.credentials!r} was not done"
            return self._error(request, what, sent=False)
        connecting = _WHILE_CONNECTING in notes
        what = "no connection" if connecting else "no response"
        return self._error(request, f"{what} within {request.timeout:g} s", sent=not connecting)


class _HttpResponse:
    """A response whose body is being read. After the last byte its connection returns to the pool."""

    def __init__(
        self, transport: AiohttpTransport, request: Request, response: aiohttp.ClientResponse, end: float | None
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
        received = self._response.headers
        return {name.lower(): ", ".join(received.getall(name)) for name in received}

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._response.headers.getall("warning", ()))

    async def read(self) -> bytes:
        if self._body is None:
            body = self._read_buffered()
            self._body = body if body is not None else await self._read()
        return self._body

    def chunks(self) -> AsyncIterator[bytes]:
        return Chunks(self._receive if self._end is None else self._receive_in_time, self._encoding)

    def abort(self) -> None:
        """Close the connection at once; a pending read raises TransportError."""
        _abort(self._response.connection)
        self._response.close()

    async def close(self) -> None:
        self.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def _read_buffered(self) -> bytes | None:
        """Return the body if all of it arrived with the headers, as small ones do, else None."""
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
        body = read_all(Chunks(self._receive, self._encoding), limit=limit)
        try:
            return await self._transport._within(self._end, body)
        except DeadlineReached:
            raise self._timeout_error() from None

    async def _receive(self) -> bytes:
        try:
            chunk = await self._response.content.readany()
        except _LIBRARY_ERRORS as error:
            raise self._cut_error(error) from _root_cause(error)
        self._received += len(chunk)
        return chunk

    async def _receive_in_time(self) -> bytes:
        try:
            return await self._transport._within(self._end, self._receive())
        except DeadlineReached:
            raise self._timeout_error() from None

    @property
    def _encoding(self) -> str:
        return self._response.headers.get("content-encoding", "")

    def _timeout_error(self) -> TransportError:
        timeout = f"within {self._request.timeout:g} s"
        return self._transport._error(
            self._request, f"no complete response {timeout}, received {self._received} bytes of the body"
        )

    def _cut_error(self, error: Exception) -> TransportError:
        reason = "" if isinstance(error, aiohttp.ClientPayloadError) else f" ({_describe_response_error(error)})"
        return self._transport._error(
            self._request, f"the response ended in the middle of the body, after {self._received} bytes{reason}"
        )


class _HttpWebSocket:
    """An open WebSocket."""

    def __init__(
        self, transport: AiohttpTransport, request: Request, websocket: aiohttp.ClientWebSocketResponse
    ) -> None:
        self._transport = transport
        self._request = request
        self._websocket = websocket
        self.protocol = websocket.protocol or ""

    async def send(self, message: bytes) -> None:
        try:
            await self._websocket.send_bytes(message)
        except _LIBRARY_ERRORS as error:
            raise self._transport._error(self._request, "the connection is closed") from _root_cause(error)

    async def receive(self) -> bytes | None:
        message = await self._websocket.receive()
        if message.type is aiohttp.WSMsgType.BINARY:
            content: bytes = message.data
            return content
        if message.type is aiohttp.WSMsgType.TEXT:
            text: str = message.data
            return text.encode()
        if self._websocket.close_code in (aiohttp.WSCloseCode.OK, aiohttp.WSCloseCode.GOING_AWAY):
            return None
        raise self._transport._error(self._request, "the connection was cut")

    def abort(self) -> None:
        """Close the connection at once; a pending receive raises TransportError."""
        response = self._websocket._response
        _abort(response.connection)
        response.close()

    async def close(self) -> None:
        with suppress(*_LIBRARY_ERRORS):
            await self._websocket.close()


class _SingleAttemptResponse(aiohttp.ClientResponse):
    """A response that replaces the errors after which the library would retry by one that it does not know."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        try:
            started = await super().start(connection)
            if self.status != 101 and "upgrade" in self.request_info.headers:
                body = await read_all(self.content.iter_any(), limit=_REFUSAL_BYTES)
                headers = {name.lower(): value for name, value in self.headers.items()}
                raise _Refused(BufferedResponse(self.status, body, headers))
            return started
        except BaseException as error:
            _abort(connection)
            if isinstance(error, _LIBRARY_ERRORS):
                raise _NoResponse(_describe_response_error(error), sent=True) from _root_cause(error)
            raise


class _Connector(aiohttp.TCPConnector):
    """Opens connections, and describes why one cannot be opened."""

    def __init__(self, connections: int, *, limits: Limits, proxy: ProxyRoute) -> None:
        super().__init__(
            limit=connections,
            keepalive_timeout=limits.idle,
            resolver=aiohttp.ThreadedResolver(),
            socket_factory=partial(open_socket, limits=limits),
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
                raise _NoResponse(_CLOSED, sent=False) from None
            error.add_note(_WHILE_CONNECTING)
            raise
        except (*_LIBRARY_ERRORS, UnicodeError) as error:  # UnicodeError: a host name that cannot be encoded
            proxy = f" (through the proxy {self._proxy.display_url})" if self._proxy.display_url else ""
            reason = _CLOSED if self.closed else _describe_connection_error(error, self._limits.connect)
            raise _NoResponse(reason + proxy, sent=False) from _root_cause(error)

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        if self._proxy.tunnel is None:
            connection = await super()._create_connection(req, traces, timeout)
        else:
            connection = await self._connect_through(self._proxy.tunnel, req, timeout)
        limit_read_buffer(connection.transport)
        return connection

    async def _connect_through(
        self, tunnel: SocksProxy, req: aiohttp.ClientRequest, timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        context = req.ssl if isinstance(req.ssl, ssl.SSLContext) else None
        name = (req.server_hostname or req.host).rstrip(".") if context else None
        async with asyncio.timeout(timeout.sock_connect):
            sock = await tunnel.open(req.host, req.port or 443)
            try:
                set_keep_alive(sock, self._limits.peer_timeout)
                _, protocol = await self._loop.create_connection(
                    self._factory, sock=sock, ssl=context, server_hostname=name
                )
            except BaseException:
                sock.close()
                raise
        return protocol


def _default_headers(config: ClientConfig, proxy: ProxyRoute) -> CIMultiDict[str]:
    # These are all headers that the library would add: setting them costs less than disabling each default.
    encoding = "identity" if config.disable_compression else "gzip"
    headers = CIMultiDict({"user-agent": config.user_agent, "accept": "*/*", "accept-encoding": encoding})
    if proxy.headers is not None and not config.secure:
        # Without TLS there is no CONNECT request: the proxy receives the request itself.
        headers.update(proxy.headers)
    return headers


def _data(body: bytes) -> bytes | io.BytesIO | None:
    return io.BytesIO(body) if len(body) > _LARGE_BODY else body or None


def _abort(connection: Connection | None) -> None:
    """Abort a connection without a TLS shutdown, which would wait for a peer that may be gone."""
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


def _root_cause(error: BaseException) -> BaseException | None:
    """Return the cause of the library's error, which may itself contain headers; None if it has no cause."""
    while isinstance(error, aiohttp.ClientError):
        if error.__cause__ is None:
            return None
        error = error.__cause__
    return error


def _describe_connection_error(error: BaseException, limit: float) -> str:
    root = _root_cause(error)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy refused the connection: HTTP {error.status} {error.message}"
    if isinstance(error, aiohttp.ClientResponseError | HttpProcessingError):
        return "the response of the proxy is not HTTP"
    if type(root) is TimeoutError and root.errno is None:
        return f"no connection within {limit:g} s"
    if isinstance(error, aiohttp.InvalidURL | UnicodeError):
        return "the address is not valid"
    return describe_error(root) if root is not None else "the connection was closed before the request was sent"


def _describe_response_error(error: BaseException) -> str:
    root = _root_cause(error)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection without a response"
    if isinstance(error, aiohttp.ClientResponseError | HttpProcessingError):
        first_line = str(error.message).partition("\n")[0].rstrip(" :")
        return f"the response is not HTTP: {first_line[:200]}"
    return describe_error(root) if root is not None else "the connection was closed"
