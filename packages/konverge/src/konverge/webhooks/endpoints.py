"""All webhooks of an operator behind one door: a path and a body in, a code and a body out. Knows nothing of HTTP
but the codes."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec

from konverge.webhooks.admission import AdmissionWebhook
from konverge.webhooks.conversion import ConversionWebhook
from konverge.webhooks.reviews import BadReview, Outcome, failure_body
from konverge.webhooks.runner import Runner

__all__ = ["Answer", "Endpoint", "EndpointStats", "Webhooks", "WebhooksStats"]

DEADLINE: Final = 10.0
"""Seconds for a review that does not say how many it has: the API server's own default."""

LONGEST: Final = 30.0
"""The API server waits no longer than this for any webhook."""

_MARGIN: Final = 0.1
_MOST_MARGIN: Final = 0.5
_log = logging.getLogger("konverge.webhooks")


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP code and a JSON body."""

    code: int
    body: bytes


class Endpoint(Protocol):
    """Whoever answers reviews at a path."""

    @property
    def path(self) -> str: ...

    @property
    def full_name(self) -> str: ...

    async def answer(self, body: bytes, runner: Runner) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class EndpointStats:
    """How often a webhook was asked and what came of it.

    `failed` counts conversions that failed, `broken` reviews that could not be read, `late` those whose time ran out.
    `seconds` is the time that all of them took together, waiting for their turn included.
    """

    name: str
    path: str
    allowed: int = 0
    denied: int = 0
    failed: int = 0
    broken: int = 0
    late: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class WebhooksStats:
    """What is going on: reviews that run, reviews that wait for their turn, and the counts of each webhook."""

    running: int
    waiting: int
    endpoints: tuple[EndpointStats, ...] = field(default=())


class Webhooks:
    """The webhooks of an operator, each at its path.

    Promises:

    - at most `concurrency` reviews run at a time; further ones wait, and those that find ten times as many in line are
      told to come back later (503);
    - every review has an answer before its time is over: 504 a little before, so that the failure policy decides;
    - nothing that a function does can keep other webhooks from being answered, except blocking the loop;
    - there is nothing to open or to close.

    Raises: ValueError when two webhooks have the same path.
    """

    def __init__(self, *hooks: AdmissionWebhook[Any] | ConversionWebhook, concurrency: int = 64) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency is 1 or more, got {concurrency!r}")
        self.hooks = hooks
        self._endpoints: dict[str, Endpoint] = {}
        for hook in hooks:
            if hook.path in self._endpoints:
                what = "give one of them a name" if isinstance(hook, AdmissionWebhook) else "give one"
                raise ValueError(f"two webhooks answer at {hook.path}: {what}")
            self._endpoints[hook.path] = hook
        self._counts: dict[str, Counter[str]] = {path: Counter() for path in self._endpoints}
        self._seconds = dict.fromkeys(self._endpoints, 0.0)
        self._concurrency = concurrency
        self._turns = asyncio.Semaphore(concurrency)
        self._present = 0
        self._running = 0
        self._runner = Runner(threads=concurrency)

    @property
    def paths(self) -> tuple[str, ...]:
        """Where webhooks answer."""
        return tuple(self._endpoints)

    def converts(self, path: str) -> bool:
        """Tell whether a conversion webhook answers at a path; its reviews hold whole lists."""
        return isinstance(self._endpoints.get(path), ConversionWebhook)

    def stats(self) -> WebhooksStats:
        endpoints = tuple(
            EndpointStats(each.full_name, path, seconds=self._seconds[path], **self._counts[path])
            for path, each in self._endpoints.items()
        )
        return WebhooksStats(self._running, self._present - self._running, endpoints)

    async def answer(self, path: str, body: bytes, *, timeout: float = DEADLINE) -> Answer:
        """Answer the review that came to a path, within `timeout` seconds."""
        endpoint = self._endpoints.get(path)
        if endpoint is None:
            return _failure(404, f"no webhook answers at {path:.200}")
        if self._present >= self._concurrency * 11:
            return _failure(503, "too many reviews are waiting")
        seconds = min(timeout, LONGEST)
        began = asyncio.get_running_loop().time()
        self._present += 1
        try:
            async with asyncio.timeout(seconds - min(_MOST_MARGIN, seconds * _MARGIN)) as limit:
                return await self._in_turn(endpoint, body)
        except TimeoutError:
            if not limit.expired():
                raise
            self._counts[path]["late"] += 1
            _log.warning("A webhook did not answer in time", extra={"webhook": endpoint.full_name, "seconds": seconds})
            return _failure(504, f"{endpoint.full_name} did not answer within {seconds:g} s")
        finally:
            self._present -= 1
            self._seconds[path] += asyncio.get_running_loop().time() - began

    async def handle(self, path: str, review: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a review without a socket: for `EmbeddedServer.webhook_client.serve`.

        Raises: BadReview when the answer is no review.
        """
        answer = await self.answer(path, msgspec.json.encode(review))
        document: dict[str, Any] = msgspec.json.decode(answer.body)
        if answer.code != 200:
            raise BadReview(answer.code, document["message"])
        return document

    async def _in_turn(self, endpoint: Endpoint, body: bytes) -> Answer:
        # The semaphore is held across the author's function: that is what it limits.
        async with self._turns:
            self._running += 1
            try:
                return await self._ask(endpoint, body)
            finally:
                self._running -= 1

    async def _ask(self, endpoint: Endpoint, body: bytes) -> Answer:
        counts = self._counts[endpoint.path]
        try:
            outcome = await endpoint.answer(body, self._runner)
        except BadReview as bad:
            counts["broken"] += 1
            return _failure(bad.code, str(bad))
        except Exception as error:
            counts["broken"] += 1
            _log.error("A review could not be answered", exc_info=error, extra={"webhook": endpoint.full_name})
            return _failure(500, f"{endpoint.full_name} failed; the log of the operator says why")
        counts[outcome.result] += 1
        return Answer(200, outcome.body)


def _failure(code: int, message: str) -> Answer:
    return Answer(code, failure_body(code, message))
