"""Listeners that leave no connection open, whatever its state in asyncio."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from konverge.listener import ConnectionLimits, Listener
from konverge.testing.certificates import Authority

pytestmark = pytest.mark.real_time


class Silent(asyncio.Protocol):
    """Says nothing, and keeps every connection."""

    made = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Silent.made += 1


class Leaving(Silent):
    """Says goodbye at once, and waits for the answer that TLS wants."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        transport.close()


@pytest.fixture(autouse=True)
def fresh() -> None:
    Silent.made = 0


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    pair = Authority(tmp_path, "listening").sign("server", file="server", hosts=["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    return context


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def until(claim: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while True:
            if claim():
                return
            await asyncio.sleep(0.005)


async def test_an_idle_connection_ends_with_its_server() -> None:
    listener = await Listener.open(Silent, "127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", listener.port)) as peer:
        await until(lambda: Silent.made == 1 and listener.connections == 1)

        await listener.drop()

        assert listener.connections == 0
        assert peer.recv(1) == b""


async def test_a_connection_without_a_handshake_ends_with_its_server(tls: ssl.SSLContext) -> None:
    listener = await Listener.open(Silent, "127.0.0.1", 0, ssl=tls)
    with socket.create_connection(("127.0.0.1", listener.port)):
        await until(lambda: listener.connections == 1)

        await listener.drop()

        assert listener.connections == 0
        assert Silent.made == 0


@pytest.mark.parametrize("protocol", [Silent, Leaving])
async def test_a_tls_shutdown_without_a_response_ends_with_its_server(
    tls: ssl.SSLContext, protocol: type[asyncio.Protocol]
) -> None:
    listener = await Listener.open(protocol, "127.0.0.1", 0, ssl=tls)
    peer = socket.create_connection(("127.0.0.1", listener.port))
    with await asyncio.to_thread(trusting().wrap_socket, peer):
        await until(lambda: Silent.made == 1)

        await listener.drop()

        assert listener.connections == 0


async def test_a_connection_after_the_end_is_refused_and_the_port_is_free() -> None:
    listener = await Listener.open(Silent, "127.0.0.1", 0)
    await listener.drop()
    await listener.drop()

    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", listener.port)
    again = await Listener.open(Silent, "127.0.0.1", listener.port)
    assert again.port == listener.port
    await again.drop()


async def test_without_a_host_every_address_is_listened_on() -> None:
    listener = await Listener.open(Silent, None, 0)
    loopback = "::1" if ":" in listener.address else "127.0.0.1"  # port 0 is another port in each family
    with socket.create_connection((loopback, listener.port)):
        await until(lambda: listener.connections == 1)
        await listener.drop()


async def test_a_port_that_is_taken_is_an_error_that_leaves_nothing_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError) as error:
        await Listener.open(Silent, "127.0.0.1", taken.getsockname()[1])
    assert error.value.errno == errno.EADDRINUSE


@asynccontextmanager
async def unread() -> AsyncIterator[tuple[Listener, asyncio.Transport]]:
    # A connection whose protocol does not read, so it does not see the end of the stream.
    Counting.transports.clear()
    listener = await Listener.open(Counting, "127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", listener.port)):
        await until(lambda: len(Counting.transports) == 1)
        (transport,) = Counting.transports
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        yield listener, transport
        transport.abort()
        await listener.drop()


async def test_a_drop_ends_with_the_last_connection() -> None:
    async with unread() as (listener, transport):
        dropping = asyncio.create_task(listener.drop(timeout=3600))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not dropping.done()

        transport.abort()
        for _ in range(10):  # passes of the event loop, not seconds
            await asyncio.sleep(0)

        assert dropping.done()


async def test_a_drop_waits_no_longer_than_its_timeout() -> None:
    async with unread() as (listener, _):
        await listener.drop(timeout=0.01)

        assert listener.connections == 1


# Limits


class Peers:
    """Clients of a listener with limits."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.opened: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def connect(self, count: int = 1) -> list[asyncio.StreamReader]:
        for _ in range(count):
            self.opened.append(await asyncio.open_connection("127.0.0.1", self.listener.port))
        return [reader for reader, _ in self.opened[-count:]]


class Counting(asyncio.Protocol):
    """Records the transports of its connections, in their order."""

    transports: ClassVar[list[asyncio.BaseTransport]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Counting.transports.append(transport)


@asynccontextmanager
async def limited(waiting: int, first_request: float = 60, total: int | None = None) -> AsyncIterator[Peers]:
    Counting.transports.clear()
    limits = ConnectionLimits(waiting, first_request, total)
    peers = Peers(await Listener.open(Counting, "127.0.0.1", 0, limits=limits))
    yield peers
    for _, writer in peers.opened:
        writer.close()
    await peers.listener.drop()


async def test_the_oldest_waiting_connection_is_closed_for_a_new_one() -> None:
    async with limited(3) as peers:
        first, second, *_ = await peers.connect(5)
        assert [await first.read(), await second.read()] == [b"", b""]
        await until(lambda: peers.listener.connections == 3)


async def test_the_limit_holds_in_a_burst() -> None:
    async with limited(20) as peers:
        clients = [socket.create_connection(("127.0.0.1", peers.listener.port)) for _ in range(90)]
        await until(lambda: len(Counting.transports) == 90)
        await until(lambda: peers.listener.connections == 20)
        for each in clients:
            each.close()


async def test_a_connection_with_a_request_is_not_closed() -> None:
    async with limited(2) as peers:
        await peers.connect()
        await until(lambda: len(Counting.transports) == 1)
        with peers.listener.serving(Counting.transports[0]):
            await peers.connect(5)
            await until(lambda: peers.listener.connections == 3)
            assert not peers.opened[0][0].at_eof()
        await peers.connect(2)  # those without a request are closed first
        await until(lambda: peers.listener.connections == 2)
        assert not peers.opened[0][0].at_eof()


async def test_a_trusted_peer_is_never_limited() -> None:
    async with limited(1) as peers:
        for number in range(4):
            await peers.connect()
            await until(lambda number=number: len(Counting.transports) == number + 1)  # type: ignore[misc]
            with peers.listener.serving(Counting.transports[number], trusted=True):
                pass
        assert peers.listener.connections == 4


async def test_one_more_is_refused_when_all_serve_requests() -> None:
    async with limited(5, total=1) as peers:
        await peers.connect()
        await until(lambda: len(Counting.transports) == 1)
        with peers.listener.serving(Counting.transports[0]):
            (refused,) = await peers.connect()
            assert await refused.read() == b""
            assert not peers.opened[0][0].at_eof()


async def test_a_connection_without_a_first_request_is_closed_in_time() -> None:
    async with limited(10, first_request=0.05) as peers:
        for reader in await peers.connect(3):
            assert await reader.read() == b""
        await until(lambda: peers.listener.connections == 0)
        (late,) = await peers.connect()
        assert await late.read() == b""
