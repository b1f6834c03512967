"""The worker: takes keys from the queue, one at a time, and carries each through one reconcile.

Rules that hold here:

1. Whatever happens to a key stays with that key: it is logged once, kept in the journal, and its key backs off.
2. A key is given back to the queue when its reconcile has really ended, also after a deadline: never two at once.
3. A conflict is not an error: somebody else wrote first. It is tried again, three times: at once, and then after a
   moment for the news of that write to come, which wakes the key earlier. The fourth is an error.
4. An object that does not fit its class is told so, on itself, and waits for its next change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from konverge.cache import View
from konverge.controller.controller import Controller
from konverge.controller.decode_failures import tell_misfit
from konverge.errors import (
    Conflict,
    DecodeError,
    KonvergeError,
    QueueClosed,
    ServerError,
    TerminalError,
    TooManyRequests,
    WriteRefused,
)
from konverge.objects import AnyObject, Key
from konverge.queue import Priority, WorkQueue
from konverge.reconcile import (
    Context,
    Journal,
    Result,
    Run,
    Tools,
    add_finalizer,
    finalizers_of,
    is_deleting,
    remove_finalizer,
)

__all__ = ["Outcome", "Told", "Worker"]

_log = logging.getLogger("konverge.controller")

T = TypeVar("T", bound=AnyObject)

_AFTER_CONFLICTS = (0.0, 0.1, 0.5)


class Outcome(StrEnum):
    """How a reconcile ended, as metrics name it."""

    SUCCESS = "success"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"
    ERROR = "error"
    TERMINAL = "terminal"
    CONFLICT = "conflict"
    REFUSED = "refused"


Told = Callable[[Outcome, float], None]
"""Told each outcome and how many seconds it took."""


@dataclass(slots=True)
class _Trouble:
    """What went wrong with a key, until it goes well."""

    error: str = ""
    conflicts: int = 0


@dataclass(eq=False)
class Worker(Generic[T]):
    """Carries keys through reconciles; all workers of a controller are one of these, run several times.

    `busy` holds when each running reconcile began, by key.
    """

    controller: Controller[T]
    queue: WorkQueue[Key]
    view: View[Any]
    tools: Tools
    journal: Journal
    told: Told = lambda *_: None
    busy: dict[Key, float] = field(default_factory=dict)
    _troubles: dict[Key, _Trouble] = field(default_factory=dict)

    async def run(self) -> None:
        """Work until the queue is closed."""
        while True:
            try:
                key = await self.queue.get()
            except QueueClosed:
                return
            try:
                await self._one(key)
            finally:
                self.queue.done(key)
            # A reconcile that finds all as it should be never waits: without this, a long line of them (a start) would
            # hold up the watches and the heartbeat until its end.
            await asyncio.sleep(0)

    async def _one(self, key: Key) -> None:
        clock = asyncio.get_running_loop().time
        begin = self.busy[key] = clock()
        run = self.journal.begin(key, attempt=self.queue.failures(key) + 1)
        outcome = Outcome.REFUSED
        try:
            outcome = await self._limited(key, run)
        finally:
            del self.busy[key]
            self.told(outcome, clock() - begin)

    async def _limited(self, key: Key, run: Run) -> Outcome:
        limit = asyncio.timeout(self.controller.timeout)
        try:
            async with limit:
                try:
                    result = await self._cycle(key, run)
                finally:
                    # The watch is often faster than the answer to a write, and could not know whose it was.
                    self.queue.take_back(key, self.journal.drop_echoes(run))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # whatever an author's code raises stays with its key [1]
            if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
                run.finish(error="cancelled: the process stops")
                raise
            return self._failed(key, run, self._in_words(error, late=limit.expired()))
        return self._ended(key, run, result)

    def _in_words(self, error: BaseException, *, late: bool) -> BaseException:
        if isinstance(error, TimeoutError) and late:
            return KonvergeError(f"not done after {self.controller.timeout:g} s, cancelled")
        if isinstance(error, asyncio.CancelledError):
            return KonvergeError("something that it waited for was cancelled")
        return error

    async def _cycle(self, key: Key, run: Run) -> Result:
        """Carry one key through: read it, see to its finalizer, and hand it to the author."""
        reconciler = self.controller.reconciler
        try:
            obj = self.view.get(key)
        except DecodeError as error:
            await tell_misfit(self.tools, self.view, key, error)
            raise TerminalError(str(error)) from error
        if obj is None:
            reconciler.gone(key)
            return Result.done()
        run.read(self.view.kind.kind, key, obj.resource_version)
        trouble = self._troubles.get(key)
        ctx = Context(
            obj,
            self.tools,
            run,
            kind=self.view.kind,
            attempt=self.queue.failures(key) + 1,
            last_error=trouble.error if trouble else "",
        )
        if is_deleting(obj):
            return await self._take_leave(obj, ctx)
        if reconciler.finalizer and reconciler.finalizer not in finalizers_of(obj):
            obj = await add_finalizer(ctx.client, obj, reconciler.finalizer)
        return _checked(await reconciler.reconcile(obj, ctx))

    async def _take_leave(self, obj: Any, ctx: Context) -> Result:
        """See an object off that is being deleted."""
        reconciler = self.controller.reconciler
        if reconciler.finalizer and reconciler.finalizer in finalizers_of(obj):
            result = _checked(await reconciler.finalize(obj, ctx))
            if result.after is None:
                await remove_finalizer(ctx.client, obj, reconciler.finalizer)
            return result
        if reconciler.sees_deleting:
            return _checked(await reconciler.reconcile(obj, ctx))
        return Result.done()

    # What becomes of the key

    def _ended(self, key: Key, run: Run, result: Result) -> Outcome:
        self.tools.restless.ended(run, well=True)
        run.finish(result=str(result))
        self._troubles.pop(key, None)
        if result.after == 0:
            self.queue.retry(key)
            return Outcome.REQUEUE
        self.queue.forget(key)
        if result.after is None:
            return Outcome.SUCCESS
        self.queue.add(key, after=result.after, priority=Priority.LOW)
        return Outcome.REQUEUE_AFTER

    def _failed(self, key: Key, run: Run, error: BaseException) -> Outcome:
        self.tools.restless.ended(run, well=False)
        run.finish(error=f"{type(error).__name__}: {error}")
        trouble = self._troubles.setdefault(key, _Trouble())
        trouble.error = str(error)
        if isinstance(error, WriteRefused):
            return Outcome.REFUSED
        if isinstance(error, Conflict) and trouble.conflicts < len(_AFTER_CONFLICTS):
            self.queue.add(key, after=_AFTER_CONFLICTS[trouble.conflicts], priority=Priority.HIGH)
            trouble.conflicts += 1
            return Outcome.CONFLICT
        trouble.conflicts = 0
        facts = {"controller": self.controller.name, "kind": self.view.kind.kind, "key": str(key)}
        facts |= {"reconcile_id": run.reconcile_id, "attempt": str(self.queue.failures(key) + 1)}
        if isinstance(error, TerminalError):
            self.queue.forget(key)
            _log.error("Reconcile failed for good: %s", error, extra=facts)
            return Outcome.TERMINAL
        asked = error.retry_after if isinstance(error, TooManyRequests | ServerError) else None
        self.queue.retry(key, at_least=asked or 0.0)
        _log.error("Reconcile failed: %s", error, exc_info=error, extra=facts)
        return Outcome.ERROR

    def forget(self, key: Key) -> None:
        """Forget what is remembered of a key whose object is gone."""
        self._troubles.pop(key, None)
        self.tools.restless.forget(key)


def _is_being_cancelled() -> bool:
    """Tell whether somebody cancels this task; an author's code may raise the same error by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _checked(result: Any) -> Result:
    if result is None:
        return Result.done()
    if not isinstance(result, Result):
        raise TerminalError(
            f"reconcile gave {result!r:.100}: return Result.done(), Result.requeue(after=...) or nothing"
        )
    return result
