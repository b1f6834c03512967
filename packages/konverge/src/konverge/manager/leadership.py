"""An election as the main loop sees it, wherever it runs: in the side thread, or on the main loop itself."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import TypeAlias

from konverge.client import Client
from konverge.manager.elector import Election, Elector, ElectorStats, Started, Stopped
from konverge.manager.guard import Guard
from konverge.manager.lease_thread import LeaseThread

__all__ = ["Leadership"]

Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Client]]


class Leadership:
    """Competes for one lease and tells the main loop about it.

    Promises: `started` and `stopped` are called on the loop that `run` runs on, in order and in pairs; `leading` is set
    while we lead, for tasks of that loop. When the main loop is blocked the guard is shut all the same, and the next
    term waits until `stopped` is through. An error of a callback, or of the elector, comes out of `run`.

    `connect` opens the client of the lease, on the loop that uses it: `lambda: Client.connect(config)`, or, without a
    side thread, `lambda: nullcontext(client)`. `side` None runs the election on the main loop: right on virtual time.
    """

    def __init__(
        self,
        election: Election,
        connect: Connect,
        *,
        side: LeaseThread | None = None,
        guard: Guard | None = None,
        started: Started = lambda: None,
        stopped: Stopped = lambda _: None,
        record: Callable[[str, str], None] | None = None,
    ) -> None:
        self.election = election
        self.guard = guard or Guard(election.clock)
        self.leading = asyncio.Event()
        self._connect = connect
        self._side = side
        self._started, self._stopped = started, stopped
        self._record = record
        self._news: asyncio.Queue[_News] | None = None
        self._elector: Elector | None = None
        self._there: asyncio.AbstractEventLoop | None = None
        self._ended_before = False

    async def run(self) -> None:
        """Compete until `stop`, or until cancelled; the lease is released by `stop` only."""
        self._home = asyncio.get_running_loop()
        self._news = asyncio.Queue()
        async with asyncio.TaskGroup() as group:
            relay = group.create_task(self._relay(self._news))
            await (self._compete() if self._side is None else self._side.call(self._compete))
            relay.cancel()

    def stop(self, *, release: bool = True) -> None:
        """End `run`; see `Elector.stop` for when to call it. From any thread."""
        self._ended_before = True
        if self._elector is not None:
            elector = self._elector
            self._over_there(lambda: elector.stop(release=release))

    def give_up(self, why: str) -> None:
        """Stop leading at once and leave the lease to expire. From any thread."""
        if self._elector is not None:
            elector = self._elector
            self.guard.shut()
            self._over_there(lambda: elector.give_up(why))

    def stats(self) -> ElectorStats | None:
        """Say where it stands, None before it runs."""
        return None if self._elector is None else self._elector.stats()

    def trouble(self) -> str:
        """Say why the lease cannot be asked for, "" when it can: what readiness shows."""
        stats = self.stats()
        return "the election has not started" if stats is None else stats.trouble

    # On the loop of the elector

    async def _compete(self) -> None:
        async with self._connect() as client:
            elector = Elector(
                client,
                self.election,
                guard=self.guard,
                started=lambda: self._hand_over(_News(None)),
                stopped=self._tell_stopped,
                record=self._tell_record if self._record is not None else None,
            )
            self._there, self._elector = asyncio.get_running_loop(), elector
            if not self._ended_before:
                await elector.run()

    async def _tell_stopped(self, why: str) -> None:
        news = _News(why)
        self._hand_over(news)
        await asyncio.wrap_future(news.heard)

    def _tell_record(self, reason: str, message: str) -> None:
        if self._record is not None:
            self._at_home(self._record, reason, message)

    def _hand_over(self, news: _News) -> None:
        if not self._at_home(self._take, news):
            news.end()

    def _at_home(self, function: Callable[..., object], *args: object) -> bool:
        try:
            self._home.call_soon_threadsafe(function, *args)
        except RuntimeError:  # the main loop is closed: nobody is left to be told
            return False
        return True

    def _over_there(self, function: Callable[[], object]) -> None:
        if self._there is not None:
            with suppress(RuntimeError):  # its loop is closed: there is nothing left to be told
                self._there.call_soon_threadsafe(function)

    # On the main loop

    def _take(self, news: _News) -> None:
        if news.why is None:
            self.leading.set()
        else:
            # At once, before whoever is still busy with older news hears of it.
            self.leading.clear()
        if self._news is None:
            news.end()
        else:
            self._news.put_nowait(news)

    async def _relay(self, queue: asyncio.Queue[_News]) -> None:
        """Call the callbacks one after the other; afterwards nobody waits for them any more."""
        try:
            while True:
                await self._deliver(await queue.get())
        finally:
            self._news = None
            while not queue.empty():
                queue.get_nowait().end()

    async def _deliver(self, news: _News) -> None:
        try:
            told = self._started() if news.why is None else self._stopped(news.why)
            if inspect.isawaitable(told):
                await told
        finally:
            news.end()


class _News:
    """That leading started (`why` is None), or why it ended; `heard` is done when the callback is through."""

    def __init__(self, why: str | None) -> None:
        self.why = why
        self.heard: concurrent.futures.Future[None] = concurrent.futures.Future()

    def end(self) -> None:
        if not self.heard.done():
            self.heard.set_result(None)
