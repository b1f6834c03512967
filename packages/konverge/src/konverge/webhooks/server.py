"""The HTTPS server of webhooks: sockets and TLS in front of `Webhooks`. Rules:

1. Everything is limited: handshake, first request and body have a timeout, bodies a size, connections and buffered
   bytes a maximum, by default a share of the memory that the container may use. A client without a complete request
   never keeps a review out: of those that wait the oldest is closed.
2. Every rejection is a Status as JSON, so that its message reaches the client of the write.
3. A connection outlives its certificate: a new certificate is used for new handshakes only.
4. An idle connection is kept open longer than the API server keeps it (90 s), so that the API server closes it. The
   other way round a review is sometimes sent on a connection that is being closed, and is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from konverge.client.access.tls import CertificatePair
from konverge.listener import Listener
from konverge.objects import Duration
from konverge.webhooks.endpoints import DEFAULT_TIMEOUT, WebhookResponse, Webhooks
from konverge.webhooks.limits import ServerLimits, memory_limit
from konverge.webhooks.reviews import failure_body

__all__ = ["ServerStats", "WebhookServer"]

_JSON: Final = "application/json"
_KEEPALIVE: Final = 180.0
_log = logging.getLogger("konverge.webhooks")


@dataclass(frozen=True, slots=True)
class ServerStats:
    """Counts of the server: certificate reloads, open connections, requests by result, bytes in memory."""

    reloads: int
    connections: int
    handled: int
    rejected: int
    buffered: int


class _Rejected(Exception):
    """A request that does not reach a webhook; the connection is closed after the response."""

    def __init__(self, code: int, message: str, *, allow: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.allow = allow


class WebhookServer:
    """Serves webhooks over HTTPS (TLS 1.2 and later) inside `async with`; `GET /healthz` returns "ok".

    Promises: `set_certificate` drops no connection and no review; an invalid pair leaves the current one in use; `stop`
    lets running reviews finish within `grace` seconds, and leaves no connection open.

    Assumes: `set_certificate` is called before the server starts, and always on its loop.
    """

    def __init__(
        self,
        webhooks: Webhooks,
        *,
        host: str | None = None,
        port: int = 9443,
        limits: ServerLimits | None = None,
        grace: float = 10.0,
    ) -> None:
        self.webhooks = webhooks
        self.port = port
        self._host = host
        self._limits = limits or ServerLimits.within(memory_limit())
        self._grace = grace
        self._tls = _context()
        self._pair: CertificatePair | None = None
        self._server: web.Server | None = None
        self._listener: Listener | None = None
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._reloads = self._handled = self._rejected = self._buffered = 0

    @property
    def pair(self) -> CertificatePair | None:
        """The certificate for new connections."""
        return self._pair

    def set_certificate(self, pair: CertificatePair) -> None:
        """Use this certificate for new connections.

        Raises: ValueError when the certificate and the key do not form a pair; the current one stays in use.
        """
        if pair == self._pair:
            return
        try:
            # On another context first: the live one would reject every handshake after loading half of a pair.
            pair.load_into(_context())
            pair.load_into(self._tls)
        except ssl.SSLError as error:
            raise ValueError(f"the certificate and its key do not form a pair ({error.reason})") from None
        self._pair = pair
        self._reloads += 1

    def stats(self) -> ServerStats:
        connections = len(self._server.connections) if self._server is not None else 0
        return ServerStats(self._reloads, connections, self._handled, self._rejected, self._buffered)

    async def start(self) -> None:
        """Start listening; with port 0 a free one is chosen and stored in `port`.

        Raises: RuntimeError without a certificate, OSError when the port cannot be bound.
        """
        if self._pair is None:
            raise RuntimeError("the server has no certificate: call set_certificate(pair) first")
        self._server = web.Server(
            self._handle,
            access_log=None,
            keepalive_timeout=_KEEPALIVE,
            handler_cancellation=True,
            logger=_disabled_logger(),
        )
        self._listener = await Listener.open(
            self._server,
            self._host,
            self.port,
            limits=self._limits.of_connections(),
            ssl=self._tls,
            backlog=1024,
            ssl_handshake_timeout=self._limits.handshake,
        )
        self.port = self._listener.port

    async def stop(self) -> None:
        """Accept no new connections, let running reviews end, then close. Safe to call twice."""
        listener = self._listener
        server, self._server = self._server, None
        if listener is None or server is None:
            return
        listener.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                await self._idle.wait()
        transports = [protocol.transport for protocol in server.connections]
        await server.shutdown(timeout=0.1)
        for transport in transports:
            # A TLS shutdown needs a reply of the peer, and a client may keep its connection open for later requests.
            if isinstance(transport, asyncio.Transport):
                transport.abort()
        await listener.drop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self._in_flight += 1
        self._idle.clear()
        try:
            response = await self._dispatch(request)
            self._handled += 1
            return _http_response(response)
        except _Rejected as rejected:
            self._rejected += 1
            return _rejection(rejected)
        except Exception as error:
            self._rejected += 1
            _log.error("webhook server failed", exc_info=error, extra={"path": request.path})
            return _rejection(_Rejected(500, "the webhook server failed; see the log of the operator"))
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    async def _dispatch(self, request: web.BaseRequest) -> WebhookResponse:
        path = request.path
        if path == "/healthz":
            if request.method not in ("GET", "HEAD"):
                raise _Rejected(405, f"{request.method} is not allowed", allow="GET, HEAD")
            return WebhookResponse(200, b"ok")
        if path not in self.webhooks.paths:
            raise _Rejected(404, f"there is no webhook at {path:.200}")
        if request.method != "POST":
            raise _Rejected(405, "a review must be sent with POST", allow="POST")
        if request.content_type != _JSON or request.headers.get("Content-Encoding", "identity") != "identity":
            raise _Rejected(415, f"a review must be {_JSON}, not compressed")
        timeout = _timeout(request)
        started = asyncio.get_running_loop().time()
        limit = self._limits.conversion_body if self.webhooks.is_conversion(path) else self._limits.body
        chunks: list[bytes] = []
        try:
            await self._read(request, chunks, limit, min(self._limits.read, timeout))
            body = b"".join(chunks)
            remaining = timeout - (asyncio.get_running_loop().time() - started)
            assert self._listener is not None
            with self._listener.serving(request.transport):
                return await self.webhooks.handle(path, body, timeout=max(remaining, 0.0))
        finally:
            self._buffered -= sum(map(len, chunks))

    async def _read(self, request: web.BaseRequest, chunks: list[bytes], limit: int, seconds: float) -> None:
        if (request.content_length or 0) > limit:
            raise _too_large(limit)
        size = 0
        try:
            async with asyncio.timeout(seconds):
                async for chunk in request.content.iter_any():
                    chunks.append(chunk)
                    self._buffered += len(chunk)
                    size += len(chunk)
                    if size > limit:
                        raise _too_large(limit)
                    if self._buffered > self._limits.buffered:
                        raise _Rejected(503, "too many reviews are being read")
        except TimeoutError:
            raise _Rejected(408, f"the body did not arrive within {seconds:g} s") from None
        except (HttpProcessingError, web.RequestPayloadError):
            raise _Rejected(400, "the body is not valid HTTP") from None


def _disabled_logger() -> logging.Logger:
    """Return a disabled logger: the library would log a traceback for each request that is not valid HTTP."""
    logger = logging.Logger("http")
    logger.disabled = True
    return logger


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # A resumed session would not use the current certificate.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    return context


def _timeout(request: web.BaseRequest) -> float:
    text = request.query.get("timeout", "")
    try:
        seconds = Duration(text).seconds if text else DEFAULT_TIMEOUT
    except ValueError:
        raise _Rejected(400, f"timeout={text:.50} is not a duration: write 10s") from None
    return seconds if seconds > 0 else DEFAULT_TIMEOUT


def _too_large(limit: int) -> _Rejected:
    return _Rejected(413, f"the review is larger than {limit} bytes")


def _http_response(response: WebhookResponse) -> web.Response:
    content_type = _JSON if response.body != b"ok" else "text/plain"
    return web.Response(status=response.code, body=response.body, content_type=content_type)


def _rejection(rejected: _Rejected) -> web.Response:
    response = web.Response(status=rejected.code, body=failure_body(rejected.code, str(rejected)), content_type=_JSON)
    if rejected.allow:
        response.headers["Allow"] = rejected.allow
    response.force_close()
    return response
