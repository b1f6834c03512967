"""Run one leader election for the main loop: in the lease thread, or on the main loop itself."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import TypeAlias

from konverge.client import Client
from konverge.manager.elector import Elector, ElectorStats, LeaderElection, StartedLeading, StoppedLeading
from konverge.manager.lease_thread import LeaseThread
from konverge.manager.write_fence import WriteFence

__all__ = ["Connect", "ElectionRunner"]

Connect: TypeAlias = Callable[[], AbstractAsyncContextManager[Client]]


class ElectionRunner:
    """Competes for one lease and reports to the main loop.

    Promises: `on_started_leading` and `on_stopped_leading` are called on the loop that runs `run`, in order and in
    pairs; `leading` is set while this process leads, for tasks of that loop. When the main loop is blocked, the write
    fence closes all the same, and the next term waits until `on_stopped_leading` has returned. An error of a callback
    or of the elector is raised by `run`.

    `connect` opens the client for the lease, on the loop that uses it: `lambda: Client.connect(config)`, or, without a
    lease thread, `lambda: nullcontext(client)`. With `thread` None the election runs on the main loop; virtual time
    needs that.
    """

    def __init__(
        self,
        election: LeaderElection,
        connect: Connect,
        *,
        thread: LeaseThread | None = None,
        fence: WriteFence | None = None,
        on_started_leading: StartedLeading = lambda: None,
        on_stopped_leading: StoppedLeading = lambda _: None,
        record_event: Callable[[str, str], None] | None = None,
    ) -> None:
        self.election = election
        self.fence = fence or WriteFence(election.clock)
        self.leading = asyncio.Event()
        self._connect = connect
        self._thread = thread
        self._on_started_leading, self._on_stopped_leading = on_started_leading, on_stopped_leading
        self._record_event = record_event
        self._changes: asyncio.Queue[_Change] | None = None
        self._elector: Elector | None = None
        self._elector_loop: asyncio.AbstractEventLoop | None = None
        self._stopped_early = False

    async def run(self) -> None:
        """Compete until `stop` or cancellation; only `stop` releases the lease."""
        self._main_loop = asyncio.get_running_loop()
        self._changes = asyncio.Queue()
        async with asyncio.TaskGroup() as group:
            delivery = group.create_task(self._deliver_changes(self._changes))
            await (self._compete() if self._thread is None else self._thread.call(self._compete))
            delivery.cancel()

    def stop(self, *, release: bool = True) -> None:
        """End `run`; see `Elector.stop` for when to call it. Any thread may call it."""
        self._stopped_early = True
        if self._elector is not None:
            elector = self._elector
            self._call_elector(lambda: elector.stop(release=release))

    def step_down(self, reason: str) -> None:
        """Stop leading at once and let the lease expire. Any thread may call it."""
        if self._elector is not None:
            elector = self._elector
            self.fence.close()
            self._call_elector(lambda: elector.step_down(reason))

    def stats(self) -> ElectorStats | None:
        """Return the state of the elector; None before it runs."""
        return None if self._elector is None else self._elector.stats()

    def not_ready_reason(self) -> str:
        """Return why the lease cannot be read or written, "" when it can; for the readiness check."""
        stats = self.stats()
        return "leader election has not started" if stats is None else stats.error

    # On the loop of the elector

    async def _compete(self) -> None:
        async with self._connect() as client:
            elector = Elector(
                client,
                self.election,
                fence=self.fence,
                on_started_leading=lambda: self._send_change(_Change(None)),
                on_stopped_leading=self._report_stopped,
                record_event=self._report_event,
            )
            self._elector_loop, self._elector = asyncio.get_running_loop(), elector
            if not self._stopped_early:
                await elector.run()

    async def _report_stopped(self, reason: str) -> None:
        change = _Change(reason)
        self._send_change(change)
        await asyncio.wrap_future(change.delivered)

    def _report_event(self, reason: str, message: str) -> None:
        if self._record_event is not None:
            self._call_main(self._record_event, reason, message)

    def _send_change(self, change: _Change) -> None:
        if not self._call_main(self._receive_change, change):
            change.finish()

    def _call_main(self, function: Callable[..., object], *args: object) -> bool:
        try:
            self._main_loop.call_soon_threadsafe(function, *args)
        except RuntimeError:  # the main loop is closed
            return False
        return True

    def _call_elector(self, function: Callable[[], object]) -> None:
        if self._elector_loop is not None:
            with suppress(RuntimeError):  # its loop is closed, so the elector has ended
                self._elector_loop.call_soon_threadsafe(function)

    # On the main loop

    def _receive_change(self, change: _Change) -> None:
        if change.reason is None:
            self.leading.set()
        else:
            # At once, before the callbacks of earlier changes have returned.
            self.leading.clear()
        if self._changes is None:
            change.finish()
        else:
            self._changes.put_nowait(change)

    async def _deliver_changes(self, changes: asyncio.Queue[_Change]) -> None:
        """Call the callbacks one after the other; on exit release every waiter."""
        try:
            while True:
                await self._deliver(await changes.get())
        finally:
            self._changes = None
            while not changes.empty():
                changes.get_nowait().finish()

    async def _deliver(self, change: _Change) -> None:
        try:
            result = self._on_started_leading() if change.reason is None else self._on_stopped_leading(change.reason)
            if inspect.isawaitable(result):
                await result
        finally:
            change.finish()


class _Change:
    """The start of a term (`reason` is None), or its end; `delivered` is done when the callback has returned."""

    def __init__(self, reason: str | None) -> None:
        self.reason = reason
        self.delivered: concurrent.futures.Future[None] = concurrent.futures.Future()

    def finish(self) -> None:
        if not self.delivered.done():
            self.delivered.set_result(None)
