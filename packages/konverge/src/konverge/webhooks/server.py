"""The HTTPS server of webhooks: sockets and TLS in front of `Webhooks`. Rules that hold here:

1. Nobody is trusted to be quick or small: handshake, first request and body have each a time, bodies a size,
   connections and buffered bytes a number. What is slow holds no turn of a review.
2. Every refusal is a Status as JSON, so that its message reaches whoever waits for the write.
3. A connection outlives the certificate that it was made with: a swap counts for new handshakes only.
4. An idle connection is kept longer than the API server keeps it (90 s), so that the API server is the one who closes:
   the other way round a review now and then meets a closing connection, and is lost.
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
from konverge.webhooks.endpoints import DEADLINE, Answer, Webhooks
from konverge.webhooks.reviews import failure_body

__all__ = ["ServerLimits", "ServerStats", "WebhookServer"]

_JSON: Final = "application/json"
_MIB: Final = 1 << 20
_KEPT: Final = 180.0
_log = logging.getLogger("konverge.webhooks")


@dataclass(frozen=True)
class ServerLimits:
    """How much of everything. Sizes are bytes, times seconds.

    `body` holds for admission reviews: one object, its old state, and what surrounds them. A conversion review holds a
    whole list. `buffered` is the sum of all bodies that are in memory.
    """

    body: int = 7 * _MIB
    conversion_body: int = 64 * _MIB
    buffered: int = 256 * _MIB
    connections: int = 1000
    handshake: float = 10.0
    first_request: float = 10.0
    read: float = 10.0


@dataclass(frozen=True, slots=True)
class ServerStats:
    """What the server did: `swaps` of certificates, `connections` open, requests by outcome, bytes in memory."""

    swaps: int
    connections: int
    answered: int
    refused: int
    buffered: int


class _Refused(Exception):
    """A request that does not reach a webhook; the connection is closed after the answer."""

    def __init__(self, code: int, message: str, *, allow: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.allow = allow


class _Turned(asyncio.Protocol):
    """A connection too many: closed as soon as it is there."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


