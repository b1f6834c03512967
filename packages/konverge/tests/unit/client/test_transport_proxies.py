"""Proxies: plain http, tunnels with CONNECT, and SOCKS5."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from faulty_server import ReceivedRequest, pump, serving, tunnel
from http_engines import SocketTransport, each_engine, new_transport  # noqa: F401  (a fixture)
from konverge.client.access.config import ClientConfig
from konverge.client.access.tls import Tls
from konverge.client.connection.limits import Limits
from konverge.client.connection.socks import SocksProxy
from konverge.errors import TransportError
from konverge.testing.certificates import Authority
from konverge.wire import Request

pytestmark = pytest.mark.real_time

GET = Request("GET", "/api/v1/pods", timeout=10)
JANE = "Basic " + base64.b64encode(b"jane:p@ss").decode()


async def fine(request: ReceivedRequest) -> None:
    await request.respond(200, b"the server")


async def connect(request: ReceivedRequest) -> None:
    """Do as a proxy does: join the client with whatever it names."""
    assert request.method == "CONNECT"
    await request.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    host, _, port = request.target.rpartition(":")
    await tunnel(request, "127.0.0.1" if host == "api.example.com" else host, int(port))


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("proxies"), "proxies")


@pytest.fixture(scope="module")
def server_tls(authority: Authority) -> ssl.SSLContext:
    pair = authority.sign("server", file="server", hosts=["127.0.0.1", "api.example.com"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    return context


@pytest.fixture(scope="module")
def trusting(authority: Authority) -> Tls:
    return Tls(ca=authority.ca.cert.read_bytes())


async def body_of(transport: SocketTransport, request: Request = GET) -> bytes:
    async with await transport.send(request) as response:
        return await response.read()


async def test_a_plain_server_is_reached_through_the_proxy() -> None:
    async with serving(fine) as proxy:
        config = ClientConfig(server="http://api.example.com:8080", proxy=f"http://jane:p%40ss@127.0.0.1:{proxy.port}")
        async with new_transport(config) as transport:
            assert await body_of(transport) == b"the server"
            assert await body_of(transport) == b"the server"
    for request in proxy.requests:
        assert request.target == "http://api.example.com:8080/api/v1/pods"
        assert request.header("proxy-authorization") == JANE
    assert proxy.connections == 1


async def test_a_secure_server_is_tunnelled_to(server_tls: ssl.SSLContext, trusting: Tls) -> None:
    async with serving(fine, tls=server_tls) as server, serving(connect) as proxy:
        config = ClientConfig(server=f"https://api.example.com:{server.port}", tls=trusting, proxy=proxy.url)
        async with new_transport(config) as transport:
            assert await body_of(transport) == b"the server"
            assert await body_of(transport) == b"the server"
    assert [request.target for request in proxy.requests] == [f"api.example.com:{server.port}"]
    assert len(server.requests) == 2


async def test_only_the_proxy_gets_its_credentials(server_tls: ssl.SSLContext, trusting: Tls) -> None:
    async with serving(fine, tls=server_tls) as server, serving(connect) as proxy:
        url = f"http://jane:p%40ss@127.0.0.1:{proxy.port}"
        async with new_transport(ClientConfig(server=server.url, tls=trusting, proxy=url)) as transport:
            await body_of(transport)
    assert proxy.requests[0].header("proxy-authorization") == JANE
    assert server.requests[0].header("proxy-authorization") is None


async def test_the_connection_to_the_proxy_may_use_tls(server_tls: ssl.SSLContext, trusting: Tls) -> None:
    async with (
        serving(fine, tls=server_tls) as server,
        serving(connect, tls=server_tls) as proxy,
        new_transport(ClientConfig(server=server.url, tls=trusting, proxy=proxy.url)) as transport,
    ):
        assert await body_of(transport) == b"the server"


async def test_a_proxy_that_refuses_is_named_without_its_password(trusting: Tls) -> None:
    async def no(request: ReceivedRequest) -> None:
        await request.respond(407, b"")

    async with serving(no) as proxy:
        url = f"http://jane:hunter2@127.0.0.1:{proxy.port}"
        async with new_transport(ClientConfig(server="https://api.example.com", tls=trusting, proxy=url)) as transport:
            with pytest.raises(TransportError, match="the proxy refused the connection: HTTP 407") as caught:
                await transport.send(GET)
    assert not caught.value.sent
    assert f"(through the proxy http://***@127.0.0.1:{proxy.port})" in str(caught.value)
    assert "hunter2" not in "".join(map(repr, (caught.value, caught.value.__cause__)))


async def hang_up(request: ReceivedRequest) -> None:
    request.writer.close()


async def garbage(request: ReceivedRequest) -> None:
    await request.write(b"\0\0\r\n\r\n")


@pytest.mark.parametrize("fault", [hang_up, garbage])
async def test_a_broken_proxy_is_no_connection(trusting: Tls, fault: object) -> None:
    async with serving(fault) as proxy:  # type: ignore[arg-type]
        config = ClientConfig(server="https://api.example.com", tls=trusting, proxy=proxy.url)
        async with new_transport(config) as transport:
            with pytest.raises(TransportError, match="through the proxy") as caught:
                await transport.send(GET)
    assert not caught.value.sent
    assert len(proxy.requests) == 1


async def test_a_proxy_that_is_not_there_is_no_connection(trusting: Tls) -> None:
    async with serving(fine) as proxy:
        pass
    for scheme in ("http", "socks5"):
        url = f"{scheme}://127.0.0.1:{proxy.port}"
        async with new_transport(ClientConfig(server="https://api.example.com", tls=trusting, proxy=url)) as transport:
            with pytest.raises(TransportError, match=f"connection refused .through the proxy {url}") as caught:
                await transport.send(GET)
        assert not caught.value.sent


# SOCKS5


class Socks:
    """A SOCKS5 proxy: the request that it got, and its replies."""

    def __init__(self, *, method: int = 0, verdict: int = 0, reply: int = 0, version: int = 5) -> None:
        self.method, self.verdict, self.reply, self.version = method, verdict, reply, version
        self.port = 0
        self.offered: list[bytes] = []
        self.logins: list[tuple[bytes, bytes]] = []
        self.requests: list[tuple[int, bytes, int]] = []

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        self.offered.append(await reader.readexactly(count))
        writer.write(bytes([self.version, self.method]))
        if self.method == 2:
            await reader.readexactly(1)
            name = await reader.readexactly((await reader.readexactly(1))[0])
            password = await reader.readexactly((await reader.readexactly(1))[0])
            self.logins.append((name, password))
            writer.write(bytes([1, self.verdict]))
        kind = (await reader.readexactly(4))[3]
        length = {1: 4, 4: 16}.get(kind) or (await reader.readexactly(1))[0]
        host = await reader.readexactly(length)
        port = int.from_bytes(await reader.readexactly(2))
        self.requests.append((kind, host, port))
        # In two pieces, and with a name as the bound address: both are allowed.
        writer.write(bytes([5, self.reply, 0, 3]))
        await writer.drain()
        writer.write(b"\x03abc\0\0")
        their_reader, their_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, their_writer), pump(their_reader, writer))


@asynccontextmanager
async def socks(proxy: Socks) -> AsyncIterator[Socks]:
    server = await asyncio.start_server(proxy.connected, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    yield proxy
    server.close()
    await server.wait_closed()


async def test_a_socks_proxy_resolves_the_name(server_tls: ssl.SSLContext, trusting: Tls) -> None:
    async with serving(fine, tls=server_tls) as server, socks(Socks()) as proxy:
        url = f"socks5://127.0.0.1:{proxy.port}"
        config = ClientConfig(server=f"https://api.example.com:{server.port}", tls=trusting, proxy=url)
        async with new_transport(config) as transport:
            assert await body_of(transport) == b"the server"
            assert await body_of(transport) == b"the server"
    assert proxy.requests == [(3, b"api.example.com", server.port)]
    assert proxy.offered == [b"\x00"]


async def test_a_plain_server_is_reached_by_socks_too() -> None:
    async with serving(fine) as server, socks(Socks(method=2)) as proxy:
        config = ClientConfig(server=server.url, proxy=f"socks5://jane:p%40ss@127.0.0.1:{proxy.port}")
        async with new_transport(config) as transport:
            assert await body_of(transport) == b"the server"
    assert proxy.requests == [(1, bytes([127, 0, 0, 1]), server.port)]
    assert proxy.logins == [(b"jane", b"p@ss")]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Socks(version=4), "its response is not SOCKS5"),
        (Socks(method=255), "it requires another authentication method"),
        (Socks(method=2), "it requires another authentication method"),
        (Socks(reply=2), "not allowed by its rules"),
        (Socks(reply=99), "failure 99"),
    ],
)
async def test_a_socks_proxy_that_refuses_is_no_connection(fault: Socks, says: str) -> None:
    async with serving(fine) as server, socks(fault) as proxy:
        config = ClientConfig(server=server.url, proxy=f"socks5://127.0.0.1:{proxy.port}")
        async with new_transport(config) as transport:
            with pytest.raises(TransportError, match=f"the SOCKS proxy failed: {says}") as caught:
                await transport.send(GET)
    assert not caught.value.sent


async def test_a_rejected_password_is_not_shown() -> None:
    async with socks(Socks(method=2, verdict=1)) as proxy:
        config = ClientConfig(server="http://127.0.0.1:1", proxy=f"socks5://jane:hunter2@127.0.0.1:{proxy.port}")
        async with new_transport(config) as transport:
            with pytest.raises(TransportError, match="does not accept the user name and password") as caught:
                await transport.send(GET)
    assert "hunter2" not in str(caught.value)


async def test_a_socks_proxy_that_does_not_respond_times_out() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.transport.abort()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    url = f"socks5://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    config = ClientConfig(server="http://127.0.0.1:1", proxy=url)
    async with new_transport(config, limits=Limits(connect=0.05)) as transport:
        with pytest.raises(TransportError, match=r"no connection within 0.05 s .through the proxy"):
            await transport.send(GET)
    server.close()
    await server.wait_closed()


def test_a_socks_proxy_is_written_as_a_url() -> None:
    assert SocksProxy.parse("socks5://[::1]") == SocksProxy("::1", 1080)
    proxy = SocksProxy.parse("socks5://jane:p%40ss@bastion:9")
    assert proxy == SocksProxy("bastion", 9, "jane", "p@ss")
    assert "p@ss" not in repr(proxy)
