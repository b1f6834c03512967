"""What konverge's own HTTP engine promises beyond the tests of both: write guard, idle connections, back-pressure."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from faulty_server import FaultyServer, Handler, ReceivedRequest, serving
from konverge.client import Client, ClientConfig
from konverge.client.aiohttp_transport import AiohttpTransport
from konverge.client.connection.http_connection import READ_BYTES
from konverge.client.connection.limits import Limits
from konverge.client.engines import new_transport
from konverge.client.transport import HttpTransport
from konverge.errors import ConfigError, TransportError, WriteRefused
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import ObjectMeta
from konverge.wire import Request

pytestmark = pytest.mark.real_time

GET = Request("GET", "/x", timeout=10)
LARGE = b"x" * (32 << 20)
"""More than the buffers of two sockets."""


async def fine(request: ReceivedRequest) -> None:
    await request.respond()


@asynccontextmanager
async def wired(handler: Handler, limits: Limits | None = None) -> AsyncIterator[tuple[HttpTransport, FaultyServer]]:
    async with (
        serving(handler) as server,
        HttpTransport(ClientConfig(server=server.url), limits=limits) as transport,
    ):
        yield transport, server


async def body_of(transport: HttpTransport, request: Request = GET) -> bytes:
    async with await transport.send(request) as response:
        return await response.read()


async def test_the_length_and_the_own_fields_of_each_request_are_sent() -> None:
    async with wired(fine) as (transport, server):
        for body, fields in ((b"{}", {"a": "1"}), (b"[1]", {"a": "1"}), (b"", {"a": "2", "content-length": "7"})):
            await body_of(transport, Request("PUT", "/x", headers=fields, body=body, timeout=10))
        await body_of(transport)
    sent = [(one.header("a"), one.header("content-length")) for one in server.requests]
    assert sent == [("1", "2"), ("1", "3"), ("2", "0"), (None, None)]


def refusing_after(calls: int) -> Callable[[], None]:
    """Return a guard that refuses after this number of calls."""
    left = [calls]

    def check() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise WriteRefused("no longer the leader")

    return check


@pytest.mark.parametrize("connected", [False, True])
async def test_a_write_that_the_guard_refuses_is_never_sent(connected: bool) -> None:
    async with wired(fine) as (transport, server):
        if connected:
            await body_of(transport)
        with pytest.raises(WriteRefused):
            await transport.send(Request("PUT", "/x", body=b"{}", timeout=10, before_write=refusing_after(0)))
        assert await body_of(transport) == b"{}"
    assert [request.method for request in server.requests] == ["GET"] * (1 + connected)


async def test_the_guard_is_asked_when_the_connection_is_there() -> None:
    """Connecting may take long: a guard that was asked before it says nothing about the moment of the write."""
    asked: list[int] = []

    async with wired(fine) as (transport, server):
        request = Request("PUT", "/x", body=b"{}", timeout=10, before_write=lambda: asked.append(server.connections))
        await body_of(transport, request)
    assert asked
    assert set(asked) == {1}


async def test_a_body_that_waits_for_its_peer_is_cut_when_the_guard_refuses() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            received.set_result(len(await reader.read(-1)))
        except ConnectionError:
            received.set_result(0)
        writer.close()

    received: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, HttpTransport(ClientConfig(server=url)) as transport:
        # Asked by the transport, then by the socket for the first part of the body; the rest does not fit.
        request = Request("PUT", "/x", body=LARGE, timeout=30, before_write=refusing_after(3))
        with pytest.raises(TransportError) as caught:
            await transport.send(request)
        assert caught.value.sent
        assert await received < len(LARGE)


async def test_a_connection_with_an_unsent_body_is_not_used_again() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

    connections: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, HttpTransport(ClientConfig(server=url)) as transport:
        for _ in range(2):
            async with await transport.send(Request("PUT", "/x", body=LARGE, timeout=30)) as response:
                assert response.status == 413
        assert len(connections) == 2
        for writer in connections:
            writer.transport.abort()


async def test_a_client_passes_its_guard_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KONVERGE_HTTP_ENGINE", "http1")
    answers = iter([5.0, 0.0])
    async with serving(fine) as server:
        client = Client.connect(ClientConfig(server=server.url), guard=lambda: next(answers))
        async with client:
            with pytest.raises(WriteRefused, match="nothing was sent"):
                await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="b")))
    assert server.requests == []


async def test_an_idle_connection_is_closed_after_its_time() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.respond()
        closed.set_result(await request.reader.read(1))

    closed: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    async with wired(handler, Limits(idle=0.05)) as (transport, _):
        await body_of(transport)
        assert await closed == b""


async def test_bytes_that_nobody_asked_for_close_the_connection() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.respond()
        if request.connection == 1:
            await answered.wait()
            await request.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
            closed.set_result(await request.reader.read())

    answered = asyncio.Event()
    closed: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    async with wired(handler) as (transport, server):
        assert await body_of(transport) == b"{}"
        answered.set()
        assert await closed == b""
        assert await body_of(transport) == b"{}"
        assert server.connections == 2


async def test_bytes_behind_a_response_are_not_the_next_response() -> None:
    """They wait in the socket if the response fills the buffer, and the next request is sent before they are read."""

    async def handler(request: ReceivedRequest) -> None:
        if request.connection > 1:
            await request.respond()
            return
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
        size = READ_BYTES - len(head % READ_BYTES)
        await request.write(head % size + b"x" * size + head % 6 + b"poison")

    async with wired(handler) as (transport, server):
        first = await body_of(transport)
        assert await body_of(transport) == b"{}"
        assert first == b"x" * len(first)
        assert server.connections == 2


async def test_a_request_is_not_sent_to_a_server_that_has_just_closed() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.respond()
        sockets.append(request.writer.get_extra_info("socket"))

    sockets: list[socket.socket] = []
    async with wired(handler) as (transport, server):
        await body_of(transport)
        sockets[0].shutdown(socket.SHUT_RDWR)  # the event loop has not read the end yet
        assert await body_of(transport, Request("PUT", "/x", body=b"{}", timeout=10)) == b"{}"
        assert server.connections == 2


async def test_what_has_arrived_is_returned_before_an_error() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\ngarbage\r\n")

    async with wired(handler) as (transport, _), await transport.send(Request("GET", "/x", stream=True)) as response:
        chunks = response.chunks()
        assert await anext(chunks) == b"abc"
        with pytest.raises(TransportError, match="the size of a chunk is not valid"):
            await anext(chunks)


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_a_response_without_a_body_may_have_an_encoding(method: str) -> None:
    length = 1 << 40 if method == "HEAD" else 0

    async def handler(request: ReceivedRequest) -> None:
        await request.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % length)

    async with wired(handler) as (transport, _):
        assert await body_of(transport, Request(method, "/x", timeout=10)) == b""


async def test_a_stream_that_nobody_reads_makes_the_server_wait() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while len(written) < 1024:
            await request.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            written.append(0x10000)
        await request.write(b"0\r\n\r\n")

    written: list[int] = []
    async with wired(handler) as (transport, _), await transport.send(Request("GET", "/x", stream=True)) as response:
        for _ in range(2_000):  # client and server share the event loop: enough turns for 64 MiB, if they were read
            await asyncio.sleep(0)
        assert sum(written) < 32 << 20
        size = 0
        async for chunk in response.chunks():
            size += len(chunk)
        assert size == 64 << 20


async def test_the_engine_is_selected_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    config = ClientConfig(server="http://127.0.0.1:1")
    for value, expected in [("", HttpTransport), ("aiohttp", AiohttpTransport), ("http1", HttpTransport)]:
        monkeypatch.setenv("KONVERGE_HTTP_ENGINE", value)
        assert type(new_transport(config)) is expected
    monkeypatch.setenv("KONVERGE_HTTP_ENGINE", "curl")
    with pytest.raises(ConfigError, match=r"no engine 'curl' \(http1 or aiohttp\)"):
        new_transport(config)
