"""SocketTransport over real loopback sockets, with a server whose responses the tests decide."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from faulty_server import FaultyServer, Handler, ReceivedRequest, serving
from http_engines import SocketTransport, each_engine, new_transport  # noqa: F401  (a fixture)
from konverge.client import Client
from konverge.client.access.config import ClientConfig
from konverge.client.access.credentials import Identity
from konverge.client.connection.limits import Limits, TransportStats
from konverge.client.impersonation import Impersonation
from konverge.errors import DecodeError, RedirectError, TransportError
from konverge.k8s.core.v1 import Pod
from konverge.wire import FrameReader, Request, Response

pytestmark = pytest.mark.real_time

GET = Request("GET", "/api/v1/pods", timeout=10)
WATCH = Request("GET", "/api/v1/pods", (("watch", "true"),), timeout=10, stream=True)
HASTE = 0.5  # enough to connect on a busy machine


async def fine(request: ReceivedRequest) -> None:
    await request.respond()


@asynccontextmanager
async def wired(handler: Handler, **options: Any) -> AsyncIterator[tuple[SocketTransport, FaultyServer]]:
    """A transport and the server that it speaks to."""
    limits = options.pop("limits", None)
    async with (
        serving(handler) as server,
        new_transport(ClientConfig(server=server.url, **options), limits=limits) as way,
    ):
        yield way, server


async def body_of(transport: SocketTransport, request: Request = GET) -> bytes:
    async with await transport.send(request) as response:
        return await response.read()


async def rest_of(response: Response) -> bytes:
    return b"".join([chunk async for chunk in response.chunks()])


# What goes out, what comes back


async def test_a_request_goes_out_as_it_was_made() -> None:
    async with wired(fine, user_agent="shop/1") as (transport, server):
        headers = {"content-type": "application/json", "accept": "application/json"}
        extra = (("impersonate-group", "a"), ("impersonate-group", "b"))
        query = (("fieldManager", "a b"), ("dryRun", "All"))
        await body_of(transport, Request("POST", "/api/v1/x y/%2F", query, headers, extra, body=b'{"a":1}'))

    (request,) = server.requests
    assert (request.method, request.body) == ("POST", b'{"a":1}')
    assert request.target == "/api/v1/x%20y/%252F?fieldManager=a%20b&dryRun=All"
    assert sorted(request.headers) == [
        ("accept", "application/json"),
        ("accept-encoding", "gzip"),
        ("content-length", "7"),
        ("content-type", "application/json"),
        ("host", f"127.0.0.1:{server.port}"),
        ("impersonate-group", "a"),
        ("impersonate-group", "b"),
        ("user-agent", "shop/1"),
    ]


async def test_a_server_may_live_below_a_prefix() -> None:
    async with serving(fine) as server, new_transport(ClientConfig(server=f"{server.url}/k8s/c-1/")) as transport:
        await body_of(transport)
    assert server.requests[0].target == "/k8s/c-1/api/v1/pods"


async def test_the_response_has_status_headers_and_body() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.respond(404, b'{"kind":"Status"}', "Warning: 299 - a", "WARNING: 299 - b", "Retry-After: 7")

    async with wired(handler) as (transport, _):
        async with await transport.send(GET) as response:
            assert response.status == 404
            assert response.headers["retry-after"] == "7"
            assert response.headers["warning"] == "299 - a, 299 - b"
            assert response.warnings == ("299 - a", "299 - b")
            assert await response.read() == b'{"kind":"Status"}'
            assert await response.read() == b'{"kind":"Status"}'
        assert transport.stats() == TransportStats(completed=1, failed=0, credential_retries=0)


async def test_a_body_without_a_length_ends_with_its_last_chunk() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")

    async with wired(handler) as (transport, _):
        assert await body_of(transport) == b"abcde"


async def test_a_response_without_a_body_is_empty() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.respond(200, b"")

    async with wired(handler) as (transport, _):
        assert await body_of(transport) == b""


async def test_a_large_body_is_sent_whole() -> None:
    async with wired(fine) as (transport, server):
        await body_of(transport, Request("POST", "/x", body=b"x" * 3_000_000))
    assert len(server.requests[0].body) == 3_000_000


async def test_connections_are_used_again() -> None:
    async with wired(fine) as (transport, server):
        for _ in range(5):
            await body_of(transport)
    assert server.connections == 1


async def test_a_response_that_is_closed_unread_does_not_spoil_the_next() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.respond(200, b"x" * 1_000_000)

    async with wired(handler) as (transport, _):
        for _ in range(3):
            response = await transport.send(GET)
            await response.close()
            await response.close()
        assert len(await body_of(transport)) == 1_000_000


async def test_redirects_are_never_followed() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.respond(302, b"", f"Location: {elsewhere.url}/stolen")

    async with (
        serving(fine) as elsewhere,
        wired(handler) as (transport, server),
        await transport.send(GET) as response,
    ):
        assert response.status == 302
        assert response.headers["location"] == f"{elsewhere.url}/stolen"
    assert len(server.requests) == 1
    assert elsewhere.connections == 0


async def test_a_redirect_is_not_retried() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.respond(302, b"", "Location: https://login.example.com/")

    async with wired(handler) as (transport, server):
        with pytest.raises(RedirectError, match=r"redirects are not followed: HTTP 302 to https://login\.example"):
            await Client(transport).list(Pod)
    assert len(server.requests) == 1


async def test_credentials_that_take_too_long_are_named() -> None:
    class Hanging:
        def __repr__(self) -> str:
            return "ExecPlugin('aws')"

        async def identity(self) -> Identity:
            await asyncio.Event().wait()
            raise AssertionError

        async def renew(self, rejected: Identity) -> Identity | None:
            raise AssertionError(rejected)

    async with new_transport(ClientConfig(server="https://127.0.0.1:1", credentials=Hanging())) as transport:
        with pytest.raises(TransportError, match=r"no credentials within 0.1 s: ExecPlugin\('aws'\) was not done"):
            await transport.send(Request("GET", "/api/v1/pods", timeout=0.1))


async def test_cookies_are_not_kept() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.respond(200, b"{}", "Set-Cookie: a=b; Path=/")

    async with wired(handler) as (transport, server):
        await body_of(transport)
        await body_of(transport)
    assert server.requests[1].header("cookie") is None


async def test_the_environments_proxy_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with wired(fine) as (transport, _):
        assert await body_of(transport) == b"{}"


async def test_the_config_says_whom_we_act_for_unless_the_request_does() -> None:
    acting = Impersonation("jane", groups=("dev", "ops"))
    async with wired(fine, impersonation=acting) as (transport, server):
        await body_of(transport)
        await body_of(transport, Request("GET", "/x", extra_headers=(("impersonate-user", "bob"),)))
    assert server.requests[0].header("impersonate-user") == "jane"
    assert server.requests[0].header("impersonate-group") == "dev, ops"
    assert server.requests[1].header("impersonate-user") == "bob"
    assert server.requests[1].header("impersonate-group") is None


# gzip, and too much of everything


async def gzipped(request: ReceivedRequest) -> None:
    await request.respond(200, gzip.compress(b"a" * 100_000), "Content-Encoding: gzip")


async def test_a_compressed_body_is_decompressed() -> None:
    async with wired(gzipped) as (transport, server):
        assert await body_of(transport) == b"a" * 100_000
        async with await transport.send(GET) as response:
            assert await rest_of(response) == b"a" * 100_000
    assert server.requests[0].header("accept-encoding") == "gzip"


async def test_streams_and_clients_that_disable_it_are_not_compressed() -> None:
    async with wired(fine) as (transport, server):
        await body_of(transport, WATCH)
    async with wired(fine, disable_compression=True) as (transport, plain):
        await body_of(transport)
    assert server.requests[0].header("accept-encoding") == "identity"
    assert plain.requests[0].header("accept-encoding") == "identity"


@pytest.mark.parametrize(
    ("body", "encoding", "says"),
    [
        (b"not gzip", "gzip", "is not valid gzip"),
        (gzip.compress(b"x" * 1000, mtime=0)[:-4], "gzip", "in the middle of its gzip stream"),
        (b"x", "br", "content encoding 'br'"),
    ],
)
async def test_a_body_that_cannot_be_decompressed_is_a_decode_error(body: bytes, encoding: str, says: str) -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.respond(200, body, f"Content-Encoding: {encoding}")

    async with wired(handler) as (transport, _):
        with pytest.raises(DecodeError, match=says):
            await body_of(transport)


@pytest.mark.parametrize("way", ["length", "chunked", "gzip", "small"])
async def test_a_body_past_the_limit_is_refused(way: str) -> None:
    async def handler(request: ReceivedRequest) -> None:
        if way == "length":
            await request.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n")
        elif way == "chunked":
            await request.write(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"fff\r\n" + b"x" * 0xFFF + b"\r\n"
            )
        elif way == "gzip":
            await request.respond(200, gzip.compress(b"\0" * 5_000_000, 1), "Content-Encoding: gzip")
        else:
            await request.respond(200, b"x" * 1001)

    async with wired(handler, limits=Limits(body=1000)) as (transport, _):
        with pytest.raises(DecodeError, match="larger than 1000 bytes"):
            await body_of(transport)


async def test_a_body_of_just_the_limit_is_read() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.respond(200, b"x" * 1000)

    async with wired(handler, limits=Limits(body=1000)) as (transport, _):
        assert len(await body_of(transport)) == 1000


async def test_a_stream_has_no_size_limit() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.respond(200, b"x" * 500_000)

    async with wired(handler, limits=Limits(body=1000)) as (transport, _), await transport.send(WATCH) as response:
        assert len(await rest_of(response)) == 500_000


# Nobody answers, or not all of it


async def test_a_refused_connection_was_never_sent() -> None:
    async with serving(fine) as server:
        pass
    async with new_transport(ClientConfig(server=server.url)) as transport:
        with pytest.raises(TransportError, match=f"GET {server.url}/api/v1/pods: connection refused") as caught:
            await transport.send(GET)
        assert not caught.value.sent
        assert isinstance(caught.value.__cause__, ConnectionRefusedError)
        assert transport.stats().failed == 1


async def test_a_request_to_an_unknown_host_was_never_sent() -> None:
    async with new_transport(ClientConfig(server="http://no-such-host.invalid:1")) as transport:
        with pytest.raises(TransportError, match="the host name cannot be resolved") as caught:
            await transport.send(GET)
    assert not caught.value.sent


@pytest.mark.parametrize("host", ["127.1", "a" * 64, "a..b"])
async def test_an_address_in_an_odd_form_is_an_error_like_any_other(host: str) -> None:
    async with new_transport(ClientConfig(server=f"http://{host}:1")) as transport:
        with pytest.raises(TransportError, match="the address is not valid"):
            await transport.send(GET)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
async def test_a_request_that_is_cut_is_sent_once(method: str) -> None:
    async def handler(request: ReceivedRequest) -> None:
        request.abort()

    async with wired(handler) as (transport, server):
        with pytest.raises(TransportError) as caught:
            await transport.send(Request(method, "/x", timeout=10))
    assert caught.value.sent
    assert len(server.requests) == 1


async def test_an_orderly_close_is_no_response_either() -> None:
    async def handler(request: ReceivedRequest) -> None:
        request.writer.close()

    async with wired(handler) as (transport, _):
        with pytest.raises(TransportError, match="closed the connection without a response") as caught:
            await transport.send(GET)
    assert caught.value.sent


@pytest.mark.parametrize(
    "garbage", [b"SSH-2.0-OpenSSH_9.6\r\n\r\n", b"\0" * 100 + b"\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"<html>\r\n\r\n"]
)
async def test_a_response_that_is_not_http_is_described(garbage: bytes) -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.write(garbage)

    async with wired(handler) as (transport, _):
        with pytest.raises(TransportError, match="the response is not HTTP"):
            await transport.send(GET)


async def test_headers_without_end_are_not_read_for_ever() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.write(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000)

    async with wired(handler) as (transport, _):
        with pytest.raises(TransportError, match="not HTTP"):
            await transport.send(GET)


@pytest.mark.parametrize("head", [b"Content-Length: 100\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n64\r\n"])
async def test_a_body_that_is_cut_is_no_response(head: bytes) -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.write(b"HTTP/1.1 200 OK\r\n" + head + b"only this")
        request.writer.close()

    async with wired(handler) as (transport, _):
        async with await transport.send(GET) as response:
            with pytest.raises(TransportError, match="ended in the middle of the body") as caught:
                await response.read()
        assert caught.value.sent


async def test_a_body_that_is_reset_is_no_response() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
        await read_some.wait()
        request.abort()

    read_some = asyncio.Event()
    async with wired(handler) as (transport, _), await transport.send(WATCH) as response:
        chunks = aiter(response.chunks())
        assert await anext(chunks) == b"only this"
        read_some.set()
        with pytest.raises(TransportError, match=r"ended in the middle of the body, after 9 bytes"):
            await anext(chunks)


async def silence(_: ReceivedRequest) -> None:
    await asyncio.Event().wait()


async def test_a_server_that_never_answers_is_waited_for_until_the_deadline() -> None:
    async with wired(silence) as (transport, server):
        with pytest.raises(TransportError, match=r"/api/v1/pods: no response within 0.5 s") as caught:
            await transport.send(Request("GET", "/api/v1/pods", (("token", "hunter2"),), timeout=HASTE))
    assert caught.value.sent
    assert "hunter2" not in str(caught.value)
    assert len(server.requests) == 1


async def test_a_peer_that_accepts_and_never_speaks_tls_was_never_sent_anything() -> None:
    async with (
        serving(silence) as server,
        new_transport(ClientConfig(server=f"https://127.0.0.1:{server.port}")) as way,
    ):
        with pytest.raises(TransportError, match=r"no connection within 0.5 s") as caught:
            await way.send(Request("POST", "/x", timeout=HASTE))
    assert not caught.value.sent


async def test_a_request_without_time_is_never_sent() -> None:
    async with wired(fine) as (transport, server):
        await body_of(transport)
        with pytest.raises(TransportError, match="its timeout has passed already") as caught:
            await transport.send(Request("POST", "/x", timeout=0))
    assert not caught.value.sent
    assert len(server.requests) == 1


async def test_connecting_has_a_limit_of_its_own() -> None:
    async with serving(silence) as server:
        config = ClientConfig(server=f"https://127.0.0.1:{server.port}")
        async with new_transport(config, limits=Limits(connect=HASTE)) as transport:
            with pytest.raises(TransportError, match=r"no connection within 0.5 s") as caught:
                await transport.send(Request("GET", "/x", stream=True))
    assert not caught.value.sent


async def trickle(request: ReceivedRequest) -> None:
    await request.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
    await asyncio.Event().wait()


async def test_the_deadline_holds_for_the_whole_body() -> None:
    async with wired(trickle) as (transport, _):
        for read in (Response.read, rest_of):
            async with await transport.send(Request("GET", "/x", timeout=HASTE)) as response:
                with pytest.raises(TransportError, match=r"no complete response within 0.5 s, received 9 bytes"):
                    await (response.read() if read is Response.read else rest_of(response))


async def test_the_deadline_of_a_stream_ends_with_its_headers() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
        await late.wait()
        await request.write(b"late")

    late = asyncio.Event()
    hasty = Request("GET", "/x", timeout=HASTE, stream=True)
    async with wired(handler) as (transport, _), await transport.send(hasty) as response:
        asyncio.get_running_loop().call_later(2 * HASTE, late.set)
        assert await rest_of(response) == b"late"


async def test_a_request_that_waits_for_its_turn_too_long_was_never_sent() -> None:
    async with wired(trickle, limits=Limits(connections=1)) as (transport, server), await transport.send(GET):
        with pytest.raises(TransportError, match="no connection within") as caught:
            await transport.send(Request("POST", "/x", timeout=HASTE))
    assert not caught.value.sent
    assert len(server.requests) == 1


async def test_streams_do_not_keep_requests_from_being_sent() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await (trickle if "watch" in request.target else fine)(request)

    async with wired(handler, limits=Limits(connections=1)) as (transport, server):
        streams = [await transport.send(WATCH) for _ in range(5)]
        assert await body_of(transport) == b"{}"
        for stream in streams:
            await stream.close()
    assert server.connections == 6


async def test_many_requests_share_few_connections() -> None:
    async with wired(fine, limits=Limits(connections=3)) as (transport, server):
        assert await asyncio.gather(*(body_of(transport) for _ in range(20))) == [b"{}"] * 20
    assert server.connections <= 3


# Streams


async def test_frames_come_as_they_are_sent() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(3):
            frame = b'{"type":"ADDED","object":{"n":%d}}\n' % number
            await request.write(b"%x\r\n%s\r\n" % (len(frame), frame))
            await seen[number].wait()
        await request.write(b"0\r\n\r\n")

    seen = [asyncio.Event() for _ in range(3)]
    reader, objects = FrameReader(), []
    async with wired(handler) as (transport, server):
        async with await transport.send(WATCH) as response:
            async for chunk in response.chunks():
                for frame in reader.feed(chunk):
                    objects.append(bytes(frame.object))
                    seen[len(objects) - 1].set()
        reader.close()
        await body_of(transport, WATCH)
    assert objects == [b'{"n":0}', b'{"n":1}', b'{"n":2}']
    assert server.connections == 1


async def test_a_stream_that_is_left_closes_its_connection() -> None:
    async def handler(request: ReceivedRequest) -> None:
        await request.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        left.set_result(await request.reader.read())

    left: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    async with wired(handler) as (transport, _):
        async with await transport.send(WATCH) as response:
            async for _ in response.chunks():
                break
        assert await left == b""


async def test_closing_the_transport_aborts_requests_in_flight() -> None:
    async def handler(request: ReceivedRequest) -> None:
        if request.target == "/silent":
            arrived.set()
            await silence(request)
        await trickle(request)

    arrived = asyncio.Event()
    async with wired(handler) as (transport, _):
        response = await transport.send(WATCH)
        chunks = aiter(response.chunks())
        assert await anext(chunks) == b"only this"
        reading = asyncio.ensure_future(anext(chunks))
        waiting = asyncio.create_task(transport.send(Request("GET", "/silent")))
        await arrived.wait()

        await transport.close()

        with pytest.raises(TransportError, match="ended in the middle"):
            await reading
        with pytest.raises(TransportError):
            await waiting
        with pytest.raises(TransportError, match="the transport is closed") as caught:
            await transport.send(GET)
        assert not caught.value.sent
        await response.close()
        await transport.close()


async def test_closing_wakes_those_who_wait_for_a_connection() -> None:
    async with wired(trickle, limits=Limits(connections=1)) as (transport, _):
        first = await transport.send(GET)
        waiting = asyncio.create_task(transport.send(GET))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await transport.close()
        with pytest.raises(TransportError, match="the transport is closed"):
            await waiting
        await first.close()


async def test_a_cancelled_request_closes_its_connection() -> None:
    async def handler(request: ReceivedRequest) -> None:
        arrived.set()
        gone.set_result(await request.reader.read())

    arrived, gone = asyncio.Event(), asyncio.get_running_loop().create_future()
    async with wired(handler) as (transport, _):
        task = asyncio.create_task(transport.send(GET))
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await gone == b""


def test_making_a_transport_needs_no_event_loop() -> None:
    transport = new_transport(ClientConfig(server="https://127.0.0.1:1"))
    assert transport.stats() == TransportStats(0, 0, 0)


def test_a_transport_belongs_to_one_event_loop() -> None:
    transport = new_transport(ClientConfig(server="http://127.0.0.1:1"))

    async def use() -> None:
        with pytest.raises(TransportError):
            await transport.send(GET)
        await transport.close()

    asyncio.run(use())
    with pytest.raises(RuntimeError, match="create one for each loop"):
        asyncio.run(use())


async def test_a_transport_that_was_never_used_can_be_closed() -> None:
    async with new_transport(ClientConfig(server="http://127.0.0.1:1")):
        pass
