"""T34: the operator's webhooks under load, with huge bodies, new certificates, slow peers and functions that fail."""

from __future__ import annotations

import asyncio
import io
import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

from konverge.objects import to_wire
from konverge.webhooks import AdmissionRequest, Webhooks, WebhookServer, validating
from konverge_operators.webapp.api import WebApp
from konverge_operators.webapp.operator import operator
from webapps import webapp
from webhook_certificates import authority, pair_of, trusting

AUTHORITY = authority()
LARGE = int(6.5 * (1 << 20))
FAILS = "fails"
_AT_ONCE = 50
_PATIENCE = 300.0


@dataclass(frozen=True, kw_only=True)
class Load:
    """The load: reviews per second, the duration in seconds, and a new certificate every `swap` seconds."""

    rate: int
    seconds: float
    swap: float
    slow: int


SHORT = Load(rate=40, seconds=4, swap=0.5, slow=20)
LONG = Load(rate=200, seconds=20, swap=5, slow=100)


@validating(WebApp, name="shaky")
def shaky(app: WebApp, old: WebApp | None, request: AdmissionRequest) -> None:
    """Fail for one name, as user code sometimes does."""
    if app.name == FAILS:
        raise RuntimeError("a bug")


HOOKS = (*(hook for hook in operator.webhooks if hasattr(hook, "operations")), shaky)


def fails(number: int) -> bool:
    """Report whether a review is one of the hundredth part whose function fails; all of them go to `shaky`."""
    return number % (33 * len(HOOKS)) == len(HOOKS) - 1


def review(number: int) -> bytes:
    """Return a review: sometimes of an object that is rejected, that makes a function fail, or that is very large."""
    app = webapp(FAILS if fails(number) else "web", image="nginx" if number % 10 == 3 else "nginx:1.25")
    if number % 50 == 11:
        app.metadata.annotations["example.com/text"] = "x" * LARGE
    kind = {"group": "example.com", "version": "v1", "kind": "WebApp"}
    resource = {"group": "example.com", "version": "v1", "resource": "webapps"}
    request: dict[str, Any] = {
        "uid": str(number),
        "kind": kind,
        "resource": resource,
        "operation": "CREATE",
        "name": app.name,
    }
    request |= {"namespace": "default", "userInfo": {"username": "user"}, "object": to_wire(app), "dryRun": False}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def expected(number: int, path: str) -> bool:
    """Report whether a review must be allowed."""
    if path == shaky.path:
        return not fails(number)
    return number % 10 != 3 or "/validate" not in path


@dataclass
class Caller:
    """Sends reviews as an API server does, on persistent connections and every tenth time on a new one."""

    server: WebhookServer
    session: aiohttp.ClientSession
    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def ask(self, number: int, after: float) -> None:
        await asyncio.sleep(after)
        path = HOOKS[number % len(HOOKS)].path
        # Held across a request: on a loaded machine the caller waits, and the rate is as high as possible.
        async with self.turns:
            if number % 10:
                await self._post(self.session, number, path)
                return
            async with calling() as fresh:
                await self._post(fresh, number, path)

    async def _post(self, session: aiohttp.ClientSession, number: int, path: str) -> None:
        url = f"https://127.0.0.1:{self.server.port}{path}?timeout=30s"
        headers = {"Content-Type": "application/json"}
        async with session.post(url, data=io.BytesIO(review(number)), headers=headers) as answer:
            document: Any = await answer.json()
        response = document.get("response", {})
        if answer.status != 200 or response.get("allowed") is not expected(number, path):
            self.wrong.append(f"{number} {path}: {answer.status} {document!s:.300}")
        self.answers["allowed" if response.get("allowed") else "denied"] += 1


def calling() -> aiohttp.ClientSession:
    patient = aiohttp.ClientTimeout(total=_PATIENCE, sock_connect=_PATIENCE)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting(AUTHORITY)), timeout=patient)


@asynccontextmanager
async def serving() -> AsyncGenerator[Caller]:
    server = WebhookServer(Webhooks(*HOOKS), host="127.0.0.1", port=0)
    server.set_certificate(pair_of(AUTHORITY))
    async with server, calling() as session:
        yield Caller(server, session)


async def swaps(server: WebhookServer, every: float) -> None:
    """Replace the certificate repeatedly."""
    while True:
        await asyncio.sleep(every)
        server.set_certificate(pair_of(AUTHORITY))


async def dawdle(server: WebhookServer, number: int) -> None:
    """Act as a slow client: stall before the handshake, or send byte by byte after it; then reconnect."""
    tls = None if number % 2 else trusting(AUTHORITY)
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=tls)
            try:
                for byte in b"POST /validate HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n" if tls else b"\x16" * 60:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(1)
            finally:
                writer.close()
        except OSError:
            await asyncio.sleep(0.5)


async def endure(load: Load) -> Caller:
    """Send reviews at the rate of the load, whatever happens to earlier ones, with all other faults active."""
    async with serving() as caller:
        async with asyncio.TaskGroup() as around:
            trouble = [around.create_task(swaps(caller.server, load.swap))]
            trouble += [around.create_task(dawdle(caller.server, number)) for number in range(load.slow)]
            async with asyncio.TaskGroup() as asked:
                for number in range(int(load.rate * load.seconds)):
                    asked.create_task(caller.ask(number, number / load.rate))
            for task in trouble:
                task.cancel()
        stats = caller.server.webhooks.stats()
        assert (stats.running, stats.waiting) == (0, 0)
        assert sum(one.invalid + one.timed_out for one in stats.endpoints) == 0
        assert caller.server.stats().reloads > 1
    return caller


@pytest.mark.parametrize(
    "load",
    [
        pytest.param(SHORT, marks=pytest.mark.real_time(limit=120), id="short"),
        pytest.param(
            LONG, marks=[pytest.mark.faults, pytest.mark.plain_loop, pytest.mark.real_time(limit=600)], id="long"
        ),
    ],
)
async def test_every_review_gets_the_right_response_under_all_faults(load: Load) -> None:
    caller = await endure(load)
    assert caller.wrong == []
    assert sum(caller.answers.values()) == int(load.rate * load.seconds)
    assert caller.answers["denied"] > 0
