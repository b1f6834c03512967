"""Events for users: what a controller did or could not do, recorded on the object concerned.

`record` is a synchronous call that counts and queues; `run` sends, one write after the other. Events are best effort: a
reconcile does not wait for one and does not fail because of one, and a failing server gets fewer of them, not more.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import threading
from collections import deque
from contextlib import suppress
from datetime import UTC
from random import Random, getrandbits
from typing import Any, Final

from konverge.client import Client
from konverge.errors import AlreadyExists, KonvergeError, NotFound, ServerError, TooManyRequests, TransportError
from konverge.objects import Key, MicroTime, wall_clock
from konverge.reconcile.event_limits import EventLimits, EventRateLimiter, Share
from konverge.reconcile.event_objects import (
    WORD_BYTES,
    check_controller,
    event_name,
    event_of,
    namespace_of,
    truncate,
    validate,
)
from konverge.reconcile.event_schedule import SeriesSchedule
from konverge.reconcile.event_series import EventCorrelator, RecordedEvent, Reference, Series
from konverge.reconcile.event_stats import EventStats

__all__ = ["EventLimits", "EventRecorder", "Reference"]

_log = logging.getLogger("konverge.reconcile")

_LOG_INTERVAL: Final = 300.0
_FIRST_RETRY: Final = 1.0


class EventRecorder:
    """Records events of controllers, and sends them as events.k8s.io/v1.

    Promises:

    - `record` does not wait, and raises only ValueError, for arguments that every server would reject; it may be called
      from any thread;
    - a repetition of an event of the last minutes is counted on that event (`series`), not written as a new one;
    - the writes about one object, and those about all objects, stay within `limits`, retries included;
    - memory is bounded by `limits`; all dropped events are counted in `stats`;
    - a write with a temporary error is retried a few times, and its delays do not block other events.

    Construction starts nothing: `run` sends until `close` is called.
    """

    def __init__(
        self,
        client: Client,
        *,
        controller: str,
        instance: str = "",
        limits: EventLimits | None = None,
        random: Random | None = None,
    ) -> None:
        check_controller(controller)
        self.limits = limits or EventLimits()
        self._client = client.using(timeout=self.limits.timeout)
        self._controller = controller
        self._instance = truncate(instance or f"{controller}-{socket.gethostname()}", WORD_BYTES)
        self._random = random or Random(getrandbits(64))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._limit: asyncio.Timeout | None = None
        self._grace: float | None = None  # set by `close`
        self._inbox: deque[RecordedEvent] = deque()  # events from other threads, or from before `run`
        self._correlator = EventCorrelator(self.limits, self._evict)
        self._rate_limiter = EventRateLimiter(self.limits, 0.0)
        self._schedule = SeriesSchedule()
        self._unsent = 0
        # Threads that record share these counters with the event loop. Never held across an await.
        self._counter_lock = threading.Lock()
        self._recorded = 0
        self._dropped: dict[str, int] = dict.fromkeys(("limit", "queue", "failed", "stopped"), 0)
        self._written = self._creates = self._patches = 0
        self._last_logged = -math.inf

    def record(
        self,
        regarding: Reference,
        *,
        type: str = "Normal",  # noqa: A002 - the name of the API field
        reason: str,
        message: str,
        action: str = "",
        related: Reference | None = None,
        controller: str = "",
    ) -> None:
        """Record an event about an object; it is sent in the background, or counted as dropped.

        `controller` is the reporting controller if it is not the recorder's own; the limits are the same.

        Raises: ValueError for an unknown type, a reason or action that is not one word, or no object.
        """
        event = validate(
            RecordedEvent(
                controller=controller or self._controller,
                regarding=regarding,
                related=related,
                type=type,
                reason=reason,
                action=action or reason,
                note=message,
                time=self._now(),
            )
        )
        with self._counter_lock:
            self._recorded += 1
        if self._grace is not None:
            self._count_dropped("stopped")
        elif self._loop is not None and _running_loop() is self._loop:
            self._add(event, self._loop.time())
        else:
            self._put_into_inbox(event)

    async def run(self) -> None:
        """Send until `close` is called, and then what is left, within its grace period."""
        loop = asyncio.get_running_loop()
        self._rate_limiter = EventRateLimiter(self.limits, loop.time())
        self._loop = loop
        try:
            async with asyncio.timeout(None) as self._limit:
                if self._grace is not None:
                    self.close(self._grace)
                self._empty_inbox()
                await self._send_until_closed(loop)
                await self._drain(loop)
        except TimeoutError:
            if self._limit is None or not self._limit.expired():
                raise
        finally:
            self._stop()

    def close(self, grace: float = 5.0) -> None:
        """Reject new events; `run` sends what is left and ends, after `grace` seconds at the latest.

        After a second call its grace period counts. Call it on the event loop of `run`.
        """
        self._grace = grace
        if self._limit is not None and self._loop is not None and not self._limit.expired():
            self._limit.reschedule(self._loop.time() + grace)
        self._schedule.notify()

    def stats(self) -> EventStats:
        """Return the numbers of the recorder."""
        pending = len(self._inbox) + sum(series.pending for series in self._correlator.all())
        return EventStats(
            recorded=self._recorded,
            written=self._written,
            pending=pending,
            dropped_limit=self._dropped["limit"],
            dropped_queue=self._dropped["queue"],
            dropped_failed=self._dropped["failed"],
            dropped_stopped=self._dropped["stopped"],
            creates=self._creates,
            patches=self._patches,
            series=len(self._correlator),
        )

    # Recording

    def _now(self) -> MicroTime:
        """Return the wall-clock time of the event loop that sends; another thread has no event loop of its own."""
        return MicroTime.fromtimestamp(wall_clock(self._loop), UTC)

    def _put_into_inbox(self, event: RecordedEvent) -> None:
        """Queue an event for `run`, whose event loop is not the current one, or not known yet."""
        if len(self._inbox) >= self.limits.queue:
            self._count_dropped("queue")
            return
        self._inbox.append(event)
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop is closed, and this recorder is about to be
                loop.call_soon_threadsafe(self._empty_inbox)

    def _empty_inbox(self) -> None:
        while self._inbox and self._loop is not None:
            self._add(self._inbox.popleft(), self._loop.time())

    def _add(self, event: RecordedEvent, now: float) -> None:
        series = self._correlator.count(event, now)
        if series is not None:
            if series.created and not series.writing:
                self._schedule.add(series, max(now, series.written_at + series.interval))
            return
        if self._unsent >= self.limits.queue:
            self._count_dropped("queue")
            return
        share = Share.WARNING if event.type == "Warning" else Share.NORMAL
        if self._rate_limiter.take(_object_of(event), now, share) > 0.0:
            self._count_dropped("limit")
            return
        series = self._correlator.create(event, now)
        series.has_tokens = True
        self._unsent += 1
        self._schedule.add(series, now)

    def _count_dropped(self, reason: str, count: int = 1) -> None:
        with self._counter_lock:
            self._dropped[reason] += count

    # Sending

    async def _send_until_closed(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._grace is None:
            series = self._schedule.pop(loop.time())
            if series is None:
                await self._schedule.wait()
            else:
                await self._process(series, loop)

    async def _process(self, series: Series, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        if not series.pending:
            if self._correlator.is_expired(series, now):
                self._drop(series, "limit")
            else:
                self._schedule.add(series, self._correlator.expiry(series))
        elif wait := self._take_tokens(series, now):
            self._schedule.add(series, now + wait)
        else:
            await self._write(series, loop)

    def _take_tokens(self, series: Series, now: float) -> float:
        """Claim the tokens for a write; return the seconds until they are available, or 0."""
        if not series.has_tokens:
            share = Share.COUNT if series.created else Share.NORMAL
            wait = self._rate_limiter.take(_object_of(series.first), now, share)
            if wait > 0.0:
                return wait
        series.has_tokens = False
        return 0.0

    async def _write(self, series: Series, loop: asyncio.AbstractEventLoop) -> None:
        count = series.count
        series.writing = True
        error = await self._send(series)
        series.writing = False
        now = loop.time()
        if series.dropped:
            return  # evicted during the write, and counted as dropped
        match error:
            case None:
                self._handle_success(series, count, now)
            case NotFound() if series.created:
                self._recreate(series, now)
            case AlreadyExists():
                self._handle_existing_name(series, error, now)
            case TransportError() | ServerError() | TooManyRequests():
                self._retry(series, error, now)
            case _:
                self._give_up(series, error, now)

    async def _send(self, series: Series) -> Exception | None:
        """Send the current state of a series; return the error, if any."""
        try:
            if series.created:
                await self._patch(series)
            else:
                await self._create(series)
        except KonvergeError as error:
            return error
        except Exception as error:
            # A bug for one event must not stop the sending of all others.
            _log.exception("event write failed", extra=_facts(series))
            return error
        return None

    async def _create(self, series: Series) -> None:
        series.name = series.name or event_name(series.first.regarding, self._random)
        await self._client.create(event_of(series, self._instance))

    async def _patch(self, series: Series) -> None:
        from konverge.k8s.events.v1 import Event

        patch = {"series": {"count": series.count, "lastObservedTime": series.last.to_wire()}}
        await self._client.patch(Event, Key(namespace_of(series), series.name), patch)

    # Results of writes

    def _handle_success(self, series: Series, count: int, now: float) -> None:
        if series.created:
            self._patches += 1
            series.interval = min(self.limits.max_heartbeat, series.interval * 2)
        else:
            self._creates += 1
            self._set_created(series)
        self._set_written(series, count, now)

    def _set_written(self, series: Series, count: int, now: float) -> None:
        self._written += count - series.written
        series.written, series.written_at, series.attempts = count, now, 0
        self._schedule.add(series, now + series.interval if series.pending else self._correlator.expiry(series))

    def _set_created(self, series: Series) -> None:
        series.created = True
        series.interval = self.limits.heartbeat
        self._unsent -= 1

    def _recreate(self, series: Series, now: float) -> None:
        """Schedule an Event that the server has deleted: it keeps events for an hour, and a user may delete them."""
        series.created, series.name = False, ""
        self._unsent += 1
        self._schedule.add(series, now)

    def _handle_existing_name(self, series: Series, error: Exception, now: float) -> None:
        if series.attempts:
            # It was created by an earlier attempt whose response was lost. The count that it wrote is not known, but
            # is at least 1; the next heartbeat corrects it.
            self._set_created(series)
            self._set_written(series, max(1, series.written), now)
            return
        series.name = ""
        self._retry(series, error, now)

    def _retry(self, series: Series, error: Exception, now: float) -> None:
        series.attempts += 1
        if series.attempts >= self.limits.attempts or self._grace is not None:
            self._give_up(series, error, now)
            return
        retry_after = getattr(error, "retry_after", None) or 0.0
        backoff = _FIRST_RETRY * 2 ** (series.attempts - 1) * (1 + self._random.random() / 2)
        self._schedule.add(series, now + max(retry_after, backoff))

    def _give_up(self, series: Series, error: Exception, now: float) -> None:
        if now - self._last_logged >= _LOG_INTERVAL:
            self._last_logged = now
            _log.warning("event dropped", extra={**_facts(series), "error": str(error)})
        self._drop(series, "failed")

    def _drop(self, series: Series, reason: str) -> None:
        """Drop a series; the part of its count that is not on the server is counted as dropped."""
        if series.dropped:
            return
        self._correlator.drop(series)
        self._unsent -= not series.created
        self._count_dropped(reason, series.pending)

    def _evict(self, series: Series) -> None:
        self._drop(series, "limit")

    # Shutdown

    async def _drain(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send each pending count once, new events first."""
        left = sorted((one for one in self._correlator.all() if one.pending), key=lambda one: one.created)
        for series in left:
            if not series.dropped and not self._take_tokens(series, loop.time()):
                await self._write(series, loop)

    def _stop(self) -> None:
        self._loop = self._limit = None
        self._grace = self._grace or 0.0
        for series in self._correlator.all():
            self._drop(series, "stopped")
        while self._inbox:
            self._inbox.popleft()
            self._count_dropped("stopped")
        self._schedule.clear()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _object_of(event: RecordedEvent) -> tuple[str, str, str, str]:
    regarding = event.regarding
    return (regarding.kind, regarding.namespace, regarding.name, regarding.uid)


def _facts(series: Series) -> dict[str, Any]:
    regarding = series.first.regarding
    key = str(Key(regarding.namespace, regarding.name))
    return {"kind": regarding.kind, "key": key, "reason": series.first.reason}
