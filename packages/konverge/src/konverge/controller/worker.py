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
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec.structs import replace

from konverge.cache import Lister
from konverge.controller.controller import Controller
from konverge.controller.decode_failures import report_decode_failure
from konverge.controller.deletions import is_deletion_error
from konverge.controller.enqueue_filter import EnqueueFilter
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
    ActiveReconcile,
    Context,
    Outcome,
    ReconcileDependencies,
    ReconcileEnd,
    Result,
    add_finalizer,
    finalizers_of,
    is_terminating,
    remove_finalizer,
)
from konverge.reconcile.observers import new_reconcile_id

__all__ = ["Worker"]

_log = logging.getLogger("konverge.controller")

T = TypeVar("T", bound=AnyObject)

_CONFLICT_DELAYS = (0.0, 0.1, 0.5)


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
    enqueue_filter: EnqueueFilter
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
            if self.queue.has_ready:
                await asyncio.sleep(0)

    async def _process(self, key: Key) -> None:
        clock = asyncio.get_running_loop().time
        observers = self.dependencies.observers
        start = self.started[key] = clock()
        reconcile = ActiveReconcile(
            controller=self.controller.name,
            kind=self.lister.kind,
            key=key,
            reconcile_id=new_reconcile_id(),
            attempt=self.queue.failures(key) + 1,
            queue_wait=self.queue.wait_time(key),
        )
        observers.begin(reconcile)
        end = ReconcileEnd(Outcome.REFUSED, error="cancelled: the process stops")
        try:
            end = await self._reconcile_with_timeout(reconcile)
        finally:
            del self.started[key]
            observers.end(reconcile, replace(end, seconds=clock() - start))

    async def _reconcile_with_timeout(self, reconcile: ActiveReconcile) -> ReconcileEnd:
        limit = asyncio.timeout(self.controller.timeout)
        self.enqueue_filter.begin(reconcile.key)
        try:
            async with limit:
                try:
                    result = await self._reconcile(reconcile)
                finally:
                    self.enqueue_filter.end(reconcile.key)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # an error of the reconciler affects only its own key [1]
            if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
                raise
            return self._end_with_error(reconcile, self._described(error, timed_out=limit.expired()))
        return ReconcileEnd(self._handle_result(reconcile.key, result), result=str(result))

    def _end_with_error(self, reconcile: ActiveReconcile, error: BaseException) -> ReconcileEnd:
        """Handle an error; a variable for it in the frame that its traceback contains would be a cycle."""
        return ReconcileEnd(self._handle_error(reconcile, error), error=f"{type(error).__name__}: {error}")

    def _described(self, error: BaseException, *, timed_out: bool) -> BaseException:
        if isinstance(error, TimeoutError) and timed_out:
            return KonvergeError(f"not done after {self.controller.timeout:g} s, cancelled")
        if isinstance(error, asyncio.CancelledError):
            return KonvergeError("a task or future that the reconcile awaited was cancelled")
        return error

    async def _reconcile(self, reconcile: ActiveReconcile) -> Result:
        """Read the object, add or run its finalizer, and call the reconciler."""
        key, reconciler = reconcile.key, self.controller.reconciler
        try:
            obj = self.lister.get(key)
        except DecodeError as error:
            await report_decode_failure(self.dependencies, self.lister, key, error)
            raise TerminalError(str(error)) from error
        if obj is None:
            reconciler.gone(key)
            return Result.done()
        reconcile.obj = obj
        self.dependencies.observers.read(reconcile, reconcile.kind.kind, key, obj.resource_version)
        failure = self._failures.get(key)
        ctx = Context(obj, self.dependencies, reconcile, last_error=failure.error if failure else "")
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

    def _handle_result(self, key: Key, result: Result) -> Outcome:
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
        """Enqueue a key again: at once, and if it was requeued by the last reconcile too, with backoff [6]."""
        if key in self._requeued:
            self.queue.retry(key)
            return
        self._requeued.add(key)
        self.queue.forget(key)
        self.queue.add(key)

    def _handle_error(self, reconcile: ActiveReconcile, error: BaseException) -> Outcome:
        key = reconcile.key
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
        return self._retry_or_give_up(reconcile, error, failure)

    def _retry_or_give_up(self, reconcile: ActiveReconcile, error: BaseException, failure: _Failure) -> Outcome:
        key = reconcile.key
        facts = {"controller": self.controller.name, "kind": self.lister.kind.kind, "key": str(key)}
        facts |= {"reconcile_id": reconcile.reconcile_id, "attempt": str(self.queue.failures(key) + 1)}
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
