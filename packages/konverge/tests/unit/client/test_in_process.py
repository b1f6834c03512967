from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from konverge.client.in_process import InProcessTransport
from konverge.errors import TransportError
from konverge.wire import BufferedResponse, Request, Response

GET = Request("GET", "/api/v1/pods", (("token", "hunter2"),))
HASTY = Request("GET", "/api/v1/pods", (("token", "hunter2"),), timeout=5)


class SlowBody(BufferedResponse):
    async def read(self) -> bytes:
        await asyncio.sleep(60)
        return self.body

    async def chunks(self) -> AsyncIterator[bytes]:
        await asyncio.sleep(60)
        yield self.body


async def test_the_server_gets_the_request_as_it_was_made() -> None:
    async def handle(request: Request) -> Response:
        assert request is GET
        return BufferedResponse(201, b"{}", {"a": "b"}, ('299 - "w"',))

    async with InProcessTransport(handle) as transport, await transport.send(GET) as response:
        assert (response.status, response.headers, response.warnings) == (201, {"a": "b"}, ('299 - "w"',))
        assert await response.read() == b"{}"
        assert [chunk async for chunk in response.chunks()] == [b"{}"]


async def test_a_timed_answer_is_the_servers_answer() -> None:
    async def handle(_: Request) -> Response:
        return BufferedResponse(201, b"{}", {"a": "b"}, ('299 - "w"',))

    async with InProcessTransport(handle) as transport, await transport.send(HASTY) as response:
        assert (response.status, response.headers, response.warnings) == (201, {"a": "b"}, ('299 - "w"',))
        assert await response.read() == b"{}"
        assert [chunk async for chunk in response.chunks()] == [b"{}"]


async def test_an_empty_body_has_no_pieces() -> None:
    assert [chunk async for chunk in BufferedResponse(204).chunks()] == []


async def test_a_server_that_does_not_answer_is_waited_for_until_the_deadline() -> None:
    async def handle(_: Request) -> Response:
        await asyncio.sleep(60)
        raise AssertionError

    with pytest.raises(TransportError, match=r"GET /api/v1/pods: no response within 5 s") as caught:
        await InProcessTransport(handle).send(HASTY)
    assert asyncio.get_running_loop().time() == 5
    assert "hunter2" not in str(caught.value)
    assert caught.value.sent


async def test_the_deadline_holds_for_the_whole_body() -> None:
    async def handle(_: Request) -> Response:
        await asyncio.sleep(2)
        return SlowBody(200, b"{}")

    transport = InProcessTransport(handle)
    for read in ("read", "chunks"):
        start = asyncio.get_running_loop().time()
        response = await transport.send(HASTY)
        with pytest.raises(TransportError, match="no complete response within 5 s"):
            await (response.read() if read == "read" else anext(aiter(response.chunks())))
        assert asyncio.get_running_loop().time() == start + 5


async def test_the_deadline_of_a_stream_ends_with_its_headers() -> None:
    async def handle(_: Request) -> Response:
        return SlowBody(200, b"late")

    response = await InProcessTransport(handle).send(Request("GET", "/x", timeout=5, stream=True))
    assert [chunk async for chunk in response.chunks()] == [b"late"]


async def test_what_the_server_raises_comes_through() -> None:
    async def handle(_: Request) -> Response:
        raise TimeoutError("its own")

    for request in (GET, HASTY):
        with pytest.raises(TimeoutError, match="its own"):
            await InProcessTransport(handle).send(request)


async def test_a_closed_transport_sends_nothing() -> None:
    async def handle(_: Request) -> Response:
        raise AssertionError

    transport = InProcessTransport(handle)
    await transport.close()
    await transport.close()
    with pytest.raises(TransportError, match="the transport is closed") as caught:
        await transport.send(GET)
    assert not caught.value.sent
