"""Upgraded requests over a socket: the HTTP server and the transport of the client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from konverge.client import Client, ExecResult, InProcessTransport, load_config
from konverge.client.transport import HttpTransport
from konverge.errors import Forbidden, Invalid, NotFound, TransportError
from konverge.objects import Unstructured
from konverge.wire import Channel, Request, WebSocket, pack_message
from konverge_cluster import EmbeddedCluster
from konverge_cluster.api.authorization import Attributes, Decision
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.negotiation import negotiate
from konverge_cluster.api.options import Query
from konverge_cluster.api.responses import Response, upgrade_response
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.pod_streams import pod_stream_handlers
from konverge_cluster.pod_streams.requests import choose_protocol

pytestmark = pytest.mark.real_time

EXEC = "/api/v1/namespaces/default/pods/web/exec"
V5 = "v5.channel.k8s.io"
SUCCESS = b'{"metadata":{},"status":"Success"}'


@asynccontextmanager
async def serving(
    directory: Path, serve: Callable[[WebSocket], Awaitable[None]]
) -> AsyncGenerator[tuple[EmbeddedServer, HttpTransport]]:
    """Run a server whose commands are served by a function of the test."""

    async def handle(_: Cluster, __: Call) -> Response:
        async def served(websocket: WebSocket) -> None:
            await serve(websocket)

        return upgrade_response(V5, served)

    server = EmbeddedServer()
    server.api.actions[("", "pods", "exec")] = handle
    async with server:
        server.write_kubeconfig(directory / "kubeconfig")
        async with HttpTransport(load_config(kubeconfig=directory / "kubeconfig")) as transport:
            yield server, transport


async def open_websocket(transport: HttpTransport) -> WebSocket:
    opened = await transport.open_websocket(Request("GET", EXEC, timeout=10), (V5,))
    assert isinstance(opened, WebSocket)
    assert opened.protocol == V5
    return opened


async def echo(websocket: WebSocket) -> None:
    while (message := await websocket.receive()) is not None:
        await websocket.send(message)


async def test_messages_go_both_ways(tmp_path: Path) -> None:
    async with serving(tmp_path, echo) as (_, transport):
        websocket = await open_websocket(transport)
        for message in (b"\x00", "grün ✓".encode(), bytes(range(256)) * 1000):
            await websocket.send(message)
            assert await websocket.receive() == message
        await websocket.close()


async def test_a_server_that_is_done_closes_the_connection(tmp_path: Path) -> None:
    async def serve(websocket: WebSocket) -> None:
        await websocket.send(b"\x01bye")

    async with serving(tmp_path, serve) as (_, transport):
        websocket = await open_websocket(transport)
        assert await websocket.receive() == b"\x01bye"
        assert await websocket.receive() is None
        with pytest.raises(TransportError):
            await websocket.send(b"late")


async def test_a_message_that_is_too_long_ends_the_connection(tmp_path: Path) -> None:
    async with serving(tmp_path, echo) as (_, transport):
        websocket = await open_websocket(transport)
        await websocket.send(b"x" * ((1 << 20) + 1))
        with pytest.raises(TransportError):
            await websocket.receive()


async def test_what_serves_ends_when_the_client_is_gone(tmp_path: Path) -> None:
    begun, over = asyncio.Event(), asyncio.Event()

    async def serve(_: WebSocket) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            over.set()

    async with serving(tmp_path, serve) as (_, transport):
        websocket = await open_websocket(transport)
        await begun.wait()
        await transport.close()
        with pytest.raises(TransportError):
            await websocket.receive()
        async with asyncio.timeout(10):
            await over.wait()


async def test_a_client_that_does_not_read_holds_up_the_server(tmp_path: Path) -> None:
    sent = 0

    async def serve(websocket: WebSocket) -> None:
        nonlocal sent
        for _ in range(1000):
            await websocket.send(b"\x01" + b"x" * 100_000)
            sent += 1

    async with serving(tmp_path, serve) as (_, transport):
        websocket = await open_websocket(transport)
        await asyncio.sleep(0.5)
        assert sent < 500
        size = 0
        while (message := await websocket.receive()) is not None:
            size += len(message) - 1
        assert size == 100_000_000


async def test_a_server_stops_in_seconds_with_open_connections(tmp_path: Path) -> None:
    async with serving(tmp_path, echo) as (server, transport):
        websocket = await open_websocket(transport)
        begin = time.monotonic()
        await server.stop()
        assert time.monotonic() - begin < 5
        with pytest.raises(TransportError):
            while await websocket.receive() is not None:
                pass
            raise TransportError("closed")


async def test_a_cut_connection_is_an_error(tmp_path: Path) -> None:
    async def serve(websocket: WebSocket) -> None:
        await websocket.send(b"\x01half")
        raise RuntimeError("a bug")

    async with serving(tmp_path, serve):
        client = Client.connect(load_config(kubeconfig=tmp_path / "kubeconfig"))
        async with client:
            with pytest.raises(TransportError, match=r"exec in Pod default/web"):
                await client.exec("web", ["date"])


async def test_a_command_over_http(tmp_path: Path) -> None:
    async def serve(websocket: WebSocket) -> None:
        received = b""
        while (message := await websocket.receive()) not in (None, b"\xff\x00"):
            received += (message or b"")[1:]
        await websocket.send(pack_message(Channel.STDOUT, received))
        await websocket.send(pack_message(Channel.ERROR, SUCCESS))

    async with serving(tmp_path, serve), Client.connect(load_config(kubeconfig=tmp_path / "kubeconfig")) as client:
        content = b"0123456789" * 300_000
        long = "x" * 100_000  # arguments are in the URL
        assert await client.exec("web", ["cat", long], stdin=content) == ExecResult(content, b"", 0)


async def test_a_refusal_has_the_text_of_the_server(tmp_path: Path) -> None:
    async with EmbeddedCluster(nodes=1) as cluster:
        await cluster.listen()
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "node-1"}
        await cluster.client().wait_for("serviceaccounts", "default", lambda account: account is not None)
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}
        await cluster.client().create(Unstructured(pod))
        async with Client.connect(load_config(kubeconfig=tmp_path / "kubeconfig")) as client:
            for one in (client, cluster.client()):
                with pytest.raises(NotFound, match=r'exec in Pod default/none: pods "none" not found'):
                    await one.exec("none", ["date"])
                with pytest.raises(Invalid, match=r'container "c" in pod "web" is simulated and runs nothing'):
                    await one.exec("web", ["date"])
                with pytest.raises(Invalid, match=r'container "c" in pod "web" is simulated and runs nothing'):
                    async for _ in one.logs("web"):
                        pass
                lines = [line async for line in one.logs("web", follow=True)]
                assert len(lines) == 1
                assert b"is simulated and runs nothing, so it has no log" in lines[0]


class OnlyReads:
    """Allows everything but to create commands."""

    def authorize(self, attributes: Attributes) -> Decision:
        return Decision(allowed=(attributes.subresource, attributes.verb) != ("exec", "create"), reason="only reads")


async def test_a_command_needs_the_right_to_create_although_a_websocket_is_a_get() -> None:
    server = EmbeddedServer()
    server.api.actions |= pod_stream_handlers(None)
    server.cluster.authorizer = OnlyReads()
    with pytest.raises(Forbidden, match=r'pods "web" is forbidden: only reads'):
        await Client(InProcessTransport(server.handle)).exec("web", ["date"])


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({}, "Upgrade request required"),
        ({"upgrade": "SPDY/3.1"}, "spdy/3.1 is not supported by the embedded API server, use a WebSocket"),
        ({"upgrade": "websocket"}, "the client offers no subprotocol"),
        ({"upgrade": "websocket", "sec-websocket-protocol": "a, b"}, "the client offers a, b, supported are v5"),
    ],
)
def test_only_websockets_with_channels_are_served(headers: dict[str, str], message: str) -> None:
    server = EmbeddedServer()
    strategy = server.cluster.registry.find("", "v1", "pods")
    assert strategy is not None
    view = negotiate("", custom=False, collection=False)
    request = Request("GET", EXEC, headers=headers)
    call = Call(request, Query(()), strategy, "get", "default", "web", "exec", view)
    with pytest.raises(StatusError, match=message):
        choose_protocol(call)
