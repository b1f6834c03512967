"""The webhook server on a real socket: rejected requests, slow clients, certificate reloads, shutdown."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest

from konverge.webhooks import CertificatePair, MutatingWebhook, ServerLimits, Webhooks, WebhookServer
from webhook_certificates import authority, pair_of, trusting
from webhook_examples import WebApp, admission_review, check, conversion, conversion_review, webapp

pytestmark = pytest.mark.real_time(limit=60)

REVIEW = admission_review(webapp())
JSON = {"Content-Type": "application/json"}
AUTHORITY = authority()


class Rig:
    """A server and a client that trusts it."""

    def __init__(self, server: WebhookServer, session: aiohttp.ClientSession) -> None:
        self.server = server
        self._session = session

    async def post(self, path: str = check.path, body: Any = REVIEW, **more: Any) -> tuple[int, Any]:
        more.setdefault("headers", JSON)
        if isinstance(body, bytes) and len(body) > 1 << 20:
            body = io.BytesIO(body)
        url = f"https://127.0.0.1:{self.server.port}{path}"
        async with self._session.request(more.pop("method", "POST"), url, data=body, **more) as answer:
            text = await answer.read()
            return answer.status, json.loads(text) if answer.content_type == "application/json" else text

    async def connect(self, **tls: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.server.port, ssl=trusting(AUTHORITY), **tls)

    async def until(self, **expected: int) -> None:
        while any(getattr(self.server.stats(), name) != value for name, value in expected.items()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@asynccontextmanager
async def rig(*hooks: Any, **options: Any) -> AsyncIterator[Rig]:
    server = WebhookServer(Webhooks(*(hooks or (check, conversion))), host="127.0.0.1", port=0, **options)
    server.set_certificate(pair_of(AUTHORITY))
    async with server:
        connector = aiohttp.TCPConnector(ssl=trusting(AUTHORITY))
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Rig(server, session)


async def test_a_review_gets_a_response_over_https() -> None:
    async with rig() as called:
        status, review = await called.post(params={"timeout": "10s"})

    assert status == 200
    assert (review["kind"], review["response"]["allowed"]) == ("AdmissionReview", True)


async def test_an_internal_error_is_a_response_too(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Webhooks):
        async def handle(self, path: str, body: bytes, *, timeout: float = 10) -> Any:
            raise RuntimeError(f"{path} {len(body)} {timeout} password=hunter2")

    server = WebhookServer(Broken(check), host="127.0.0.1", port=0)
    server.set_certificate(pair_of(AUTHORITY))
    async with server:
        connector = aiohttp.TCPConnector(ssl=trusting(AUTHORITY))
        async with aiohttp.ClientSession(connector=connector) as session:
            status, body = await Rig(server, session).post()

    assert (status, body["message"]) == (500, "the webhook server failed; see the log of the operator")
    assert [record.name for record in caplog.records if record.exc_info] == ["konverge.webhooks"]


async def test_healthz_is_ok() -> None:
    async with rig() as called:
        assert await called.post("/healthz", None, method="GET", headers={}) == (200, b"ok")
        assert (await called.post("/healthz"))[0] == 405


REJECTED: dict[str, tuple[dict[str, Any], int, str]] = {
    "another path": ({"path": "/x"}, 404, "there is no webhook at /x"),
    "another method": ({"method": "GET"}, 405, "a review must be sent with POST"),
    "another type": ({"headers": {"Content-Type": "text/plain"}}, 415, "a review must be application/json"),
    "no type": ({"headers": {}}, 415, "a review must be application/json"),
    "compressed": ({"headers": {**JSON, "Content-Encoding": "gzip"}, "body": b""}, 415, "not compressed"),
    "empty": ({"body": b""}, 400, "the body is empty"),
    "malformed": ({"body": b"{"}, 400, "cannot be read"),
    "an odd time": ({"params": {"timeout": "soon"}}, 400, "timeout=soon is not a duration"),
}


@pytest.mark.parametrize("name", REJECTED)
async def test_a_rejection_is_a_status_with_a_reason(name: str) -> None:
    request, code, text = REJECTED[name]
    async with rig() as called:
        status, body = await called.post(**request)
        again, _ = await called.post()

    assert status == code
    assert (body["kind"], body["status"], body["code"]) == ("Status", "Failure", code)
    assert text in body["message"]
    assert again == 200


def sized(size: int) -> bytes:
    document = webapp(padding="")
    document["spec"]["padding"] = "x" * (size - len(admission_review(document)))
    return admission_review(document)


async def test_a_body_of_the_limit_is_accepted_and_one_byte_more_is_not() -> None:
    limit = 7 << 20

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, limit + 1, 1 << 20):
            yield sized(limit + 1)[start : start + (1 << 20)]

    async with rig() as called:
        taken, review = await called.post(body=sized(limit))
        declared, status = await called.post(body=sized(limit + 1))
        chunked, _ = await called.post(body=pieces())
        await called.until(buffered=0)

    assert (taken, review["response"]["allowed"]) == (200, True)
    assert (declared, chunked) == (413, 413)
    assert status["message"] == f"the review is larger than {limit} bytes"


async def test_a_list_to_convert_may_be_larger() -> None:
    objects = [webapp(padding="x" * 1000) for _ in range(9000)]
    body = conversion_review(*objects, to="v1beta1")
    assert len(body) > 8 << 20

    async with rig() as called:
        status, review = await called.post(conversion.path, body, params={"timeout": "30s"})

    assert status == 200
    assert len(review["response"]["convertedObjects"]) == 9000


async def test_a_body_that_does_not_arrive_times_out() -> None:
    async with rig(limits=ServerLimits(read=0.2)) as called:
        reader, writer = await called.connect()
        head = f"POST {check.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
        writer.write(head.encode() + b"{")
        answer = await reader.readuntil(b"}")
        writer.close()

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"Connection: close" in answer


HEAD = f"POST {check.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
GARBAGE: dict[str, bytes] = {
    "no HTTP": b"garbage\r\n\r\n",
    "another protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a huge header": HEAD + b"X: " + b"x" * 100_000 + b"\r\n\r\n",
    "a negative length": HEAD + b"Content-Length: -1\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
    "chunks that are none": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "no gzip": HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    "half a body": HEAD + b"Content-Length: 100\r\n\r\n{}",
}


@pytest.mark.parametrize("name", GARBAGE)
async def test_invalid_http_is_rejected_and_affects_no_other_client(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig(limits=ServerLimits(read=0.3)) as called:
        reader, writer = await called.connect()
        writer.write(GARBAGE[name])
        if name == "half a body":
            writer.write_eof() if writer.can_write_eof() else writer.close()
        answer = await reader.read()
        writer.close()
        status, _ = await called.post()

    assert answer == b"" or answer.split()[1].startswith(b"4"), answer
    assert b"Traceback" not in answer
    assert status == 200
    assert not [record for record in caplog.records if record.name != "asyncio"]


async def test_slow_clients_do_not_delay_others() -> None:
    async with rig(limits=ServerLimits(read=30)) as called:
        slow = [await called.connect() for _ in range(20)]
        head = f"POST {check.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
        for place, (_, writer) in enumerate(slow):
            writer.write(head.encode() if place % 2 else b"POST /")
        answers = [await called.post() for _ in range(20)]
        for _, writer in slow:
            writer.close()

    assert [status for status, _ in answers] == [200] * 20


async def test_a_connection_without_a_request_is_closed() -> None:
    async with rig(limits=ServerLimits(handshake=0.3, first_request=0.1)) as called:
        for connecting in (called.connect(), asyncio.open_connection("127.0.0.1", called.server.port)):
            with suppress(OSError):  # on a busy machine even the handshake may be too slow
                reader, writer = await connecting
                assert await reader.read() == b""
                writer.close()
        await called.until(connections=0)


async def test_connections_without_a_review_do_not_keep_reviews_out() -> None:
    async with rig(limits=ServerLimits(connections=10, waiting=5)) as called:
        head = f"POST {check.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
        hostile = []
        for number in range(30):
            hostile.append(await called.connect())
            hostile[-1][1].write((b"", b"POST /", head.encode())[number % 3])
            if number % 10 == 9:
                assert (await called.post())[0] == 200
        await called.until(connections=5)
        for _, writer in hostile:
            writer.close()


async def test_old_tls_is_not_spoken() -> None:
    context = trusting(AUTHORITY)
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with rig() as called:
        _, writer = await asyncio.open_connection("127.0.0.1", called.server.port, ssl=context)
        assert writer.get_extra_info("ssl_object").version() == "TLSv1.2"
        writer.close()
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname = False
        old.verify_mode = ssl.CERT_NONE
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(ssl.SSLError):
            await asyncio.open_connection("127.0.0.1", called.server.port, ssl=old)


async def served_certificate(port: int) -> bytes:
    """Return the certificate of a new connection, as DER."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    der: bytes = writer.get_extra_info("ssl_object").getpeercert(True)
    writer.close()
    return der


