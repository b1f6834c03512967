"""One request, carried to its end: guarded, sent, repeated where that is safe, observed, and its refusal raised.

Everything that holds for every verb is here, once, so that the verbs in `client` are only about what to ask.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random, getrandbits
from typing import TypeAlias

from konverge.client.retry import Repeat, RetryPolicy
from konverge.errors import KonvergeError, WriteRefused
from konverge.telemetry import RequestRecord
from konverge.wire import Request, Response, Transport, error_of, warning_texts

__all__ = ["Asked", "Caller", "Observer", "WriteGuard"]

_log = logging.getLogger("konverge.client")

WriteGuard: TypeAlias = Callable[[], float]
"""Asked right before each mutating request leaves: for how many seconds may a write still run? 0 or less refuses it."""

Observer: TypeAlias = Callable[[RequestRecord], None]

_WARNINGS_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request is for, in the caller's words: it leads every error message and names every record."""

    verb: str
    kind: str
    key: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.verb, self.kind, self.key) if part)


class Caller:
    """Carries requests out.

    Promises:

    - a mutating request leaves only after the guard allowed it, asked anew at each attempt, and never runs longer than
      the guard allows;
    - all attempts together, and the waits between them, stay within the request's timeout;
    - a request that may have been carried out is repeated only when `repeat` says that this is harmless;
    - each attempt is told to every observer, and none of them can fail the request;
    - each distinct warning of the server is logged once.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        policy: RetryPolicy | None = None,
        guard: WriteGuard | None = None,
        observers: tuple[Observer, ...] = (),
        random: Random | None = None,
    ) -> None:
        self.transport = transport
        self._policy = policy or RetryPolicy()
        self._guard = guard
        self._observers = observers
        self._random = random or Random(getrandbits(64))
        self._warned: dict[str, None] = {}
        self._warns = True

    def without_repeats(self) -> Caller:
        """Give a caller that sends each request once; all else is shared."""
        twin = copy.copy(self)
        twin._policy = RetryPolicy(attempts=1)
        return twin

    def guarded_by(self, guard: WriteGuard) -> Caller:
        """Give a caller whose writes ask this guard; all else is shared."""
        twin = copy.copy(self)
        twin._guard = guard
        return twin

    def without_warnings(self) -> Caller:
        """Give a caller that logs no warnings of the server; all else is shared."""
        twin = copy.copy(self)
        twin._warns = False
        return twin

    def observed_by(self, observers: tuple[Observer, ...]) -> Caller:
        """Give a caller that tells these observers too; all else is shared."""
        twin = copy.copy(self)
        twin._observers = (*self._observers, *observers)
        return twin

    async def call(self, request: Request, asked: Asked, *, repeat: Repeat = Repeat.UNREAD) -> bytes:
        """Send a request and give the whole body of a good answer.

        Raises: the ApiError of a refusal, TransportError when no answer came, WriteRefused when the guard says no.
        """
        return (await self._persist(request, asked, repeat))[1]

    async def answer(self, request: Request, asked: Asked, *, repeat: Repeat = Repeat.UNREAD) -> tuple[int, bytes]:
        """Do as `call`, and give the status of the answer too: 201 says that the object was made by this request."""
        response, body = await self._persist(request, asked, repeat)
        return response.status, body

    async def stream(self, request: Request, asked: Asked) -> Response:
        """Send a request and give the open answer, for bodies that are read piece by piece; the caller closes it."""
        return (await self._persist(request, asked, Repeat.ANY))[0]

    async def _persist(self, request: Request, asked: Asked, repeat: Repeat) -> tuple[Response, bytes]:
        loop = asyncio.get_running_loop()
        end = math.inf if request.timeout is None else loop.time() + request.timeout
        attempt = 1
        while True:
            try:
                return await self._attempt(request, asked, attempt)
            except KonvergeError as error:
                delay = self._policy.delay(error, attempt=attempt, repeat=repeat, random=self._random)
                if delay is None or loop.time() + delay >= end:
                    raise
            await asyncio.sleep(delay)
            attempt += 1
            if end is not math.inf:
                request = dataclasses.replace(request, timeout=end - loop.time())

    async def _attempt(self, request: Request, asked: Asked, attempt: int) -> tuple[Response, bytes]:
        request = self._guarded(request, asked)
        started, begin = time.time(), time.perf_counter()
        status, error = 0, ""
        try:
            response = await self.transport.send(request)
            status = response.status
            return await self._finish(request, response, asked)
        except BaseException as problem:
            error = type(problem).__name__
            raise
        finally:
            self._tell(asked, status, started, time.perf_counter() - begin, attempt, error)

    async def _finish(self, request: Request, response: Response, asked: Asked) -> tuple[Response, bytes]:
        for warning in warning_texts(response.warnings):
            self._warn(warning, asked)
        if request.stream and response.status < 300:
            return response, b""
        async with response:
            body = await response.read()
        if response.status < 300:
            return response, body
        raise error_of(response.status, response.headers, body, verb=asked.verb, kind=asked.kind, key=asked.key)

    def _guarded(self, request: Request, asked: Asked) -> Request:
        if self._guard is None or request.method == "GET":
            return request
        left = self._guard()
        if left <= 0:
            raise WriteRefused(
                f"{asked}: refused by the write guard, nothing was sent (is this process still leading?)"
            )
        return dataclasses.replace(request, timeout=left if request.timeout is None else min(left, request.timeout))

    def _tell(self, asked: Asked, status: int, started: float, duration: float, attempt: int, error: str) -> None:
        if not self._observers:
            return
        record = RequestRecord(asked.verb, asked.kind, asked.key, status, started, duration, attempt, error)
        for observer in self._observers:
            try:
                observer(record)
            except Exception:
                _log.exception("An observer of API requests failed")

    def _warn(self, text: str, asked: Asked) -> None:
        if text in self._warned or not self._warns:
            return
        if len(self._warned) >= _WARNINGS_REMEMBERED:
            del self._warned[next(iter(self._warned))]
        self._warned[text] = None
        _log.warning("Warning from the API server: %s", text, extra={"verb": asked.verb, "kind": asked.kind})
