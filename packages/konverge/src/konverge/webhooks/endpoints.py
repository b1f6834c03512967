"""All webhooks of an operator behind one interface: a path and a body in, a status code and a body out.

Nothing here depends on HTTP except the status codes.
"""

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
from konverge.webhooks.reviews import BadReview, ReviewResponse, failure_body
from konverge.webhooks.runner import Runner

__all__ = ["Endpoint", "EndpointStats", "WebhookResponse", "Webhooks", "WebhooksStats"]

DEFAULT_TIMEOUT: Final = 10.0
"""Seconds for a review without a timeout: the API server's own default."""

MAX_TIMEOUT: Final = 30.0
"""The API server waits no longer than this for any webhook."""

_MARGIN: Final = 0.1
_MAX_MARGIN: Final = 0.5
_log = logging.getLogger("konverge.webhooks")


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """An HTTP status code and a JSON body."""

    code: int
    body: bytes


class Endpoint(Protocol):
    """A handler of reviews at a path."""

    @property
    def path(self) -> str: ...

    @property
    def full_name(self) -> str: ...

    async def handle(self, body: bytes, runner: Runner) -> ReviewResponse: ...


@dataclass(frozen=True, slots=True)
class EndpointStats:
    """How often a webhook was called, by result.

    `failed` counts failed conversions, `invalid` reviews that could not be handled, `timed_out` those whose time ran
    out. `seconds` is the total time of all of them, including the time in the queue.
    """

    name: str
    path: str
    allowed: int = 0
    denied: int = 0
    failed: int = 0
    invalid: int = 0
    timed_out: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class WebhooksStats:
    """The reviews that run, the reviews that wait, and the counts of each webhook."""

    running: int
    waiting: int
    endpoints: tuple[EndpointStats, ...] = field(default=())


class Webhooks:
    """The webhooks of an operator, each at its path.

    Promises:

    - at most `concurrency` reviews run at a time; further ones wait, and when ten times as many wait, new ones are
      rejected with 503;
    - every review gets a response before its timeout: 504 a little earlier, so that the failure policy decides;
    - a function cannot keep other webhooks from being served, except by blocking the loop;
    - there is nothing to open or to close.

    Raises: ValueError when two webhooks have the same path.
    """

    def __init__(self, *hooks: AdmissionWebhook[Any] | ConversionWebhook, concurrency: int = 64) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency must be 1 or more, got {concurrency!r}")
        self.hooks = hooks
        self._endpoints: dict[str, Endpoint] = {}
        for hook in hooks:
            if hook.path in self._endpoints:
                fix = "give one of them a name" if isinstance(hook, AdmissionWebhook) else "pass one"
                raise ValueError(f"two webhooks have the path {hook.path}: {fix}")
            self._endpoints[hook.path] = hook
        self._counts: dict[str, Counter[str]] = {path: Counter() for path in self._endpoints}
        self._seconds = dict.fromkeys(self._endpoints, 0.0)
        self._concurrency = concurrency
        self._semaphore = asyncio.Semaphore(concurrency)
        self._in_flight = 0
        self._running = 0
        self._runner = Runner(threads=concurrency)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the webhooks."""
        return tuple(self._endpoints)

    def is_conversion(self, path: str) -> bool:
        """Report whether the path is that of a conversion webhook; its reviews contain whole lists."""
        return isinstance(self._endpoints.get(path), ConversionWebhook)

    def stats(self) -> WebhooksStats:
        endpoints = tuple(
            EndpointStats(each.full_name, path, seconds=self._seconds[path], **self._counts[path])
            for path, each in self._endpoints.items()
        )
        return WebhooksStats(self._running, self._in_flight - self._running, endpoints)

    async def handle(self, path: str, body: bytes, *, timeout: float = DEFAULT_TIMEOUT) -> WebhookResponse:
        """Handle the review in a request to a path, within `timeout` seconds."""
        endpoint = self._endpoints.get(path)
        if endpoint is None:
            return _failure(404, f"there is no webhook at {path:.200}")
        if self._in_flight >= self._concurrency * 11:
            return _failure(503, "too many reviews are waiting")
        seconds = min(timeout, MAX_TIMEOUT)
        started = asyncio.get_running_loop().time()
        self._in_flight += 1
        limit = asyncio.timeout(seconds - min(_MAX_MARGIN, seconds * _MARGIN))
        try:
            async with limit:
                return await self._run(endpoint, body)
        except TimeoutError:
            if not limit.expired():
                raise
            self._counts[path]["timed_out"] += 1
            _log.warning("webhook timed out", extra={"webhook": endpoint.full_name, "seconds": seconds})
            return _failure(504, f"{endpoint.full_name} did not respond within {seconds:g} s")
        finally:
            self._in_flight -= 1
            self._seconds[path] += asyncio.get_running_loop().time() - started

    async def handle_review(self, path: str, review: Mapping[str, Any]) -> dict[str, Any]:
        """Handle a review without a socket: for `EmbeddedServer.webhook_client.serve`.

        Raises: BadReview when the response is not a review.
        """
        response = await self.handle(path, msgspec.json.encode(review))
        document: dict[str, Any] = msgspec.json.decode(response.body)
        if response.code != 200:
            raise BadReview(response.code, document["message"])
        return document

    async def _run(self, endpoint: Endpoint, body: bytes) -> WebhookResponse:
        # Held across the author's function: that is what the semaphore limits.
        async with self._semaphore:
            self._running += 1
            try:
                return await self._call(endpoint, body)
            finally:
                self._running -= 1

    async def _call(self, endpoint: Endpoint, body: bytes) -> WebhookResponse:
        counts = self._counts[endpoint.path]
        try:
            response = await endpoint.handle(body, self._runner)
        except BadReview as bad:
            counts["invalid"] += 1
            return _failure(bad.code, str(bad))
        except Exception as error:
            counts["invalid"] += 1
            _log.error("review failed", exc_info=error, extra={"webhook": endpoint.full_name})
            return _failure(500, f"{endpoint.full_name} failed; see the log of the operator")
        counts[response.result] += 1
        return WebhookResponse(200, response.body)


def _failure(code: int, message: str) -> WebhookResponse:
    return WebhookResponse(code, failure_body(code, message))