async def test_a_new_certificate_is_used_for_new_connections_and_keeps_the_old_ones() -> None:
    other = pair_of(AUTHORITY)
    async with rig() as called:
        reader, writer = await called.connect()
        before = await served_certificate(called.server.port)
        called.server.set_certificate(other)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        after = await served_certificate(called.server.port)

    assert answer.endswith(b"ok")
    assert before != after == ssl.PEM_cert_to_DER_cert(other.certificate.decode())


async def test_a_pair_that_is_none_leaves_the_one_in_use() -> None:
    mixed = CertificatePair(pair_of(AUTHORITY).certificate, pair_of(AUTHORITY).key)
    async with rig() as called:
        before = await served_certificate(called.server.port)
        for bad in (mixed, CertificatePair(b"garbage", b"garbage"), CertificatePair(mixed.certificate, b"")):
            with pytest.raises(ValueError, match="do not form a pair"):
                called.server.set_certificate(bad)
        assert await served_certificate(called.server.port) == before
        assert called.server.stats().reloads == 1


async def test_hundreds_of_reviews_on_new_and_old_connections_survive_reloads() -> None:
    """A short form of scenario T34: constant reloads, slow sockets, some large reviews, none lost."""
    other = authority()
    answers: list[tuple[int, bool]] = []
    large = sized(1 << 20)
    async with rig() as called:
        slow = [await called.connect() for _ in range(30)]
        trusted = trusting(AUTHORITY, other)
        done = asyncio.Event()

        async def swap() -> None:
            while not done.is_set():
                for signer in (other, AUTHORITY):
                    called.server.set_certificate(pair_of(signer))
                    await asyncio.sleep(0.05)

        async def ask(*, keep: bool) -> None:
            connector = aiohttp.TCPConnector(ssl=trusted, force_close=not keep)
            async with aiohttp.ClientSession(connector=connector) as session:
                caller = Rig(called.server, session)
                for number in range(25):
                    status, review = await caller.post(body=large if number % 10 == 0 else REVIEW)
                    answers.append((status, review["response"]["allowed"]))

        async with asyncio.TaskGroup() as tasks:
            swapping = tasks.create_task(swap())
            await asyncio.gather(*(ask(keep=bool(number % 2)) for number in range(8)))
            done.set()
            await swapping
        swaps = called.server.stats().reloads
        for _, writer in slow:
            writer.close()

    assert answers == [(200, True)] * 200
    assert swaps > 5


