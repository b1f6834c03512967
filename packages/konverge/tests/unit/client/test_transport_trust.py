"""TLS and credentials of the transport, and their rotation."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from faulty_server import FaultyServer, Handler, ReceivedRequest, serving
from http_engines import SocketTransport, each_engine, new_transport  # noqa: F401  (a fixture)
from konverge.client.access.config import ClientConfig
from konverge.client.access.credentials import Credentials, Identity, StaticCredentials
from konverge.client.access.files import NamedFile, RotatingValue
from konverge.client.access.locations import Location
from konverge.client.access.tls import CertificatePair, Tls
from konverge.client.connection.tls_buffers import READ_BYTES
from konverge.errors import ConfigError, TransportError
from konverge.testing.certificates import Authority, Pair
from konverge.wire import Request

pytestmark = pytest.mark.real_time

GET = Request("GET", "/api/v1/pods", timeout=10)


class Certificates:
    """Two authorities that know nothing of each other; servers are of the first."""

    def __init__(self, folder: Path) -> None:
        self.ours = Authority(folder / "ours", "ours")
        self.theirs = Authority(folder / "theirs", "theirs")

    def server(self, *hosts: str, clients: bool = False) -> ssl.SSLContext:
        pair = self.ours.sign("server", file="server", hosts=hosts or ("127.0.0.1",))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.cert, pair.key)
        if clients:
            context.load_verify_locations(self.ours.ca.cert)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client(self, name: str) -> CertificatePair:
        return read_pair(self.ours.sign(name, file=name))

    @property
    def ca(self) -> bytes:
        return self.ours.ca.cert.read_bytes()


def read_pair(pair: Pair) -> CertificatePair:
    return CertificatePair(pair.cert.read_bytes(), pair.key.read_bytes())


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


async def fine(request: ReceivedRequest) -> None:
    await request.respond()


@asynccontextmanager
async def secured(
    context: ssl.SSLContext, *, handler: Handler = fine, host: str = "127.0.0.1", **options: Any
) -> AsyncIterator[tuple[SocketTransport, FaultyServer]]:
    async with serving(handler, tls=context) as server:
        config = ClientConfig(server=f"https://{host}:{server.port}", **options)
        async with new_transport(config) as transport:
            yield transport, server


async def status_of(transport: SocketTransport, request: Request = GET) -> int:
    async with await transport.send(request) as response:
        await response.read()
        return response.status


# Whom we trust


async def test_a_server_of_the_configured_authority_is_trusted(certificates: Certificates) -> None:
    async with secured(certificates.server(), tls=Tls(ca=certificates.ca)) as (transport, _):
        assert await status_of(transport) == 200


async def test_a_server_of_another_authority_is_refused_before_anything_is_sent(certificates: Certificates) -> None:
    foreign = Tls(ca=certificates.theirs.ca.cert.read_bytes())
    token = StaticCredentials(Identity("Bearer hunter2"))
    async with secured(certificates.server(), tls=foreign, credentials=token) as (transport, server):
        with pytest.raises(TransportError, match=r"the certificate is not accepted, .*issuer") as caught:
            await transport.send(GET)
    assert not caught.value.sent
    assert "is the configured CA the one of this server?" in str(caught.value)
    assert server.requests == []


async def test_without_a_ca_the_systems_own_are_trusted_and_ours_is_not_among_them(certificates: Certificates) -> None:
    async with secured(certificates.server()) as (transport, _):
        with pytest.raises(TransportError, match="the certificate is not accepted"):
            await transport.send(GET)


async def test_a_server_of_another_name_is_refused(certificates: Certificates) -> None:
    trusting = Tls(ca=certificates.ca)
    async with secured(certificates.server("kubernetes"), tls=trusting) as (transport, server):
        with pytest.raises(TransportError, match=r"address mismatch.*set tls-server-name"):
            await transport.send(GET)
    assert server.requests == []


async def test_the_name_to_expect_can_be_set(certificates: Certificates) -> None:
    trusting = Tls(ca=certificates.ca, server_name="kubernetes")
    async with secured(certificates.server("kubernetes"), tls=trusting) as (transport, _):
        assert await status_of(transport) == 200


async def test_whoever_says_insecure_gets_it(certificates: Certificates) -> None:
    async with secured(certificates.server("kubernetes"), tls=Tls(insecure=True)) as (transport, _):
        assert await status_of(transport) == 200


async def test_a_server_that_speaks_plain_http_is_told_from_a_bad_certificate() -> None:
    async def garbage(reader: Any, writer: Any) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(garbage, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with new_transport(ClientConfig(server=f"https://127.0.0.1:{port}")) as transport:
        with pytest.raises(TransportError, match="does the server use plain http on this port"):
            await transport.send(GET)
    server.close()
    await server.wait_closed()


async def test_a_rotated_authority_is_used_for_new_connections(certificates: Certificates, tmp_path: Path) -> None:
    bundle = tmp_path / "ca.crt"
    bundle.write_bytes(certificates.theirs.ca.cert.read_bytes())
    rotating = RotatingValue([NamedFile(bundle, Location("ca"))], bytes, reload_interval=0)
    async with secured(certificates.server(), tls=Tls(ca=rotating)) as (transport, server):
        with pytest.raises(TransportError, match="not accepted"):
            await transport.send(GET)
        bundle.write_bytes(certificates.ca)
        assert await status_of(transport) == 200
        bundle.write_bytes(certificates.theirs.ca.cert.read_bytes())
        with pytest.raises(TransportError, match="not accepted"):
            await transport.send(GET)
    assert len(server.requests) == 1


# Who we are


class Sequence:
    """Credentials that move on to the next identity when one is rejected."""

    def __init__(self, *identities: Identity) -> None:
        self.identities = list(identities)

    async def identity(self) -> Identity:
        return self.identities[0]

    async def renew(self, rejected: Identity) -> Identity | None:
        if self.identities[0] is rejected:
            self.identities.pop(0)
        return self.identities[0] if self.identities else None


def accepting(token: str) -> Handler:
    async def handler(request: ReceivedRequest) -> None:
        await request.respond(200 if request.header("authorization") == token else 401)

    return handler


async def test_a_rejected_token_is_renewed_and_the_request_sent_once_more(certificates: Certificates) -> None:
    credentials = Sequence(Identity("Bearer old"), Identity("Bearer new"))
    async with secured(
        certificates.server(), handler=accepting("Bearer new"), tls=Tls(ca=certificates.ca), credentials=credentials
    ) as (transport, server):
        assert await status_of(transport, Request("POST", "/x", body=b"{}", timeout=10)) == 200
        assert await status_of(transport) == 200
        assert transport.stats().credential_retries == 1
    sent = [request.header("authorization") for request in server.requests]
    assert sent == ["Bearer old", "Bearer new", "Bearer new"]
    assert [request.body for request in server.requests[:2]] == [b"{}", b"{}"]


async def test_a_token_that_is_rejected_again_is_not_renewed_again(certificates: Certificates) -> None:
    credentials = Sequence(Identity("Bearer a"), Identity("Bearer b"), Identity("Bearer c"))
    async with secured(
        certificates.server(), handler=accepting("Bearer c"), tls=Tls(ca=certificates.ca), credentials=credentials
    ) as (transport, server):
        assert await status_of(transport) == 401
    assert len(server.requests) == 2


async def test_without_other_credentials_the_401_is_the_answer(certificates: Certificates) -> None:
    only = StaticCredentials(Identity("Bearer old"))
    async with secured(
        certificates.server(), handler=accepting("Bearer new"), tls=Tls(ca=certificates.ca), credentials=only
    ) as (transport, server):
        assert await status_of(transport) == 401
    assert len(server.requests) == 1


class Broken:
    """Credentials whose source is of no use."""

    def __init__(self, *, at_first: bool) -> None:
        self.at_first = at_first

    async def identity(self) -> Identity:
        if self.at_first:
            raise ConfigError("exec plugin failed")
        return Identity("Bearer old")

    async def renew(self, rejected: Identity) -> Identity | None:
        raise ConfigError(f"exec plugin failed for {rejected!r}")


@pytest.mark.parametrize("at_first", [True, False])
async def test_credentials_of_no_use_are_a_config_error(certificates: Certificates, at_first: bool) -> None:
    credentials: Credentials = Broken(at_first=at_first)
    async with secured(
        certificates.server(), handler=accepting("Bearer new"), tls=Tls(ca=certificates.ca), credentials=credentials
    ) as (transport, server):
        with pytest.raises(ConfigError, match="exec plugin failed"):
            await transport.send(GET)
        assert transport.stats().failed == 1
    assert len(server.requests) == (0 if at_first else 1)


async def test_over_plain_http_no_secret_is_sent() -> None:
    async with serving(fine) as server:
        config = ClientConfig(server=server.url, credentials=StaticCredentials(Identity("Bearer hunter2")))
        async with new_transport(config) as transport:
            await status_of(transport)
    assert server.requests[0].header("authorization") is None


async def test_a_client_certificate_identifies_the_connection_and_rotates(certificates: Certificates) -> None:
    credentials = Sequence(
        Identity(certificate=certificates.client("old")), Identity(certificate=certificates.client("new"))
    )
    async with secured(certificates.server(clients=True), tls=Tls(ca=certificates.ca), credentials=credentials) as (
        transport,
        server,
    ):
        await status_of(transport)
        await status_of(transport)
        credentials.identities.pop(0)
        await status_of(transport)
    assert [(request.client, request.connection) for request in server.requests] == [("old", 1), ("old", 1), ("new", 2)]


async def test_a_server_that_wants_a_certificate_and_gets_none_is_an_error(certificates: Certificates) -> None:
    async with secured(certificates.server(clients=True), tls=Tls(ca=certificates.ca)) as (transport, server):
        with pytest.raises(TransportError):
            await transport.send(GET)
    assert server.requests == []


async def test_what_is_left_half_way_leaves_no_connection_behind(certificates: Certificates) -> None:
    async def handler(request: ReceivedRequest) -> None:
        if request.target == "/stream":
            await request.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        gone.append(await request.reader.read())
        last.set()

    gone: list[bytes] = []
    last = asyncio.Event()
    async with secured(certificates.server(), handler=handler, tls=Tls(ca=certificates.ca)) as (transport, _):
        async with await transport.send(Request("GET", "/stream", timeout=10, stream=True)) as response:
            assert await anext(aiter(response.chunks())) == b"abc"
        await last.wait()
        last.clear()
        with pytest.raises(TransportError, match="no response within"):
            await transport.send(Request("GET", "/silent", timeout=0.5))
        await last.wait()
    assert gone == [b"", b""]


async def test_a_secure_connection_reads_into_little_memory_and_large_answers_come_whole(
    certificates: Certificates,
) -> None:
    body = b"x" * 3_000_000

    async def large(request: ReceivedRequest) -> None:
        await request.respond(200, body)

    async with (
        secured(certificates.server(), handler=large, tls=Tls(ca=certificates.ca)) as (transport, _),
        await transport.send(GET) as response,
    ):
        answer: Any = response
        connection = answer._connection if hasattr(answer, "_connection") else answer._response.connection
        assert read_buffer_bytes(connection.transport) in (0, READ_BYTES)
        assert await response.read() == body
        assert read_buffer_bytes(connection.transport) in (0, READ_BYTES)


def read_buffer_bytes(transport: Any) -> int:
    """Return how large the buffer is that asyncio keeps for a TLS connection; 0 if TLS is not asyncio's."""
    protocol = getattr(transport, "_ssl_protocol", None)
    return 0 if protocol is None else max(len(protocol._ssl_buffer), protocol.max_size)
