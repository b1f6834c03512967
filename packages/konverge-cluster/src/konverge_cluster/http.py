"""The HTTP server: an API server on a port, over HTTP or HTTPS.

This module reads requests from sockets, authenticates them and writes responses; it has no Kubernetes semantics. Rules:

1. It listens on loopback by default, and by default requires a token or a client certificate. A Host header with
   another name is rejected, which prevents DNS rebinding: a page in a browser cannot reach the server under a name that
   resolves to this address.
2. A body over the limit is rejected as soon as its size is known, and a body that does not arrive in time is rejected.
   Connections without a request of an authenticated client, or a complete one of an anonymous client, are limited:
   of those the oldest is closed, and each is closed after some seconds. Connections of authenticated clients, watches
   among them, are never limited.
3. A watch is written event by event; the watch ends when the client disconnects. So does what a WebSocket serves.
4. `stop` takes at most a few seconds, even if clients keep idle connections, do not read, or do not close.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import parse_qsl

from aiohttp import WSMsgType, web
from aiohttp.http_exceptions import HttpProcessingError

from konverge.errors import TransportError
from konverge.listener import ConnectionLimits, Listener
from konverge.wire.messages import Request
from konverge_cluster.api import status_errors
from konverge_cluster.api.authorization import ADMIN, ANONYMOUS, UserInfo
from konverge_cluster.api.bodies import BODY_LIMIT
from konverge_cluster.api.responses import Response, ServeWebSocket, error_response
from konverge_cluster.authentication.authenticator import Authenticator

__all__ = ["HttpServer"]

Handler = Callable[[Request, UserInfo], Awaitable[Response]]

_BODY_TIMEOUT: Final = 60.0
_SHUTDOWN_TIMEOUT: Final = 1.0
_MESSAGE_BYTES: Final = 1 << 20
_LINE_BYTES: Final = 1 << 20
"""The limit of Go's HTTP server; the arguments of a command are in the URL."""

_LIMITS: Final = ConnectionLimits(waiting=256, first_request=20.0)
_HEALTH: Final = ("/healthz", "/livez", "/readyz")


class HttpServer:
    """An HTTP server that passes requests to `handle`.

    `authenticator` authenticates clients; with None every client is the admin. `hosts` are the names that are accepted
    in a Host header, besides loopback addresses and the address of the listener.
    """

    def __init__(
        self,
        handle: Handler,
        *,
        authenticator: Authenticator | None,
        tls: ssl.SSLContext | None = None,
        hosts: tuple[str, ...] = ("localhost",),
    ) -> None:
        self._handle = handle
        self._authenticator = authenticator
        self._tls = tls
        self._hosts = hosts
        self._server: web.Server | None = None
        self._listener: Listener | None = None
        self.address = ""
        self.port = 0

    @property
    def url(self) -> str:
        scheme = "https" if self._tls else "http"
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{scheme}://{host}:{self.port}"

    async def start(self, address: str = "127.0.0.1", port: int = 0) -> None:
        """Start to listen; port 0 selects a free port."""
        self._server = web.Server(
            self._handle_request, handler_cancellation=True, access_log=None, max_line_size=_LINE_BYTES
        )
        self._listener = await Listener.open(self._server, address, port, limits=_LIMITS, ssl=self._tls, backlog=1024)
        self.address, self.port = self._listener.address, self._listener.port

    async def stop(self) -> None:
        """Stop listening. Active requests have one second to finish, and another one to be cancelled."""
        listener = self._listener
        server, self._server = self._server, None
        if listener is None or server is None:
            return
        listener.close()
        transports = [each.transport for each in server.connections]
        # Closes idle connections at once; `shutdown` alone would wait for them as for active ones.
        server.pre_shutdown()
        await server.shutdown(timeout=_SHUTDOWN_TIMEOUT)
        for each in transports:
            # A closed transport first flushes its write buffer, and this client does not read. A TLS transport that is
            # already closed raises AttributeError.
            with contextlib.suppress(AttributeError):
                if each is not None and each.get_write_buffer_size():
                    each.abort()
        await listener.drop()

    async def _handle_request(self, request: web.BaseRequest) -> web.StreamResponse:
        assert self._listener is not None
        try:
            user = self._user(request)
            if user is ANONYMOUS:
                body = await _read(request)
                with self._listener.serving(request.transport):
                    return await self._respond(request, body, user)
            with self._listener.serving(request.transport, trusted=True):
                return await self._respond(request, await _read(request), user)
        except status_errors.StatusError as error:
            return _to_web_response(error_response(error))

    async def _respond(self, request: web.BaseRequest, body: bytes, user: UserInfo) -> web.StreamResponse:
        response = await self._handle(_to_request(request, body), user)
        if response.websocket is not None:
            return await _serve_websocket(request, response.headers, response.websocket)
        if response.stream is None:
            return _to_web_response(response)
        return await _stream_response(request, response)

    def _user(self, request: web.BaseRequest) -> UserInfo:
        if not self._is_allowed_host(request.headers.get("Host", "")):
            raise status_errors.failure(403, "the Host header names another server", "Forbidden")
        if self._authenticator is None:
            return ADMIN
        authorization = request.headers.get("Authorization", "")
        try:
            return self._authenticator.authenticate(authorization, _client_certificate(request))
        except status_errors.StatusError:
            # Probes come without credentials; they must work also where every request is allowed.
            if authorization or request.path not in _HEALTH:
                raise
            return ANONYMOUS

    def _is_allowed_host(self, host: str) -> bool:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        name = name.strip("[]")
        if name in self._hosts or name == self.address:
            return True
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False


