from __future__ import annotations

import asyncio
import logging

import pytest

from konverge.client.caller import Caller, RequestInfo
from konverge.client.retry import RetryMode
from konverge.errors import Conflict, ServerError, TooManyRequests, TransportError, WriteRefused
from konverge.telemetry import RequestRecord
from konverge.wire import Request
from scripted import ScriptedTransport, ok, refusal

GET = Request("GET", "/x")
POST = Request("POST", "/x", body=b"{}")
INFO = RequestInfo("get", "Lamp", "shop/a")


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_an_error_response_raises_its_class_with_verb_kind_and_key() -> None:
    caller = Caller(ScriptedTransport(refusal(409, "Conflict", "the object has been modified")))
    with pytest.raises(Conflict, match=r"^get Lamp shop/a: the object has been modified"):
        await caller.call(GET, INFO)


async def test_retry_after_decides_when_to_retry() -> None:
    transport = ScriptedTransport(refusal(429, retry_after="7"), refusal(429, retry_after="5"), ok())
    await Caller(transport).call(GET, INFO, retry=RetryMode.IDEMPOTENT)
    assert len(transport.requests) == 3
    assert 12 <= now() < 13


async def test_a_read_is_retried_during_a_restart_of_the_server() -> None:
    refused = TransportError("connection refused", sent=False)
    transport = ScriptedTransport(refused, refused, TransportError("cut"), refusal(503), ok())
    await Caller(transport).call(GET, INFO, retry=RetryMode.IDEMPOTENT)
    assert len(transport.requests) == 5


@pytest.mark.parametrize("answer", [TransportError("cut in mid-body"), refusal(503), refusal(504)])
async def test_a_create_that_may_have_been_processed_is_not_retried(answer: TransportError) -> None:
    transport = ScriptedTransport(answer, ok())
    with pytest.raises((TransportError, ServerError)):
        await Caller(transport).call(POST, INFO)
    assert len(transport.requests) == 1


async def test_a_create_that_was_not_sent_is_retried() -> None:
    transport = ScriptedTransport(TransportError("connection refused", sent=False), ok())
    await Caller(transport).call(POST, INFO)
    assert len(transport.requests) == 2


async def test_retries_end_with_the_last_error() -> None:
    transport = ScriptedTransport(refusal(429))
    with pytest.raises(TooManyRequests):
        await Caller(transport).call(GET, INFO)
    assert len(transport.requests) == 8


async def test_no_write_is_sent_after_the_guard_refuses() -> None:
    transport = ScriptedTransport(ok())
    caller = Caller(transport, guard=lambda: 0.0)
    with pytest.raises(WriteRefused, match="get Lamp shop/a: refused by the write guard, nothing was sent"):
        await caller.call(POST, INFO)
    assert transport.requests == []
    await caller.call(GET, INFO)


async def test_the_guard_is_called_before_each_attempt_and_limits_each_write() -> None:
    deadline = 5.0
    transport = ScriptedTransport(refusal(429, retry_after="3"))
    caller = Caller(transport, guard=lambda: deadline - now())
    with pytest.raises(WriteRefused):
        await caller.call(POST, INFO)
    assert len(transport.requests) == 2
    allowed = [request.timeout for request in transport.requests]
    assert allowed[0] == 5.0
    assert allowed[1] is not None
    assert allowed[1] <= 2.0


async def test_observers_get_each_attempt_and_none_can_fail_the_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    records: list[RequestRecord] = []

    def broken(_: RequestRecord) -> None:
        raise RuntimeError("bad observer")

    transport = ScriptedTransport(refusal(503), TransportError("cut"), ok())
    await Caller(transport, observers=(broken, records.append)).call(GET, INFO, retry=RetryMode.IDEMPOTENT)
    assert [(e.verb, e.kind, e.key, e.status, e.attempt, e.error) for e in records] == [
        ("get", "Lamp", "shop/a", 503, 1, "ServerError"),
        ("get", "Lamp", "shop/a", 0, 2, "TransportError"),
        ("get", "Lamp", "shop/a", 200, 3, ""),
    ]
    assert "request observer failed" in caplog.text


async def test_each_warning_of_the_server_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    warned = ok(warnings=('299 - "v1beta1 is deprecated"', '299 - "unknown field"'))
    caller = Caller(ScriptedTransport(warned))
    with caplog.at_level(logging.WARNING, "konverge.client"):
        for _ in range(3):
            await caller.call(GET, INFO)
    assert [(record.message, record.__dict__["warning"]) for record in caplog.records] == [
        ("warning from the API server", "v1beta1 is deprecated"),
        ("warning from the API server", "unknown field"),
    ]


async def test_all_attempts_together_stay_within_the_timeout() -> None:
    transport = ScriptedTransport(refusal(503))
    with pytest.raises(ServerError):
        await Caller(transport).call(Request("GET", "/x", timeout=2.0), INFO, retry=RetryMode.IDEMPOTENT)
    assert now() < 2
    left = [request.timeout for request in transport.requests]
    assert left == sorted(left, key=lambda seconds: -(seconds or 0))
    assert 1 < len(left) < 8