async def test_stopping_lets_running_reviews_end_and_closes_the_rest() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def wait(*_: Any) -> None:
        started.set()
        await go_on.wait()

    hook = MutatingWebhook(WebApp, wait)
    async with rig(hook) as called:
        _, idle = await called.connect()
        async with asyncio.TaskGroup() as tasks:
            review = tasks.create_task(called.post(hook.path))
            await started.wait()
            stopping = tasks.create_task(called.server.stop())
            await asyncio.sleep(0)
            go_on.set()
            await stopping
        assert (await review)[0] == 200
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", called.server.port)
        await called.server.stop()
        idle.close()


async def test_a_review_that_does_not_end_is_cancelled_after_the_grace() -> None:
    started = asyncio.Event()

    async def wait(*_: Any) -> None:
        started.set()
        await asyncio.Event().wait()

    hook = MutatingWebhook(WebApp, wait)
    async with rig(hook, grace=0.1) as called:
        review = asyncio.create_task(called.post(hook.path))
        await started.wait()
        await called.server.stop()
        with pytest.raises(aiohttp.ClientError):
            await review


async def test_a_server_without_a_certificate_does_not_start() -> None:
    with pytest.raises(RuntimeError, match=r"call set_certificate\(pair\) first"):
        await WebhookServer(Webhooks(check), port=0).start()
