"""The worker: gets keys from the queue, one at a time, and reconciles each of them.

Rules that hold here:

1. An error affects only its own key: it is logged once, recorded in the journal, and the key is requeued with backoff.
   Of a series of the same error, only the first is logged with its traceback.
2. A key is passed to `queue.done` when its reconcile has really ended, also after a deadline: a key is never reconciled
   twice at the same time.
3. A conflict is not an error: another client wrote first. The key is retried three times: at once, and then after short
   delays for the event of that write, which enqueues the key earlier. The fourth conflict is an error.
4. A failure because the object or its namespace is being deleted is not an error: it is not logged, and the key is
   requeued with backoff until the deletion arrives.
5. `Retry` is logged without a traceback, and its delay replaces the backoff.
6. The first `Result.requeue()` is immediate; for each further one in a row the delay grows as after errors.
7. An object that does not decode into its class gets an event and a condition, and waits for its next change.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeAlias, TypeVar

from konverge.cache import Lister
from konverge.controller.controller import Controller
from konverge.controller.decode_failures import report_decode_failure
from konverge.controller.deletions import is_deletion_error
from konverge.errors import (
    Conflict,
    DecodeError,
    KonvergeError,
    QueueClosed,
    Retry,
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
    ReconcileDependencies,
    Result,
    Run,
    add_finalizer,
    finalizers_of,
    is_terminating,
    remove_finalizer,
)

__all__ = ["ObserveReconcile", "Outcome", "Worker"]

_log = logging.getLogger("konverge.controller")

T = TypeVar("T", bound=AnyObject)

_CONFLICT_DELAYS = (0.0, 0.1, 0.5)


class Outcome(StrEnum):
    """How a reconcile ended: the label `result` of the metrics."""

    SUCCESS = "success"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"
    ERROR = "error"
    TERMINAL = "terminal"
    RETRY = "retry"
    CONFLICT = "conflict"
    REFUSED = "refused"


ObserveReconcile: TypeAlias = Callable[[Outcome, float], None]
"""Called with the outcome and the duration in seconds of each reconcile."""


_Origin: TypeAlias = tuple[type[BaseException], tuple[tuple[str, int], ...]]
"""The type of an error, and file and line of each frame of its traceback; a message may differ from time to time."""


@dataclass(slots=True)
class _Failure:
    """The last error of a key and its conflicts in a row, until a reconcile succeeds.

    `origin` is the type of the last error and where it was raised: errors with the same origin are a series.
    """

    error: str = ""
    conflicts: int = 0
    origin: _Origin | None = None


@dataclass(eq=False)
class Worker(Generic[T]):
    """Reconcile keys of the queue. All workers of a controller share one instance, and `run` is called once for each.

    `started` holds the start time of each active reconcile, by key.
    """

    controller: Controller[T]
    queue: WorkQueue[Key]
    lister: Lister[Any]
    dependencies: ReconcileDependencies
    journal: Journal
    observe: ObserveReconcile = lambda *_: None
    started: dict[Key, float] = field(default_factory=dict)
    _failures: dict[Key, _Failure] = field(default_factory=dict)
    _requeued: set[Key] = field(default_factory=set)  # the last result was Result.requeue()

    async def run(self) -> None:
        """Process keys until the queue is closed."""
        while True:
            try:
                key = await self.queue.get()
            except QueueClosed:
                return
            try:
                await self._process(key)
            finally:
                self.queue.done(key)
            # A reconcile that finds nothing to change never awaits I/O. Without this, a long queue of them (at the
            # start) would block the watches and the heartbeat until it is empty.
            await asyncio.sleep(0)

    async def _process(self, key: Key) -> None:
        clock = asyncio.get_running_loop().time
        start = self.started[key] = clock()
        run = self.journal.begin(key, attempt=self.queue.failures(key) + 1)
        outcome = Outcome.REFUSED
        try:
            outcome = await self._reconcile_with_timeout(key, run)
        finally:
            del self.started[key]
            self.observe(outcome, clock() - start)

    async def _reconcile_with_timeout(self, key: Key, run: Run) -> Outcome:
        limit = asyncio.timeout(self.controller.timeout)
        try:
            async with limit:
                try:
                    result = await self._reconcile(key, run)
                finally:
                    # The event of a write often arrives before its response, when its writer is not known yet.
                    self.queue.cancel_adds(key, self.journal.drop_echoes(run))
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # an error of the reconciler affects only its own key [1]
            if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
                run.finish(error="cancelled: the process stops")
                raise
            return self._handle_error(key, run, self._described(error, timed_out=limit.expired()))
        return self._handle_result(key, run, result)

    def _described(self, error: BaseException, *, timed_out: bool) -> BaseException:
        if isinstance(error, TimeoutError) and timed_out:
            return KonvergeError(f"not done after {self.controller.timeout:g} s, cancelled")
        if isinstance(error, asyncio.CancelledError):
            return KonvergeError("a task or future that the reconcile awaited was cancelled")
        return error

    async def _reconcile(self, key: Key, run: Run) -> Result:
        """Read the object, add or run its finalizer, and call the reconciler."""
        reconciler = self.controller.reconciler
        try:
            obj = self.lister.get(key)
        except DecodeError as error:
            await report_decode_failure(self.dependencies, self.lister, key, error)
            raise TerminalError(str(error)) from error
        if obj is None:
            reconciler.gone(key)
            return Result.done()
        run.record_read(self.lister.kind.kind, key, obj.resource_version)
        failure = self._failures.get(key)
        ctx = Context(
            obj,
            self.dependencies,
            run,
            kind=self.lister.kind,
            attempt=self.queue.failures(key) + 1,
            last_error=failure.error if failure else "",
        )
        if is_terminating(obj):
            return await self._finalize(obj, ctx)
        if reconciler.finalizer and reconciler.finalizer not in finalizers_of(obj):
            obj = await add_finalizer(ctx.client, obj, reconciler.finalizer)
        return _checked(await reconciler.reconcile(obj, ctx))

    async def _finalize(self, obj: Any, ctx: Context) -> Result:
        """Run the finalizer of an object that is being deleted."""
        reconciler = self.controller.reconciler
        if reconciler.finalizer and reconciler.finalizer in finalizers_of(obj):
            result = _checked(await reconciler.finalize(obj, ctx))
            if result.after is None:
                await remove_finalizer(ctx.client, obj, reconciler.finalizer)
            return result
        if reconciler.reconcile_terminating:
            return _checked(await reconciler.reconcile(obj, ctx))
        return Result.done()

    # Results and errors

    def _handle_result(self, key: Key, run: Run, result: Result) -> Outcome:
        self.dependencies.hot_loops.end_reconcile(run, succeeded=True)
        run.finish(result=str(result))
        self._failures.pop(key, None)
        if result.after == 0:
            self._requeue(key)
            return Outcome.REQUEUE
        self._requeued.discard(key)
        self.queue.forget(key)
        if result.after is None:
            return Outcome.SUCCESS
        self.queue.add(key, after=result.after, priority=Priority.LOW)
        return Outcome.REQUEUE_AFTER

    def _requeue(self, key: Key) -> None:
        """Enqueue a key again: at once, and if it was requeued by the last reconcile too, with backoff [5]."""
        if key in self._requeued:
            self.queue.retry(key)
            return
        self._requeued.add(key)
        self.queue.forget(key)
        self.queue.add(key)

    def _handle_error(self, key: Key, run: Run, error: BaseException) -> Outcome:
        self.dependencies.hot_loops.end_reconcile(run, succeeded=False)
        run.finish(error=f"{type(error).__name__}: {error}")
        failure = self._failures.setdefault(key, _Failure())
        failure.error = str(error)
        self._requeued.discard(key)
        if isinstance(error, WriteRefused):
            return Outcome.REFUSED
        if isinstance(error, Conflict) and failure.conflicts < len(_CONFLICT_DELAYS):
            self.queue.add(key, after=_CONFLICT_DELAYS[failure.conflicts], priority=Priority.HIGH)
            failure.conflicts += 1
            return Outcome.CONFLICT
        failure.conflicts = 0
        if is_deletion_error(error, self.lister.kind.kind, key):
            self.queue.retry(key)  # the event of the deletion may come later
            return Outcome.REQUEUE
        return self._retry_or_give_up(key, run, error, failure)

    def _retry_or_give_up(self, key: Key, run: Run, error: BaseException, failure: _Failure) -> Outcome:
        facts = {"controller": self.controller.name, "kind": self.lister.kind.kind, "key": str(key)}
        facts |= {"reconcile_id": run.reconcile_id, "attempt": str(self.queue.failures(key) + 1)}
        previous, failure.origin = failure.origin, _origin_of(error)
        if isinstance(error, Retry):
            seconds = self.queue.retry(key, delay=error.after)
            _log.warning("reconcile is retried: %s", error, extra=facts | {"after": f"{seconds:.3g} s"})
            return Outcome.RETRY
        if isinstance(error, TerminalError):
            self.queue.forget(key)
            _log.error("reconcile failed, not retried: %s", error, extra=facts)
            return Outcome.TERMINAL
        retry_after = error.retry_after if isinstance(error, TooManyRequests | ServerError) else None
        self.queue.retry(key, min_delay=retry_after or 0.0)
        _log.error("reconcile failed: %s", error, exc_info=None if failure.origin == previous else error, extra=facts)
        return Outcome.ERROR

    def forget(self, key: Key) -> None:
        """Drop the state of a key whose object is gone."""
        self._failures.pop(key, None)
        self._requeued.discard(key)
        self.dependencies.hot_loops.forget(key)


def _origin_of(error: BaseException) -> _Origin:
    frames = traceback.walk_tb(error.__traceback__)
    return type(error), tuple((frame.f_code.co_filename, line) for frame, line in frames)


def _is_being_cancelled() -> bool:
    """Report whether this task is being cancelled; a reconciler may raise CancelledError by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _checked(result: Any) -> Result:
    if result is None:
        return Result.done()
    if not isinstance(result, Result):
        raise TerminalError(
            f"reconcile returned {result!r:.100}, not a Result: return Result.done(), Result.requeue(after=30) or None"
        )
    return result
