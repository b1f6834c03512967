"""An HTTP proxy between a client and an API server that injects faults.

    async with FaultProxy(plane) as proxy:
        proxy.script.add(watches("configmaps"), connection_reset(after=100), times=1)
        async with Client.connect(proxy.config) as client:
            ...

It works on HTTP: requests are logged, bodies can be changed. `konverge.testing.raw_proxy` works on TCP connections.
"""

from __future__ import annotations

import asyncio
import ssl
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl
from weakref import WeakKeyDictionary

from aiohttp import web

from konverge.certificates import Authority
from konverge.client import ClientConfig, HttpTransport, load_config
from konverge.client.access.tls import CertificatePair, Tls
from konverge.errors import TransportError
from konverge.listener import Listener
from konverge.testing.control_plane import ControlPlane
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import FaultScript, RecordedRequest
from konverge.wire.messages import Request, Response

__all__ = ["FaultProxy", "config_of"]

_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "content-encoding", "keep-alive", "date", "server"}
_NOT_FORWARDED = {"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "keep-alive"}
_TIMEOUT = 60.0
_SHUTDOWN_TIMEOUT = 0.01  # the library takes 0 as no limit


def config_of(upstream: ControlPlane | ClientConfig) -> ClientConfig:
    """Return the client configuration of a control plane, as its admin."""
    return load_config(kubeconfig=upstream.kubeconfig) if isinstance(upstream, ControlPlane) else upstream


class FaultProxy:
    """Listens on loopback and forwards to an API server, as the script allows.

    Promises: without a rule a client notices no difference; `config` connects to the proxy, over TLS with a certificate
    authority of its own. Requests are forwarded with the credentials of `upstream`, unless they have an Authorization
    header. `script.log` has every request in order; `connections` has the time of each connection.
    """

    def __init__(self, upstream: ControlPlane | ClientConfig, *, script: FaultScript | None = None) -> None:
        self._upstream = config_of(upstream)
        self.script = script or FaultScript()
        self.connections: list[float] = []
        self._numbers: WeakKeyDictionary[asyncio.BaseTransport, int] = WeakKeyDictionary()
        self._authority = Authority("konverge-fault-proxy-ca")
        self._transport: FaultTransport | None = None
        self._server: web.Server | None = None
        self._listener: Listener | None = None

    async def __aenter__(self) -> Self:
        self._transport = FaultTransport(HttpTransport(self._upstream), self.script)
        self._server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        await self._listen(0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop_listening()
        if self._transport is not None:
            await self._transport.close()

    @property
    def config(self) -> ClientConfig:
        """The client configuration of the proxy."""
        server = f"https://127.0.0.1:{self._port}"
        return ClientConfig(server=server, namespace=self._upstream.namespace, tls=Tls(ca=self._authority.certificate))

    @property
    def traffic(self) -> FaultTransport:
        """The transport to the server: its streams can be paused, reset and closed."""
        if self._transport is None:
            raise RuntimeError("the proxy is not running: write `async with FaultProxy(plane) as proxy:`")
        return self._transport

    async def stop_listening(self) -> None:
        """Stop as a server does at shutdown: accept no new connections and close the open ones."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        if self._server is not None:
            await self._server.shutdown(timeout=_SHUTDOWN_TIMEOUT)
        if listener is not None:
            await listener.drop()

    async def start_listening(self) -> None:
        """Listen again on the same port."""
        await self._listen(self._port)

    async def _listen(self, port: int) -> None:
        assert self._server is not None
        server = self._server
        self._listener = await Listener.open(lambda: server(), "127.0.0.1", port, ssl=self._tls(), backlog=1024)
        self._port: int = self._listener.port

    def _tls(self) -> ssl.SSLContext:
        pair = self._authority.sign("konverge-fault-proxy", hosts=["127.0.0.1", "localhost"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        CertificatePair(pair.certificate, pair.key).load_into(context)
        return context

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        request = _convert(incoming, await incoming.read())
        recorded = RecordedRequest.of(request, connection=self._number(incoming))
        try:
            response = await self.traffic.send_recorded(request, recorded)
        except TransportError:
            return _abort(incoming)
        async with response:
            return await _forward(incoming, response)

    def _number(self, incoming: web.BaseRequest) -> int:
        transport = incoming.transport
        assert transport is not None
        number = self._numbers.get(transport)
        if number is None:
            self.connections.append(asyncio.get_running_loop().time())
            number = self._numbers[transport] = len(self.connections)
        return number


def _convert(incoming: web.BaseRequest, body: bytes) -> Request:
    query = tuple(parse_qsl(incoming.rel_url.raw_query_string, keep_blank_values=True))
    watches = dict(query).get("watch") in ("true", "1")
    headers = {name.lower(): value for name, value in incoming.headers.items()}
    forwarded = {name: value for name, value in headers.items() if name not in _NOT_FORWARDED}
    return Request(
        incoming.method,
        incoming.path,
        query=query,
        headers={**forwarded, "accept-encoding": "identity"},
        body=body,
        timeout=_TIMEOUT,
        stream=watches or dict(query).get("follow") == "true",
    )


def _abort(incoming: web.BaseRequest) -> web.Response:
    if incoming.transport is not None:
        incoming.transport.abort()
    return web.Response()


async def _forward(incoming: web.BaseRequest, response: Response) -> web.StreamResponse:
    headers = {name: value for name, value in response.headers.items() if name not in _HOP_BY_HOP | {"warning"}}
    outgoing = web.StreamResponse(status=response.status, headers=headers)
    for warning in response.warnings:
        outgoing.headers.add("Warning", warning)
    outgoing.enable_chunked_encoding()
    try:
        await outgoing.prepare(incoming)
        async for chunk in response.chunks():
            await outgoing.write(chunk)
        await outgoing.write_eof()
    except TransportError:
        return _abort(incoming)
    except ConnectionError:
        pass  # the client disconnected; most watches end like that
    return outgoing
