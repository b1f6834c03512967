"""Events for people: what a controller did or could not do, told on the object that it is about.

`record` is a plain call that counts and queues; `run` sends, one write after the other. Events are a courtesy: a
reconcile neither waits for one nor fails by one, and a server in trouble gets fewer of them, never more.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from random import Random, getrandbits
from typing import Any, Final

from konverge.client import Client
from konverge.errors import AlreadyExists, KonvergeError, NotFound, ServerError, TooManyRequests, TransportError
from konverge.objects import Key, MicroTime, wall_clock
from konverge.reconcile.event_limits import Allowance, EventLimits, Share
from konverge.reconcile.event_objects import (
    WORD_BYTES,
    check_controller,
    checked,
    cut,
    event_name,
    event_of,
    namespace_of,
)
from konverge.reconcile.event_schedule import Agenda
from konverge.reconcile.event_series import EventBook, Reference, Said, Series

__all__ = ["EventLimits", "EventRecorder", "EventStats", "Reference"]

_log = logging.getLogger("konverge.reconcile")

_COMPLAIN_EVERY: Final = 300.0
_FIRST_RETRY: Final = 1.0


@dataclass(frozen=True, slots=True)
class EventStats:
    """A recorder in numbers, counted from its start.

    Each event that was recorded is `written` (on the server, by itself or in a count), `pending`, or dropped: for a
    limit, because too many waited, because the server would not take it, or because the recorder stopped.
    """

    recorded: int
    written: int
    pending: int
    dropped_limit: int
    dropped_queue: int
    dropped_failed: int
    dropped_stopped: int
    creates: int  # requests that succeeded
    patches: int
    series: int  # remembered now

    @property
    def dropped(self) -> int:
        """All that will never reach the server."""
        return self.dropped_limit + self.dropped_queue + self.dropped_failed + self.dropped_stopped


class EventRecorder:
    """Records what controllers tell, and sends them as events.k8s.io/v1.

    Promises:

    - `record` does not wait, and raises nothing but ValueError for arguments that are wrong whatever the server says;
      it may be called from any thread;
    - an event like one seen in the last minutes is counted on that one (`series`), not written anew;
    - the writes about one object, and those about all, stay within `limits`, retries included;
    - the memory it takes is bounded by `limits`; whatever is dropped is counted in `stats`;
    - a write that fails for now is tried a few times and does not hold up others by its waits.

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
        self._instance = cut(instance or f"{controller}-{socket.gethostname()}", WORD_BYTES)
        self._random = random or Random(getrandbits(64))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._limit: asyncio.Timeout | None = None
        self._grace: float | None = None  # set once it is closed
        self._inbox: deque[Said] = deque()  # what came from other threads, or before `run`
        self._book = EventBook(self.limits, self._crowded_out)
        self._allowance = Allowance(self.limits, 0.0)
        self._agenda = Agenda()
        self._unsent = 0
        # Held for no longer than a count takes: threads that record share these numbers with the loop.
        self._counting = threading.Lock()
        self._recorded = 0
        self._dropped = dict.fromkeys(("limit", "queue", "failed", "stopped"), 0)
        self._written = self._creates = self._patches = 0
        self._complained = -math.inf

    def record(
        self,
        about: Reference,
        *,
        type: str = "Normal",  # noqa: A002 - the field's own name
        reason: str,
        message: str,
        action: str = "",
        related: Reference | None = None,
        controller: str = "",
    ) -> None:
        """Note that something happened to an object; it is sent in the background, or counted as dropped.

        `controller` reports in the name of another one than the recorder's own, within the same limits.

        Raises: ValueError for an unknown type, a reason or action that is not one word, or no object.
        """
        event = checked(
            Said(
                controller=controller or self._controller,
                about=about,
                related=related,
                type=type,
                reason=reason,
                action=action or reason,
                note=message,
                moment=self._moment(),
            )
        )
        with self._counting:
            self._recorded += 1
        if self._grace is not None:
            self._drop("stopped")
        elif self._loop is not None and _running_loop() is self._loop:
            self._take(event, self._loop.time())
        else:
            self._hand_in(event)

    async def run(self) -> None:
        """Send until `close` is called, and then what is left, for as long as it allows."""
        loop = asyncio.get_running_loop()
        self._allowance = Allowance(self.limits, loop.time())
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
        """Take no more events; `run` sends what is left and ends, after `grace` seconds at the latest.

        Called once more, the last grace counts. It belongs on the loop that runs `run`.
        """
        self._grace = grace
        if self._limit is not None and self._loop is not None and not self._limit.expired():
            self._limit.reschedule(self._loop.time() + grace)
        self._agenda.wake()

    def stats(self) -> EventStats:
        """Give the recorder in numbers."""
        pending = len(self._inbox) + sum(series.unwritten for series in self._book.all())
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
            series=len(self._book),
        )

    # Taking

    def _moment(self) -> MicroTime:
        """Give the date by the loop that sends, whichever thread asks: a thread has none of its own."""
        return MicroTime.fromtimestamp(wall_clock(self._loop), UTC)

    def _hand_in(self, event: Said) -> None:
        """Leave an event where `run` finds it: its loop is not this one, or not known yet."""
        if len(self._inbox) >= self.limits.queue:
            self._drop("queue")
            return
        self._inbox.append(event)
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # the loop is closed: so is this recorder, in a moment
                loop.call_soon_threadsafe(self._empty_inbox)

    def _empty_inbox(self) -> None:
        while self._inbox and self._loop is not None:
            self._take(self._inbox.popleft(), self._loop.time())

    def _take(self, event: Said, now: float) -> None:
        series = self._book.see(event, now)
        if series is not None:
            if series.created and not series.busy:
                self._agenda.plan(series, max(now, series.written_at + series.gap))
            return
        if self._unsent >= self.limits.queue:
            self._drop("queue")
            return
        share = Share.WARNING if event.type == "Warning" else Share.NORMAL
        if self._allowance.take(_object(event), now, share) > 0.0:
            self._drop("limit")
            return
        series = self._book.open(event, now)
        series.paid = True
        self._unsent += 1
        self._agenda.plan(series, now)

    def _drop(self, why: str, sightings: int = 1) -> None:
        with self._counting:
            self._dropped[why] += sightings

    # Sending

    async def _send_until_closed(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._grace is None:
            series = self._agenda.next(loop.time())
            if series is None:
                await self._agenda.wait()
            else:
                await self._look_at(series, loop)

    async def _look_at(self, series: Series, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        if not series.unwritten:
            if self._book.is_over(series, now):
                self._forget(series, "limit")
            else:
                self._agenda.plan(series, self._book.end_of(series))
        elif wait := self._price(series, now):
            self._agenda.plan(series, now + wait)
        else:
            await self._write(series, loop)

    def _price(self, series: Series, now: float) -> float:
        """Pay for a write; give the seconds until it can be paid."""
        if not series.paid:
            share = Share.COUNT if series.created else Share.NORMAL
            wait = self._allowance.take(_object(series.first), now, share)
            if wait > 0.0:
                return wait
        series.paid = False
        return 0.0

    async def _write(self, series: Series, loop: asyncio.AbstractEventLoop) -> None:
        count = series.count
        series.busy = True
        error = await self._try(series)
        series.busy = False
        now = loop.time()
        if series.forgotten:
            return  # crowded out meanwhile, and counted as dropped
        match error:
            case None:
                self._succeed(series, count, now)
            case NotFound() if series.created:
                self._start_anew(series, now)
            case AlreadyExists():
                self._name_is_taken(series, error, now)
            case TransportError() | ServerError() | TooManyRequests():
                self._try_again(series, error, now)
            case _:
                self._give_up(series, error, now)

    async def _try(self, series: Series) -> Exception | None:
        """Send a series as it stands; give what went wrong."""
        try:
            if series.created:
                await self._patch(series)
            else:
                await self._create(series)
        except KonvergeError as error:
            return error
        except Exception as error:
            # A mistake of ours must not end the sending of all other events.
            _log.exception("An event could not be written", extra=_facts(series))
            return error
        return None

    async def _create(self, series: Series) -> None:
        series.name = series.name or event_name(series.first.about, self._random)
        await self._client.create(event_of(series, self._instance))

    async def _patch(self, series: Series) -> None:
        from konverge.k8s.events.v1 import Event

        patch = {"series": {"count": series.count, "lastObservedTime": series.last.to_wire()}}
        await self._client.patch(Event, Key(namespace_of(series), series.name), patch)

    # Outcomes

    def _succeed(self, series: Series, count: int, now: float) -> None:
        limits = self.limits
        if series.created:
            self._patches += 1
            series.gap = min(limits.longest_heartbeat, series.gap * 2)
        else:
            self._creates += 1
            self._is_created(series)
        self._settle(series, count, now)

    def _settle(self, series: Series, count: int, now: float) -> None:
        self._written += count - series.written
        series.written, series.written_at, series.tries = count, now, 0
        self._agenda.plan(series, now + series.gap if series.unwritten else self._book.end_of(series))

    def _is_created(self, series: Series) -> None:
        series.created = True
        series.gap = self.limits.heartbeat
        self._unsent -= 1

    def _start_anew(self, series: Series, now: float) -> None:
        """Create once more what the server has forgotten: events live there for an hour, or until somebody deletes."""
        series.created, series.name = False, ""
        self._unsent += 1
        self._agenda.plan(series, now)

    def _name_is_taken(self, series: Series, error: Exception, now: float) -> None:
        if series.tries:
            # By an earlier try of ours, whose answer was lost. How often it was seen then is not known any more, but
            # at least once; the next heartbeat sets it right.
            self._is_created(series)
            self._settle(series, max(1, series.written), now)
            return
        series.name = ""
        self._try_again(series, error, now)

    def _try_again(self, series: Series, error: Exception, now: float) -> None:
        series.tries += 1
        if series.tries >= self.limits.tries or self._grace is not None:
            self._give_up(series, error, now)
            return
        wish = getattr(error, "retry_after", None) or 0.0
        delay = _FIRST_RETRY * 2 ** (series.tries - 1) * (1 + self._random.random() / 2)
        self._agenda.plan(series, now + max(wish, delay))

    def _give_up(self, series: Series, error: Exception, now: float) -> None:
        if now - self._complained >= _COMPLAIN_EVERY:
            self._complained = now
            _log.warning("Event dropped: the server did not take it", extra={**_facts(series), "error": str(error)})
        self._forget(series, "failed")

    def _forget(self, series: Series, why: str) -> None:
        """Remember a series no longer; what the server does not know of it is lost to this."""
        if series.forgotten:
            return
        self._book.forget(series)
        self._unsent -= not series.created
        self._drop(why, series.unwritten)

    def _crowded_out(self, series: Series) -> None:
        self._forget(series, "limit")

    # The end

    async def _drain(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send each count that the server does not know once, new events first."""
        left = sorted((one for one in self._book.all() if one.unwritten), key=lambda one: one.created)
        for series in left:
            if not series.forgotten and not self._price(series, loop.time()):
                await self._write(series, loop)

    def _stop(self) -> None:
        self._loop = self._limit = None
        self._grace = self._grace or 0.0
        for series in self._book.all():
            self._forget(series, "stopped")
        while self._inbox:
            self._inbox.popleft()
            self._drop("stopped")
        self._agenda.clear()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _object(event: Said) -> tuple[str, str, str, str]:
    about = event.about
    return (about.kind, about.namespace, about.name, about.uid)


def _facts(series: Series) -> dict[str, Any]:
    about = series.first.about
    return {"kind": about.kind, "key": str(Key(about.namespace, about.name)), "reason": series.first.reason}
