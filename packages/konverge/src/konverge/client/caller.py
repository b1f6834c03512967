"""Send one request: check the write guard, retry where that is safe, notify observers, raise the error.

All that is common to the verbs is here, so that the verbs in `client` only build requests.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import math
import time
from collections.abc import Callable
from functools import partial
from random import Random, getrandbits
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from konverge.client.retry import RetryMode, RetryPolicy
from konverge.errors import KonvergeError, TransportError, WriteRefused
from konverge.telemetry import RequestRecord
from konverge.wire import (
    Request,
    Response,
    Transport,
    WebSocket,
    WebSocketTransport,
    error_from_response,
    warning_texts,
)

__all__ = ["Caller", "Observer", "RequestInfo", "WriteGuard"]

_log = logging.getLogger("konverge.client")

WriteGuard: TypeAlias = Callable[[], float]
"""Called right before each mutating request: returns for how many seconds it may run. 0 or less refuses the write."""

Observer: TypeAlias = Callable[[RequestRecord], None]

_MAX_LOGGED_WARNINGS = 1000


class RequestInfo(Struct, frozen=True):
    """The verb, kind and key of a request: the prefix of its error messages, and its labels for observers."""

    verb: str
    kind: str
    key: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.verb, self.kind, self.key) if part)


class Caller:
    """Sends requests.

    Promises:

    - a mutating request is sent only if the guard allows it, which is checked before each attempt, and never runs
      longer than the guard allows;
    - all attempts together, and the delays between them, stay within the request's timeout;
    - a request that may have been processed is retried only if `retry` is IDEMPOTENT;
    - every observer is called after each attempt, and none of them can fail the request;
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
        self._logged_warnings: dict[str, None] = {}
        self._log_warnings = True

    def without_retries(self) -> Caller:
        """Return a caller that sends each request once; everything else is shared."""
        return self.with_policy(RetryPolicy(attempts=1))

    def with_policy(self, policy: RetryPolicy) -> Caller:
        """Return a caller with this retry policy; everything else is shared."""
        clone = copy.copy(self)
        clone._policy = policy
        return clone

    def with_guard(self, guard: WriteGuard) -> Caller:
        """Return a caller with this write guard; everything else is shared."""
        clone = copy.copy(self)
        clone._guard = guard
        return clone

    def without_warnings(self) -> Caller:
        """Return a caller that does not log the server's warnings; everything else is shared."""
        clone = copy.copy(self)
        clone._log_warnings = False
        return clone

    def with_observers(self, observers: tuple[Observer, ...]) -> Caller:
        """Return a caller with these observers too; everything else is shared."""
        clone = copy.copy(self)
        clone._observers = (*self._observers, *observers)
        return clone

    async def call(self, request: Request, info: RequestInfo, *, retry: RetryMode = RetryMode.UNPROCESSED) -> bytes:
        """Send a request and return the body of the response.

        Raises: the ApiError for the status, TransportError without a response, WriteRefused when the guard refuses.
        """
        return (await self._send_with_retries(request, info, retry))[1]

    async def call_with_status(
        self, request: Request, info: RequestInfo, *, retry: RetryMode = RetryMode.UNPROCESSED
    ) -> tuple[int, bytes]:
        """Send a request as `call` does, and return the status code too: 201 means that an object was created."""
        response, body = await self._send_with_retries(request, info, retry)
        return response.status, body

    async def stream(self, request: Request, info: RequestInfo) -> Response:
        """Send a request and return the open response, whose body is read in chunks; the user of it closes it."""
        return (await self._send_with_retries(request, info, RetryMode.IDEMPOTENT))[0]

    async def open_websocket(self, request: Request, info: RequestInfo, protocols: tuple[str, ...]) -> WebSocket:
        """Send a request once and return the connection that it is upgraded to; `limit_write` has checked the guard.

        Raises: as `call`; TypeError when the transport cannot open WebSockets.
        """
        if not isinstance(self.transport, WebSocketTransport):
            raise TypeError(f"{info}: {type(self.transport).__name__} cannot open WebSockets")
        started, begin = time.time(), time.perf_counter()
        status, failure = 0, None
        try:
            opened = await self.transport.open_websocket(request, protocols)
            if isinstance(opened, WebSocket):
                status = 101
                return opened
            status = opened.status
            await self._read_response(replace(request, stream=False), opened, info)
            raise TransportError(f"{info}: the server did not upgrade the connection")
        except BaseException as error:
            failure = error
            raise
        finally:
            self._notify(info, status, started, time.perf_counter() - begin, 1, failure)
            failure = None  # no cycle of the error and this frame

    async def _send_with_retries(self, request: Request, info: RequestInfo, retry: RetryMode) -> tuple[Response, bytes]:
        loop = asyncio.get_running_loop()
        end = math.inf if request.timeout is None else loop.time() + request.timeout
        attempt = 1
        while True:
            try:
                return await self._attempt(request, info, attempt)
            except KonvergeError as error:
                delay = self._policy.delay(error, attempt=attempt, retry=retry, random=self._random)
                if delay is None or loop.time() + delay >= end:
                    raise
            await asyncio.sleep(delay)
            attempt += 1
            if end is not math.inf:
                request = replace(request, timeout=end - loop.time())

    async def _attempt(self, request: Request, info: RequestInfo, attempt: int) -> tuple[Response, bytes]:
        request = self._check_guard(request, info)
        started, begin = time.time(), time.perf_counter()
        status, failure = 0, None
        try:
            response = await self.transport.send(request)
            status = response.status
            return await self._read_response(request, response, info)
        except BaseException as error:
            failure = error
            raise
        finally:
            self._notify(info, status, started, time.perf_counter() - begin, attempt, failure)
            failure = None  # no cycle of the error and this frame

    async def _read_response(self, request: Request, response: Response, info: RequestInfo) -> tuple[Response, bytes]:
        for warning in warning_texts(response.warnings):
            self._log_warning(warning, info)
        if request.stream and response.status < 300:
            return response, b""
        async with response:
            body = await response.read()
        if response.status < 300:
            return response, body
        raise error_from_response(response.status, response.headers, body, verb=info.verb, kind=info.kind, key=info.key)

    def _check_guard(self, request: Request, info: RequestInfo) -> Request:
        return request if request.method == "GET" else self.limit_write(request, info)

    def limit_write(self, request: Request, info: RequestInfo) -> Request:
        """Return a request that counts as a write, limited to the time that the guard allows.

        Raises: WriteRefused.
        """
        if self._guard is None:
            return request
        left = _check_guard(self._guard, info)
        timeout = left if request.timeout is None else min(left, request.timeout)
        return replace(request, timeout=timeout, before_write=partial(_check_guard, self._guard, info))

    def _notify(
        self,
        info: RequestInfo,
        status: int,
        started: float,
        duration: float,
        attempt: int,
        failure: BaseException | None,
    ) -> None:
        if not self._observers:
            return
        error = "" if failure is None else type(failure).__name__
        facts = (status, started, duration, attempt, error, isinstance(failure, asyncio.CancelledError))
        record = RequestRecord(info.verb, info.kind, info.key, *facts)
        for observer in self._observers:
            try:
                observer(record)
            except Exception:
                _log.exception("request observer failed")

    def _log_warning(self, text: str, info: RequestInfo) -> None:
        if text in self._logged_warnings or not self._log_warnings:
            return
        if len(self._logged_warnings) >= _MAX_LOGGED_WARNINGS:
            del self._logged_warnings[next(iter(self._logged_warnings))]
        self._logged_warnings[text] = None
        _log.warning("warning from the API server", extra={"warning": text, "verb": info.verb, "kind": info.kind})


def _check_guard(guard: WriteGuard, info: RequestInfo) -> float:
    """Return for how many seconds a write may run; raise WriteRefused if it may not."""
    left = guard()
    if left <= 0:
        raise WriteRefused(f"{info}: refused by the write guard, nothing was sent (is this process still the leader?)")
    return left
