"""A proxy between a client and an API server that breaks what it is told to break.

    async with FaultProxy(plane) as proxy:
        proxy.script.add(watches("configmaps"), cut(after=100), times=1)
        async with Client.connect(proxy.config) as client:
            ...

This is HTTP: requests and bodies are seen, logged and changed. `konverge.testing.raw_proxy` breaks bare connections.
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
from konverge.testing.fault_transport import FaultyTransport
from konverge.testing.faults import Asked, FaultScript
from konverge.wire.messages import Request, Response

__all__ = ["FaultProxy", "config_of"]

_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "content-encoding", "keep-alive", "date", "server"}
_NOT_FORWARDED = {"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "keep-alive"}
_TIMEOUT = 60.0
_AT_ONCE = 0.01  # to the library 0 is no limit at all


def config_of(upstream: ControlPlane | ClientConfig) -> ClientConfig:
    """Give the way to a control plane, as its admin."""
    return load_config(kubeconfig=upstream.kubeconfig) if isinstance(upstream, ControlPlane) else upstream


class FaultProxy:
    """Listens on loopback and forwards to an API server, as the script allows.

    Promises: without a rule it changes nothing that a client can notice; `config` reaches it, over TLS with an
    authority of its own. Requests are forwarded with the credentials of `upstream`, unless they bring an Authorization
    header of their own. `script.log` has every request in order; `connections` the time of each connection.
    """

    def __init__(self, upstream: ControlPlane | ClientConfig, *, script: FaultScript | None = None) -> None:
        self._upstream = config_of(upstream)
        self.script = script or FaultScript()
        self.connections: list[float] = []
        self._numbers: WeakKeyDictionary[asyncio.BaseTransport, int] = WeakKeyDictionary()
        self._authority = Authority("konverge-fault-proxy-ca")
        self._transport: FaultyTransport | None = None
        self._server: web.Server | None = None
        self._listener: Listener | None = None

    async def __aenter__(self) -> Self:
        self._transport = FaultyTransport(HttpTransport(self._upstream), self.script)
        self._server = web.Server(self._answer, handler_cancellation=True, access_log=None)
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
        """How a client reaches the proxy."""
        server = f"https://127.0.0.1:{self._port}"
        return ClientConfig(server=server, namespace=self._upstream.namespace, tls=Tls(ca=self._authority.certificate))

    @property
    def traffic(self) -> FaultyTransport:
        """What is being forwarded: its streams can be frozen, cut and ended."""
        if self._transport is None:
            raise RuntimeError("the proxy does not run: write `async with FaultProxy(plane) as proxy:`")
        return self._transport

    async def stop_listening(self) -> None:
        """Go away as a server does that is shut down: no new connections, the present ones are closed."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        if self._server is not None:
            await self._server.shutdown(timeout=_AT_ONCE)
        if listener is not None:
            await listener.drop()

    async def listen_again(self) -> None:
        """Come back on the same port."""
        await self._listen(self._port)

    async def _listen(self, port: int) -> None:
        assert self._server is not None
        server = self._server
        self._listener = await Listener.open(lambda: server(), "127.0.0.1", port, ssl=self._tls(), backlog=1024)
        self._port: int = self._listener.port

    def _tls(self) -> ssl.SSLContext:
        pair = self._authority.issue("konverge-fault-proxy", hosts=["127.0.0.1", "localhost"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        CertificatePair(pair.certificate, pair.key).load_into(context)
        return context

    async def _answer(self, came: web.BaseRequest) -> web.StreamResponse:
        request = _understood(came, await came.read())
        try:
            response = await self.traffic.play(request, Asked.of(request, connection=self._number(came)))
        except TransportError:
            return _broken_off(came)
        async with response:
            return await _forward(came, response)

    def _number(self, came: web.BaseRequest) -> int:
        transport = came.transport
        assert transport is not None
        number = self._numbers.get(transport)
        if number is None:
            self.connections.append(asyncio.get_running_loop().time())
            number = self._numbers[transport] = len(self.connections)
        return number


def _understood(came: web.BaseRequest, body: bytes) -> Request:
    query = tuple(parse_qsl(came.rel_url.raw_query_string, keep_blank_values=True))
    watches = dict(query).get("watch") in ("true", "1")
    headers = {name.lower(): value for name, value in came.headers.items()}
    kept = {name: value for name, value in headers.items() if name not in _NOT_FORWARDED}
    return Request(
        came.method,
        came.path,
        query=query,
        headers={**kept, "accept-encoding": "identity"},
        body=body,
        timeout=_TIMEOUT,
        stream=watches or dict(query).get("follow") == "true",
    )


def _broken_off(came: web.BaseRequest) -> web.Response:
    if came.transport is not None:
        came.transport.abort()
    return web.Response()


async def _forward(came: web.BaseRequest, response: Response) -> web.StreamResponse:
    headers = {name: value for name, value in response.headers.items() if name not in _HOP_BY_HOP | {"warning"}}
    answer = web.StreamResponse(status=response.status, headers=headers)
    for warning in response.warnings:
        answer.headers.add("Warning", warning)
    answer.enable_chunked_encoding()
    try:
        await answer.prepare(came)
        async for chunk in response.chunks():
            await answer.write(chunk)
        await answer.write_eof()
    except TransportError:
        return _broken_off(came)
    except ConnectionError:
        pass  # the client is gone; that is how most watches end
    return answer
