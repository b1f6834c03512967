"""List and watch one collection of the API server, and write its changes to a sink.

`konverge.wire.list_watch` decides which request to send next and what a response means, and `konverge.cache.backoff`
decides when to send it. This module does what needs an event loop: sending, reading, timeouts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random, getrandbits
from typing import TypeVar

from konverge.cache.backoff import RequestBackoff, Stagger
from konverge.cache.history import HistoryCheck
from konverge.cache.idle_timeout import IdleTimeout
from konverge.cache.options import ReflectorOptions
from konverge.cache.reflector_stats import ReflectorState, ReflectorStats
from konverge.cache.sink import Sink
from konverge.cache.source import Source
from konverge.cache.watch_length import WatchLength
from konverge.errors import Expired, KonvergeError, ServerError, TooManyRequests, TransportError
from konverge.wire.frames import FrameReader
from konverge.wire.list_watch import Change, List, ListWatchState, Progress, Put, Remove, Selection, Stage, Synced
from konverge.wire.messages import Response
from konverge.wire.options import ListOptions, WatchOptions

__all__ = ["Reflector"]

T = TypeVar("T")

_log = logging.getLogger("konverge.cache")

_INITIAL_EVENTS_FACTOR = 10
"""The initial events may take this many times `initial_events_timeout` in all."""

_NO_IDLE_TIMEOUT = 1e9
"""The idle timeout of streams that cannot stall."""

_SILENT_PART = 1 / 8
"""A watch without data is a reason to check the history if it lasted for this part of the idle timeout."""


class Reflector:
    """Lists and watches one collection until cancelled.

    Promises:

    - the sink receives every change, in order, starting with a complete list; an object that was deleted while no watch
      was open is missing from the next list;
    - an idle stream is detected within `ReflectorOptions.idle_timeout` and opened again, from the last version;
    - `run` continues whatever the server sends and whatever the sink raises; it ends only when cancelled;
    - a list that is older than what was delivered is never delivered, unless the server's history restarted, as found
      out by `konverge.cache.history`; then everything is listed again, also if the watch seems to work;
    - while requests fail, there is at most one request per second, after a minute one in four seconds (the pages of one
      list count as one request), and none before the server's Retry-After;
    - `stats` reports at any time what the reflector does and its current error; `on_change` is called after each change
      of its state or its error.
    """

    def __init__(
        self,
        source: Source,
        sink: Sink,
        *,
        kind: str = "",
        selection: Selection | None = None,
        options: ReflectorOptions | None = None,
        stagger: Stagger | None = None,
        random: Random | None = None,
    ) -> None:
        self._source = source
        self._sink = sink
        self._kind = kind
        self._options = options or ReflectorOptions()
        if not getattr(source, "can_stall", True):
            self._options = replace(self._options, idle_timeout=_NO_IDLE_TIMEOUT)
        self._stagger = stagger or Stagger()
        self._random = random or Random(getrandbits(64))
        self._list_watch = ListWatchState(selection, kind=kind)
        self._history = HistoryCheck(source, sink, selection)
        self._backoff = RequestBackoff(self._options, self._random)
        self._now: Callable[[], float] = float  # returns 0 until there is an event loop
        self.on_change: Callable[[], None] = lambda: None
        self._error: KonvergeError | None = None
        self._state = ReflectorState.IDLE
        self._state_since = 0.0
        self._last_received = 0.0
        self._last_bookmark: float | None = None
        self._synced = False
        self._reconnecting = False  # whether the next request follows the end of a stream or a failure
        self._watch_length = WatchLength(self._options, self._random)
        self._stalled = False  # whether a short watch did not even end in time
        self._lists = self._pages = self._watches = self._ended_streams = 0
        self._events = self._bookmarks = self._failures = self._watch_count = 0

    @property
    def state(self) -> ReflectorState:
        """What the reflector is doing."""
        return self._state

    @property
    def watch_count(self) -> int:
        """How often a watch was opened: the number of changes to the state WATCHING."""
        return self._watch_count

    @property
    def error(self) -> KonvergeError | None:
        """The error of the last attempt, None when it succeeded."""
        return self._error

    def now(self) -> float:
        """Return the time of the event loop, 0 before it runs; any thread may call it."""
        return self._now()

    def stats(self) -> ReflectorStats:
        """Return the state, the counters and the current error."""
        now = self._now()
        since = self._backoff.failing_since if self._error is not None else None
        return ReflectorStats(
            state=self._state,
            state_age=now - self._state_since,
            synced=self._synced,
            error=self._error,
            error_age=None if since is None else now - since,
            idle_time=now - self._last_received,
            bookmark_age=None if self._last_bookmark is None else now - self._last_bookmark,
            resource_version=self._list_watch.resource_version,
            streaming=self._list_watch.streaming,
            lists=self._lists,
            pages=self._pages,
            watches=self._watches,
            events=self._events,
            bookmarks=self._bookmarks,
            failures=self._failures,
        )

    async def run(self) -> None:
        """List and watch the collection until cancelled."""
        self._now = asyncio.get_running_loop().time
        self._stagger.register()
        try:
            while True:
                await self._send_next()
        finally:
            self._stagger.unregister()
            self._enter(ReflectorState.STOPPED)

    async def _send_next(self) -> None:
        if self._history.is_pending:
            await self._check_history()
            return
        request = self._list_watch.next_request(timeout=self._watch_length.timeout())
        next_page = isinstance(request, List) and request.options.continue_
        if self._reconnecting or not next_page:
            await self._wait_to_send()
        try:
            if isinstance(request, List):
                await self._list(request.options)
            else:
                await self._watch(request.options)
        except KonvergeError as error:
            self._handle_error(error)
        except Exception as error:
            # Not the server's fault: code called from here is broken, and its effects are unknown, so list again.
            _log.exception("unexpected error in reflector", extra={"kind": self._kind})
            self._list_watch.relist()
            self._record_failure(KonvergeError(f"watch {self._kind}: {type(error).__name__}: {error}"))

    async def _check_history(self) -> None:
        """Find out whether the server's history restarted; if so, list again whatever its version is."""
        reconnecting = self._reconnecting
        await self._wait_to_send()
        self._reconnecting = reconnecting  # the list or watch that follows waits for its turn too
        try:
            restarted = await self._with_timeout(self._history.check(), "list", self._options.idle_timeout)
        except (ServerError, TransportError, TooManyRequests) as error:
            self._record_failure(error)
        except KonvergeError:
            self._history.reset()  # the server cannot be asked; the next list or watch shows why
        else:
            if restarted:
                facts = {"kind": self._kind, "version": self._sink.version}
                _log.warning("server history restarted: listing again", extra=facts)
                self._sink.restart_history()
                self._list_watch.relist()

    # Delays

    async def _wait_to_send(self) -> None:
        wait = self._backoff.delay(self._now())
        if wait > 0:
            self._enter(ReflectorState.WAITING)
            await asyncio.sleep(wait)
        if self._reconnecting:
            await self._stagger.wait()
        self._reconnecting = False
        self._backoff.record_request(self._now())

    @contextmanager
    def _judging_silence(self) -> Iterator[None]:
        """Update the length of watches by what the stream delivers; after one without data check the history."""
        events, bookmarks, ended = self._events, self._bookmarks, self._ended_streams
        opened, is_watch = self._now(), self._list_watch.stage is Stage.WATCH
        try:
            yield
        finally:
            is_silent = is_watch and (self._events, self._bookmarks) == (events, bookmarks)
            if is_silent and self._now() - opened >= self._options.idle_timeout * _SILENT_PART:
                self._history.start()
            reached = self._bookmarks > bookmarks or self._ended_streams > ended
            self._watch_length.update(events=self._events > events, complete=reached)

    # Requests

    async def _list(self, options: ListOptions) -> None:
        self._enter(ReflectorState.LISTING)
        self._pages += 1
        self._lists += not options.continue_
        # An unpaged list has only the timeout of its source: it is requested when pages do not work.
        timeout = self._options.idle_timeout if options.limit else None
        body = await self._with_timeout(self._source.list(options), "list", timeout)
        self._last_received = self._now()
        for change in self._list_watch.handle_page(body):
            if isinstance(change, Synced):
                await self._swap(change)
            else:
                self._store(change)

    async def _watch(self, options: WatchOptions) -> None:
        self._enter(ReflectorState.LISTING if options.send_initial_events else ReflectorState.OPENING)
        self._watches += 1
        self._lists += options.send_initial_events
        opening = self._source.watch(options)
        async with await self._with_timeout(opening, "watch", self._options.idle_timeout) as response:
            with self._recovery_timer(), self._judging_silence():
                await self._consume(response)

    async def _consume(self, response: Response) -> None:
        opened = self._last_received = self._now()
        self._begin_stream()
        timeout = asyncio.timeout(None)
        try:
            async with timeout:
                with IdleTimeout(timeout) as idle:
                    await self._read_stream(response, opened, idle)
        except TimeoutError:
            if not timeout.expired():
                raise
            self._timed_out()
        else:
            self._ended(self._now() - opened)

    async def _with_timeout(self, response: Awaitable[T], verb: str, seconds: float | None) -> T:
        timeout = asyncio.timeout(seconds)
        try:
            async with timeout:
                return await response
        except TimeoutError as error:
            if not timeout.expired():
                raise
            raise TransportError(f"{verb} {self._kind}: no response within {seconds:g} s") from error

    @contextmanager
    def _recovery_timer(self) -> Iterator[None]:
        """Reset the backoff when the stream has been open for a while."""
        timer = asyncio.get_running_loop().call_later(self._options.healthy_after, self._recovered)
        try:
            yield
        finally:
            timer.cancel()

    def _begin_stream(self) -> None:
        reset = self._list_watch.handle_open()
        if reset is not None:
            self._sink.begin()
        else:
            self._enter(ReflectorState.WATCHING)

    def _idle_limit(self, opened: float) -> float:
        """Return how long the stream may be idle from now on."""
        if self._list_watch.stage is not Stage.STREAM:
            return self._options.idle_timeout
        limit = self._options.initial_events_timeout
        return min(limit, opened + _INITIAL_EVENTS_FACTOR * limit - self._now())

    async def _read_stream(self, response: Response, opened: float, idle: IdleTimeout) -> None:
        reader = FrameReader()
        idle.reset(self._now() + self._idle_limit(opened))
        async for chunk in response.chunks():
            idle.pause()  # the time that the sink needs is not idle time of the server
            self._last_received = self._now()
            for frame in reader.feed(chunk):
                change = self._list_watch.handle_frame(frame)
                if isinstance(change, Synced):
                    await self._swap(change)
                    self._enter(ReflectorState.WATCHING)
                elif change is not None:
                    self._store(change)
            if self._stalled:
                self._stalled = False
                self._recovered()
            idle.reset(self._now() + self._idle_limit(opened))
        reader.close()

    # Writes to the sink

    def _store(self, change: Change) -> None:
        match change:
            case Put():
                self._list_watch.confirm(self._sink.put(change.raw))
            case Remove():
                self._list_watch.confirm(self._sink.remove(change.raw))
            case Progress():
                self._bookmarks += 1
                self._last_bookmark = self._now()
                self._sink.progress(change.resource_version)
                return
            case _:
                self._sink.begin()
                return
        if self._state is ReflectorState.WATCHING:
            self._events += 1

    async def _swap(self, synced: Synced) -> None:
        try:
            await self._sink.swap(synced.resource_version)
        except Expired:
            self._history.start()
            raise
        self._synced = True

    # Ends and failures

    def _ended(self, lived: float) -> None:
        self._list_watch.handle_close()
        self._reconnecting = True
        self._stalled = False
        self._ended_streams += 1
        if lived < self._options.healthy_after:
            text = f"watch {self._kind}: the stream was closed {lived:.1f} s after it was opened"
            self._record_failure(TransportError(text))

    def _timed_out(self) -> None:
        self._reconnecting = True
        if self._list_watch.stage is Stage.STREAM:
            _log.info("initial events timed out: listing in pages", extra={"kind": self._kind})
            self._list_watch.handle_timeout()
            return
        self._list_watch.handle_close()
        if self._watch_length.is_short:
            self._stalled = True
            text = f"watch {self._kind}: stalled, no data and no end within {self._options.idle_timeout:g} s"
            self._record_failure(TransportError(text))

    def _handle_error(self, error: KonvergeError) -> None:
        streamed = self._list_watch.streaming
        self._list_watch.handle_error(error)
        if streamed and not self._list_watch.streaming:
            return  # the server has no streaming lists, which is not a failure: request pages at once
        self._record_failure(error)

    def _record_failure(self, error: KonvergeError) -> None:
        self._reconnecting = True
        self._failures += 1
        retry_after = error.retry_after if isinstance(error, TooManyRequests | ServerError) else None
        self._backoff.record_failure(self._now(), retry_after=retry_after)
        if isinstance(error, Expired) and self._backoff.failures == 1:
            return  # an expired version is normal and solved by a list; only a second one in a row is a failure
        if type(error) is not type(self._error):
            _log.warning("watch failed", extra={"kind": self._kind, "error": str(error)})
        self._error = error
        self.on_change()

    def _recovered(self) -> None:
        if self._stalled:
            return  # an open stream alone does not prove that data arrives
        self._backoff.reset()
        if self._error is not None:
            _log.info("watch recovered", extra={"kind": self._kind})
            self._error = None
            self.on_change()

    def _enter(self, state: ReflectorState) -> None:
        if self._state is not state:
            self._watch_count += state is ReflectorState.WATCHING
            self._state = state
            self._state_since = self._now()
            self.on_change()
