"""Keep a sink equal to a collection of the API server: ask, feed the machine, write, wait after a failure.

What to ask and what an answer means is decided in `konverge.wire.watching`, when to ask again in
`konverge.cache.backoff`. Here is what needs a loop: sending, reading, deadlines.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random, getrandbits
from typing import TypeVar

from konverge.cache.backoff import Pace, Patience, Spacing
from konverge.cache.idle_timeout import IdleTimeout
from konverge.cache.reflector_stats import ReflectorStats, State
from konverge.cache.sink import Sink
from konverge.cache.source import Source
from konverge.errors import Expired, KonvergeError, ServerError, TooManyRequests, TransportError
from konverge.wire.frames import FrameReader
from konverge.wire.messages import Response
from konverge.wire.options import ListOptions, WatchOptions
from konverge.wire.watching import Change, Following, List, Progress, Put, Remove, Selection, Stage, Synced

__all__ = ["Reflector"]

T = TypeVar("T")

_log = logging.getLogger("konverge.cache")

_INITIAL_EVENTS_IN_ALL = 10
"""The initial events may take so many times their deadline for silence."""

_NEVER = 1e9
"""So long may a stream be silent that cannot stall."""

_QUIETEST = 3
"""A watch is made half as long so many times at most."""


class Reflector:
    """Follows one collection for ever.

    Promises:

    - the sink gets every change, in order, from a complete list on; what vanished while nobody looked is missing from
      the next list that it is given;
    - a stream that says nothing is noticed within `Patience.silence` and opened anew, from the last version;
    - whatever the server says, or whoever raises: `run` goes on. It ends only by being cancelled;
    - in trouble there is at most a request a second, one in four seconds after a minute (the pages of one list count
      as one request), and never one before the time that the server asked for;
    - `stats` says at any time what it does and what is wrong.
    """

    def __init__(
        self,
        source: Source,
        sink: Sink,
        *,
        kind: str = "",
        selection: Selection | None = None,
        patience: Patience | None = None,
        spacing: Spacing | None = None,
        random: Random | None = None,
    ) -> None:
        self._source = source
        self._sink = sink
        self._kind = kind
        self._patience = patience or Patience()
        if not getattr(source, "can_stall", True):
            self._patience = replace(self._patience, silence=_NEVER)
        self._spacing = spacing or Spacing()
        self._random = random or Random(getrandbits(64))
        self._following = Following(selection, kind=kind)
        self._pace = Pace(self._patience, self._random)
        self._now: Callable[[], float] = float  # 0 until there is a loop to ask
        self._error: KonvergeError | None = None
        self._state = State.IDLE
        self._state_since = 0.0
        self._heard = 0.0
        self._bookmarked: float | None = None
        self._synced = False
        self._again = False  # whether the next request follows the end of a stream, or a failure
        self._quiet = 0  # how short watches are, see _watch_timeout
        self._mute = False  # whether not even the end came of a watch that was asked to be short
        self._lists = self._pages = self._watches = self._ended_streams = 0
        self._events = self._bookmarks = self._failures = self._openings = 0

    @property
    def state(self) -> State:
        """What it is doing."""
        return self._state

    @property
    def openings(self) -> int:
        """How often it began to hear of changes."""
        return self._openings

    def stats(self) -> ReflectorStats:
        """Tell what it does, what it has done and what is wrong."""
        now = self._now()
        since = self._pace.trouble_since if self._error is not None else None
        return ReflectorStats(
            state=self._state,
            state_age=now - self._state_since,
            synced=self._synced,
            error=self._error,
            trouble_age=None if since is None else now - since,
            silent=now - self._heard,
            bookmark_age=None if self._bookmarked is None else now - self._bookmarked,
            resource_version=self._following.resource_version,
            streaming=self._following.streaming,
            lists=self._lists,
            pages=self._pages,
            watches=self._watches,
            events=self._events,
            bookmarks=self._bookmarks,
            failures=self._failures,
        )

    async def run(self) -> None:
        """Follow the collection until this is cancelled."""
        self._now = asyncio.get_running_loop().time
        self._spacing.join()
        try:
            while True:
                await self._ask_once()
        finally:
            self._spacing.leave()
            self._enter(State.STOPPED)

    async def _ask_once(self) -> None:
        question = self._following.ask(timeout=self._watch_timeout())
        next_page = isinstance(question, List) and question.options.continue_
        if self._again or not next_page:
            await self._wait_for_turn()
        try:
            if isinstance(question, List):
                await self._list(question.options)
            else:
                await self._watch(question.options)
        except KonvergeError as error:
            self._failed(error)
        except Exception as error:
            # Not the server's doing: something that was called from here is broken, and what it did is unknown.
            _log.exception("Following a collection failed unexpectedly", extra={"kind": self._kind})
            self._following.list_again()
            self._in_trouble(KonvergeError(f"follow {self._kind}: {type(error).__name__}: {error}"))

    # Waiting

    async def _wait_for_turn(self) -> None:
        wait = self._pace.wait(self._now())
        if wait > 0:
            self._enter(State.WAITING)
            await asyncio.sleep(wait)
        if self._again:
            await self._spacing.turn()
        self._again = False
        self._pace.asked(self._now())

    def _watch_timeout(self) -> float:
        """Give a time that differs from stream to stream, so that they do not all end together.

        The server sends a bookmark each minute and shortly before the end. A stream that says nothing for 45 s is
        opened anew, and would never live to see the former. So where little happens watches are short enough for the
        latter: each ends with a bookmark, and the version stays young. Where something on the way cuts streams even
        sooner they are shorter still.
        """
        patience = self._patience
        if self._quiet:
            return self._random.uniform(0.8, 0.9) * patience.silence / float(2 ** (self._quiet - 1))
        return self._random.uniform(patience.shortest_watch, patience.longest_watch)

    @contextmanager
    def _judging_quiet(self) -> Iterator[None]:
        """Judge a stream by what it told and, when that was nothing, by whether it lived to its end."""
        events, bookmarks, ended = self._events, self._bookmarks, self._ended_streams
        try:
            yield
        finally:
            if self._events > events:
                self._quiet = 0
            elif self._bookmarks > bookmarks or self._ended_streams > ended:
                self._quiet = max(1, self._quiet - 1)
            else:
                self._quiet = min(_QUIETEST, self._quiet + 1)

    # Asking

    async def _list(self, options: ListOptions) -> None:
        self._enter(State.LISTING)
        self._pages += 1
        self._lists += not options.continue_
        # A list in one piece has no limit but the source's own: it is asked for when pages are of no use.
        body = await self._within(self._source.list(options), "list", self._patience.silence if options.limit else None)
        self._heard = self._now()
        for change in self._following.page(body):
            if isinstance(change, Synced):
                await self._swap(change)
            else:
                self._store(change)

    async def _watch(self, options: WatchOptions) -> None:
        self._enter(State.LISTING if options.send_initial_events else State.OPENING)
        self._watches += 1
        self._lists += options.send_initial_events
        opening = self._source.watch(options)
        async with await self._within(opening, "watch", self._patience.silence) as response:
            with self._settling(), self._judging_quiet():
                await self._follow(response)

    async def _follow(self, response: Response) -> None:
        opened = self._heard = self._now()
        self._begin_stream()
        try:
            async with asyncio.timeout(None) as deadline:
                with IdleTimeout(deadline) as hush:
                    await self._read(response, opened, hush)
        except TimeoutError:
            if not deadline.expired():
                raise
            self._fell_silent()
        else:
            self._ended(self._now() - opened)

    async def _within(self, answer: Awaitable[T], verb: str, limit: float | None) -> T:
        try:
            async with asyncio.timeout(limit) as deadline:
                return await answer
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise TransportError(f"{verb} {self._kind}: no answer within {limit:g} s") from error

    @contextmanager
    def _settling(self) -> Iterator[None]:
        """End the trouble when the stream has been open for a while."""
        timer = asyncio.get_running_loop().call_later(self._patience.settled_after, self._settled)
        try:
            yield
        finally:
            timer.cancel()

    def _begin_stream(self) -> None:
        reset = self._following.opened()
        if reset is not None:
            self._sink.begin()
        else:
            self._enter(State.WATCHING)

    def _silence(self, opened: float) -> float:
        """Give how long the stream may say nothing from now on."""
        if self._following.stage is not Stage.STREAM:
            return self._patience.silence
        limit = self._patience.initial_events
        return min(limit, opened + _INITIAL_EVENTS_IN_ALL * limit - self._now())

    async def _read(self, response: Response, opened: float, hush: IdleTimeout) -> None:
        reader = FrameReader()
        hush.allow(self._now() + self._silence(opened))
        async for chunk in response.chunks():
            hush.pause()  # what the sink does with it is not the server's silence
            self._heard = self._now()
            for frame in reader.feed(chunk):
                change = self._following.frame(frame)
                if isinstance(change, Synced):
                    await self._swap(change)
                    self._enter(State.WATCHING)
                elif change is not None:
                    self._store(change)
            if self._mute:
                self._mute = False
                self._settled()
            hush.allow(self._now() + self._silence(opened))
        reader.close()

    # Writing

    def _store(self, change: Change) -> None:
        match change:
            case Put():
                self._following.reached(self._sink.put(change.raw))
            case Remove():
                self._following.reached(self._sink.remove(change.raw))
            case Progress():
                self._bookmarks += 1
                self._bookmarked = self._now()
                self._sink.progress(change.resource_version)
                return
            case _:
                self._sink.begin()
                return
        if self._state is State.WATCHING:
            self._events += 1

    async def _swap(self, synced: Synced) -> None:
        await self._sink.swap(synced.resource_version)
        self._synced = True

    # Ends and failures

    def _ended(self, lived: float) -> None:
        self._following.ended()
        self._again = True
        self._mute = False
        self._ended_streams += 1
        if lived < self._patience.settled_after:
            self._in_trouble(TransportError(f"watch {self._kind}: the stream was closed {lived:.1f} s after it began"))

    def _fell_silent(self) -> None:
        self._again = True
        if self._following.stage is Stage.STREAM:
            _log.info("The initial events of a collection do not end: listing it in pages", extra={"kind": self._kind})
            self._following.late()
            return
        self._following.ended()
        if self._quiet:
            self._mute = True
            limit = f"{self._patience.silence:g} s"
            self._in_trouble(TransportError(f"watch {self._kind}: nothing came for {limit}, not even its end"))

    def _failed(self, error: KonvergeError) -> None:
        streamed = self._following.streaming
        self._following.failed(error)
        if streamed and not self._following.streaming:
            return  # the server does not know streaming lists, which is no trouble: pages are asked for at once
        self._in_trouble(error)

    def _in_trouble(self, error: KonvergeError) -> None:
        self._again = True
        self._failures += 1
        wish = error.retry_after if isinstance(error, TooManyRequests | ServerError) else None
        self._pace.failed(self._now(), wish=wish)
        if isinstance(error, Expired) and self._pace.failures == 1:
            return  # a version that got old is what lists are for; only one that is old again at once is odd
        if type(error) is not type(self._error):
            _log.warning("Following a collection failed", extra={"kind": self._kind, "error": str(error)})
        self._error = error

    def _settled(self) -> None:
        if self._mute:
            return  # an open stream alone proves nothing
        self._pace.settled()
        if self._error is not None:
            _log.info("Following a collection works again", extra={"kind": self._kind})
            self._error = None

    def _enter(self, state: State) -> None:
        if self._state is not state:
            self._openings += state is State.WATCHING
            self._state = state
            self._state_since = self._now()