class WebhookServer:
    """Serves webhooks over HTTPS (TLS 1.2 and later) from `async with` on; `GET /healthz` answers "ok".

    Promises: `swap` drops no connection and no review; a pair that is no good leaves the one in use; stopping lets
    reviews that run finish within `grace` seconds, and leaves no connection behind.

    Assumes: `swap` was called once before the server starts, and is called from its loop.
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
        self._limits = limits or ServerLimits()
        self._grace = grace
        self._tls = _context()
        self._pair: CertificatePair | None = None
        self._server: web.Server | None = None
        self._listener: Listener | None = None
        self._silent: dict[asyncio.BaseProtocol, asyncio.TimerHandle] = {}
        self._busy = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._swaps = self._answered = self._refused = self._buffered = 0

    @property
    def pair(self) -> CertificatePair | None:
        """The certificate that new connections are shown."""
        return self._pair

    def swap(self, pair: CertificatePair) -> None:
        """Show this certificate to connections that are made from now on.

        Raises: ValueError when the certificate and the key do not form a pair; the one in use stays.
        """
        if pair == self._pair:
            return
        try:
            # On a context of its own first: a live one that takes only half of a pair would refuse everybody.
            pair.load_into(_context())
            pair.load_into(self._tls)
        except ssl.SSLError as error:
            raise ValueError(f"the certificate and its key do not form a pair ({error.reason})") from None
        self._pair = pair
        self._swaps += 1

    def stats(self) -> ServerStats:
        connections = len(self._server.connections) if self._server is not None else 0
        return ServerStats(self._swaps, connections, self._answered, self._refused, self._buffered)

    async def start(self) -> None:
        """Listen; port 0 takes a free one, which `port` then tells.

        Raises: RuntimeError without a certificate, OSError when the port cannot be had.
        """
        if self._pair is None:
            raise RuntimeError("the server has no certificate: call swap(pair) first")
        self._server = web.Server(
            self._answer, access_log=None, keepalive_timeout=_KEPT, handler_cancellation=True, logger=_nobody()
        )
        self._listener = await Listener.open(
            self._connection,
            self._host,
            self.port,
            ssl=self._tls,
            backlog=1024,
            ssl_handshake_timeout=self._limits.handshake,
        )
        self.port = self._listener.port

    async def stop(self) -> None:
        """Take no new connections, let running reviews end, close. Safe to call twice."""
        listener, self._listener = self._listener, None
        server, self._server = self._server, None
        if listener is None or server is None:
            return
        listener.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                await self._idle.wait()
        for timer in self._silent.values():
            timer.cancel()
        self._silent.clear()
        left = [protocol.transport for protocol in server.connections]
        await server.shutdown(timeout=0.1)
        for transport in left:
            # A goodbye in TLS needs an answer, and who called may keep its connection for later calls.
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

    # Connections

    def _connection(self) -> asyncio.Protocol:
        server = self._server
        if server is None or len({*server.connections, *self._silent}) >= self._limits.connections:
            return _Turned()
        protocol = server()
        patience = self._limits.handshake + self._limits.first_request
        timer = asyncio.get_running_loop().call_later(patience, self._drop_silent, protocol)
        self._silent[protocol] = timer
        return protocol

    def _drop_silent(self, protocol: asyncio.BaseProtocol) -> None:
        self._silent.pop(protocol, None)
        transport = getattr(protocol, "transport", None)
        if isinstance(transport, asyncio.Transport):
            transport.abort()

    def _heard(self, protocol: asyncio.BaseProtocol | None) -> None:
        timer = self._silent.pop(protocol, None) if protocol is not None else None
        if timer is not None:
            timer.cancel()

    # Requests

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self._heard(request.protocol)
        self._busy += 1
        self._idle.clear()
        try:
            answer = await self._understood(request)
            self._answered += 1
            return _response(answer)
        except _Refused as refused:
            self._refused += 1
            return _closing(refused)
        except Exception as error:
            self._refused += 1
            _log.error("The webhook server failed", exc_info=error, extra={"path": request.path})
            return _closing(_Refused(500, "the webhook server failed; the log of the operator says why"))
        finally:
            self._busy -= 1
            if not self._busy:
                self._idle.set()

    async def _understood(self, request: web.BaseRequest) -> Answer:
        path = request.path
        if path == "/healthz":
            if request.method not in ("GET", "HEAD"):
                raise _Refused(405, f"{request.method} is not possible here", allow="GET, HEAD")
            return Answer(200, b"ok")
        if path not in self.webhooks.paths:
            raise _Refused(404, f"no webhook answers at {path:.200}")
        if request.method != "POST":
            raise _Refused(405, "a review is sent by POST", allow="POST")
        if request.content_type != _JSON or request.headers.get("Content-Encoding", "identity") != "identity":
            raise _Refused(415, f"a review is {_JSON}, not compressed")
        timeout = _timeout(request)
        began = asyncio.get_running_loop().time()
        limit = self._limits.conversion_body if self.webhooks.converts(path) else self._limits.body
        chunks: list[bytes] = []
        try:
            await self._read(request, chunks, limit, min(self._limits.read, timeout))
            body = b"".join(chunks)
            left = timeout - (asyncio.get_running_loop().time() - began)
            return await self.webhooks.answer(path, body, timeout=max(left, 0.0))
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
                        raise _Refused(503, "too many reviews are being read")
        except TimeoutError:
            raise _Refused(408, f"the body did not come within {seconds:g} s") from None
        except (HttpProcessingError, web.RequestPayloadError):
            raise _Refused(400, "the body is no HTTP") from None


def _nobody() -> logging.Logger:
    """A log that nobody reads: the library would write a traceback for each request that is no HTTP."""
    logger = logging.Logger("http")
    logger.disabled = True
    return logger


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # A session that is taken up again would not show the certificate of today.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    return context


def _timeout(request: web.BaseRequest) -> float:
    text = request.query.get("timeout", "")
    try:
        seconds = Duration(text).seconds if text else DEADLINE
    except ValueError:
        raise _Refused(400, f"timeout={text:.50} is no duration: write 10s") from None
    return seconds if seconds > 0 else DEADLINE


def _too_large(limit: int) -> _Refused:
    return _Refused(413, f"the review is larger than {limit} bytes")


def _response(answer: Answer) -> web.Response:
    kind = _JSON if answer.body != b"ok" else "text/plain"
    return web.Response(status=answer.code, body=answer.body, content_type=kind)


def _closing(refused: _Refused) -> web.Response:
    response = web.Response(status=refused.code, body=failure_body(refused.code, str(refused)), content_type=_JSON)
    if refused.allow:
        response.headers["Allow"] = refused.allow
    response.force_close()
    return response
