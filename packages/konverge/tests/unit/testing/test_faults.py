"""Fault scripts, applied without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from konverge.client import InProcessTransport
from konverge.errors import TransportError
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import (
    End,
    Fault,
    FaultScript,
    any_request,
    connection_refused,
    connection_reset,
    extra_data,
    forbidden,
    lists,
    status_response,
    stream_closed,
    stream_paused,
    watches,
)
from konverge.wire import BufferedResponse, Request, Response, error_from_response

LIST = Request("GET", "/api/v1/pods", query=(("limit", "500"),))
WATCH = Request("GET", "/api/v1/pods", query=(("watch", "true"),), stream=True)


async def server(_: Request) -> Response:
    return BufferedResponse(200, b"0123456789")


def transport(script: FaultScript | None = None) -> FaultTransport:
    return FaultTransport(InProcessTransport(server), script)


async def body(faulty: FaultTransport, request: Request = LIST) -> bytes:
    async with await faulty.send(request) as response:
        return await response.read()


async def test_without_a_rule_nothing_changes() -> None:
    assert await body(transport()) == b"0123456789"


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (stream_closed(), b""),
        (stream_closed(after=4), b"0123"),
        (stream_closed(after=100), b"0123456789"),
        (extra_data(b"!", after=2), b"01!"),
        (Fault(before=b"!"), b"!0123456789"),
        (Fault(after=b"!"), b"0123456789!"),
        (Fault(rewrite=bytes.upper, before=b"a"), b"a0123456789"),
        (Fault(rewrite=lambda piece: piece * 2, keep=12), b"012345678901"),
    ],
)
async def test_a_fault_changes_the_body(fault: Fault, expected: bytes) -> None:
    faulty = transport()
    faulty.script.add(any_request, fault)

    assert await body(faulty) == expected


@pytest.mark.parametrize(
    "fault",
    [
        connection_reset(),
        connection_reset(after=3),
        Fault(end=End.RESET),
        extra_data(b"!", end=End.RESET),
        connection_refused(),
    ],
)
async def test_a_connection_that_breaks_is_a_transport_error(fault: Fault) -> None:
    faulty = transport()
    faulty.script.add(any_request, fault)

    with pytest.raises(TransportError):
        await body(faulty)


async def test_bytes_before_a_reset_are_delivered() -> None:
    faulty = transport()
    faulty.script.add(any_request, connection_reset(after=3))
    came = b""

    async with await faulty.send(WATCH) as response:
        with pytest.raises(TransportError):
            async for piece in response.chunks():
                came += piece

    assert came == b"012"


async def test_a_paused_body_sends_nothing_more_and_does_not_end() -> None:
    faulty = transport()
    faulty.script.add(any_request, stream_paused(after=3))
    came = b""

    async with await faulty.send(WATCH) as response:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                async for piece in response.chunks():
                    came += piece

    assert came == b"012"


async def test_a_response_in_place_of_the_server_is_a_status() -> None:
    faulty = transport()
    faulty.script.add(any_request, status_response(429, reason="TooManyRequests", details={"retryAfterSeconds": 3}))

    async with await faulty.send(LIST) as response:
        status = json.loads(await response.read())

    assert response.status == 429
    assert (status["kind"], status["reason"], status["details"]["retryAfterSeconds"]) == (
        "Status",
        "TooManyRequests",
        3,
    )


async def test_a_forbidden_response_names_the_permission_as_rbac_does() -> None:
    fault = forbidden("list widgets.example.com")

    assert "needs list on widgets.example.com" in str(error_from_response(403, {}, fault.body))


async def test_a_delay_comes_before_the_request_is_sent_on() -> None:
    faulty = transport()
    faulty.script.add(any_request, Fault(delay=7.0))

    await body(faulty)

    assert asyncio.get_running_loop().time() == 7


async def test_a_rule_is_used_as_often_as_specified_and_the_first_one_first() -> None:
    faulty = transport()
    faulty.script.add(any_request, status_response(200, b"one"), times=2)
    faulty.script.add(any_request, status_response(200, b"two"), times=1)

    assert [await body(faulty) for _ in range(4)] == [b"one", b"one", b"two", b"0123456789"]


async def test_an_active_rule_ends_with_its_block() -> None:
    faulty = transport()
    with faulty.script.active(lists("pods"), status_response(200, b"one")):
        assert await body(faulty) == b"one"

    assert await body(faulty) == b"0123456789"


async def test_lists_and_watches_are_distinguished() -> None:
    faulty = transport()
    faulty.script.add(watches("pods"), status_response(200, b"watched"))
    faulty.script.add(lists("nodes"), status_response(200, b"nodes"))

    assert await body(faulty, LIST) == b"0123456789"
    assert await body(faulty, WATCH) == b"watched"


async def test_the_log_has_every_request_with_its_time() -> None:
    faulty = transport()
    faulty.script.add(watches(), connection_refused())
    await body(faulty)
    await asyncio.sleep(5)
    with pytest.raises(TransportError):
        await body(faulty, WATCH)

    assert [(request.time, request.watches, request.collection) for request in faulty.script.log] == [
        (0, False, "pods"),
        (5, True, "pods"),
    ]
    assert len(faulty.script.requests(watches(), since=5)) == 1
    assert faulty.script.requests(lists(), since=1) == []


@pytest.mark.parametrize("how", ["reset_streams", "close_streams", "pause_streams"])
async def test_what_is_being_read_can_be_broken_off_and_later_streams_are_not(how: str) -> None:
    faulty = FaultTransport(InProcessTransport(_endless))

    async with await faulty.send(WATCH) as response:
        reading = asyncio.create_task(_read(response))
        await asyncio.sleep(10)
        assert faulty.streams == 1
        assert getattr(faulty, how)() == 1
        await asyncio.sleep(100)
        assert reading.done() == (how != "pause_streams")
        reading.cancel()
        (outcome,) = await asyncio.gather(reading, return_exceptions=True)

    assert faulty.streams == 0
    expected = {"reset_streams": TransportError, "close_streams": int, "pause_streams": asyncio.CancelledError}[how]
    assert isinstance(outcome, expected)
    async with await faulty.send(WATCH) as response:
        assert await anext(aiter(response.chunks())) == b"."


async def _read(response: Response) -> int:
    return len([piece async for piece in response.chunks()])


async def _endless(_: Request) -> Response:
    return _Endless(200)


class _Endless(BufferedResponse):
    """An endless body, a byte a second."""

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(1)
            yield b"."