def _client_certificate(request: web.BaseRequest) -> bytes | None:
    """Return the verified client certificate of a connection (DER), None when the client has sent none."""
    tls = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
    certificate: bytes | None = tls.getpeercert(binary_form=True) if tls is not None else None
    return certificate


async def _read(request: web.BaseRequest) -> bytes:
    if not request.can_read_body:
        return b""
    length = request.content_length
    if length is not None and length > BODY_LIMIT:
        raise status_errors.too_large(f"limit is {BODY_LIMIT}")
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(_BODY_TIMEOUT):
            async for chunk in request.content.iter_any():
                chunks.append(chunk)
                size += len(chunk)
                if size > BODY_LIMIT:
                    raise status_errors.too_large(f"limit is {BODY_LIMIT}")
    except TimeoutError:
        raise status_errors.timeout("the body of the request did not come in time") from None
    except HttpProcessingError as error:
        raise status_errors.bad_request(f"the body of the request cannot be read: {error.message}") from None
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _to_request(request: web.BaseRequest, body: bytes) -> Request:
    query = request.rel_url.raw_query_string
    return Request(
        request.method,
        request.path,
        tuple(parse_qsl(query, keep_blank_values=True)) if query else (),
        _headers(request),
        body=body,
    )


def _headers(request: web.BaseRequest) -> dict[str, str]:
    """Return the headers by name in lower case; only those for impersonation keep more than one value."""
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        key = name.lower()
        repeated = key in headers and key.startswith("impersonate-")
        headers[key] = f"{headers[key]}\n{value}" if repeated else value
    return headers


def _to_web_response(response: Response) -> web.Response:
    web_response = web.Response(status=response.status, body=response.body, headers=response.headers)
    for warning in response.warnings:
        web_response.headers.add("Warning", warning)
    return web_response


async def _stream_response(request: web.BaseRequest, response: Response) -> web.StreamResponse:
    web_response = web.StreamResponse(status=response.status, headers=response.headers)
    for warning in response.warnings:
        web_response.headers.add("Warning", warning)
    web_response.enable_chunked_encoding()
    try:
        await web_response.prepare(request)
        async for chunk in response.chunks():
            await web_response.write(chunk)
        await web_response.write_eof()
    except ConnectionError:
        # The client has disconnected; most watches end this way.
        pass
    finally:
        await response.close()
    return web_response


async def _serve_websocket(
    request: web.BaseRequest, headers: Mapping[str, str], serve: ServeWebSocket
) -> web.WebSocketResponse:
    response = web.WebSocketResponse(protocols=(headers["sec-websocket-protocol"],), max_msg_size=_MESSAGE_BYTES)
    await response.prepare(request)
    try:
        await serve(_WebSocket(response))
    finally:
        await response.close()
    return response


class _WebSocket:
    """The server's side of a WebSocket; a message of the client that is too long closes it."""

    def __init__(self, response: web.WebSocketResponse) -> None:
        self._response = response
        self.protocol = response.ws_protocol or ""

    async def send(self, message: bytes) -> None:
        try:
            await self._response.send_bytes(message)
        except (ConnectionError, RuntimeError) as error:
            raise TransportError("the client has closed the connection") from error

    async def receive(self) -> bytes | None:
        message = await self._response.receive()
        if message.type is WSMsgType.TEXT:
            text: str = message.data
            return text.encode()
        content: bytes | None = message.data if message.type is WSMsgType.BINARY else None
        return content

    async def close(self) -> None:
        await self._response.close()
