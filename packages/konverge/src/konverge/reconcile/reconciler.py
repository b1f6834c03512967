"""Reconcilers: a class with a method `reconcile`, or a plain function."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, cast

from konverge.objects import AnyObject, Key
from konverge.reconcile.blocking import BlockingContext
from konverge.reconcile.context import Context
from konverge.reconcile.results import Result
from konverge.reconcile.threads import start_in_thread

__all__ = ["Reconcile", "Reconciler", "reconciler_of"]

T = TypeVar("T", bound=AnyObject)

_STOP_POLL = 0.5
"""Seconds between two looks at `stopping`, a function without an event. Only a reconcile whose thread outlives its
deadline looks."""

Reconcile: TypeAlias = Callable[[T, Context], Awaitable[Result | None]] | Callable[[T, BlockingContext], Result | None]
"""A function as a reconciler. A function that is not async runs in a thread, with a blocking context."""


class Reconciler(Generic[T]):
    """Bring the cluster to the desired state of one object.

    `reconcile` gets the current object, never None and never a difference, and is called again after an error. It must
    reach the same result from wherever an earlier call stopped.

    With a `finalizer` ("example.com/webapp") an object is not removed until `finalize` has succeeded: the finalizer is
    added before the first call of `reconcile`, and removed when `finalize` returns done. To wait, `finalize` returns
    `Result.requeue(after=5)`.

    An object that is being deleted is not passed to `reconcile`, since its children are deleted too, unless
    `reconcile_terminating` is set.
    """

    finalizer: ClassVar[str] = ""
    reconcile_terminating: ClassVar[bool] = False

    async def reconcile(self, obj: T, ctx: Context, /) -> Result | None:  # noqa: ARG002 - subclasses use them
        """Create, update and delete what the object describes."""
        raise TypeError(f"{type(self).__name__} has no reconcile: write `async def reconcile(self, obj, ctx)`")

    async def finalize(self, obj: T, ctx: Context, /) -> Result | None:  # noqa: ARG002 - subclasses use them
        """Clean up what garbage collection cannot, before the object is removed."""
        return None

    def gone(self, key: Key) -> None:
        """Drop in-memory state of an object that no longer exists."""


def reconciler_of(reconciler: Reconciler[T] | Reconcile[T]) -> Reconciler[T]:
    """Return a reconciler for an instance of `Reconciler` or a function.

    Raises: TypeError for any other value, and for a class instead of an instance.
    """
    if isinstance(reconciler, Reconciler):
        name = type(reconciler).__name__
        if type(reconciler).reconcile is Reconciler.reconcile:
            raise TypeError(f"{name} has no reconcile: write `async def reconcile(self, obj, ctx)`")
        if type(reconciler).finalize is not Reconciler.finalize and not reconciler.finalizer:
            raise TypeError(f"{name} has finalize but no finalizer: write `finalizer = 'example.com/{name.lower()}'`")
        return reconciler if inspect.iscoroutinefunction(reconciler.reconcile) else _ThreadedReconciler(reconciler)
    if isinstance(reconciler, type) or not callable(reconciler):
        raise TypeError(f"{reconciler!r} is not a reconciler: pass an instance of a Reconciler class, or a function")
    return _FunctionReconciler(reconciler)


class _FunctionReconciler(Reconciler[T]):
    """A plain function as a reconciler."""

    def __init__(self, function: Reconcile[T]) -> None:
        self._function: Any = function
        self._is_async = inspect.iscoroutinefunction(function)

    async def reconcile(self, obj: T, ctx: Context, /) -> Result | None:
        if self._is_async:
            return cast("Result | None", await self._function(obj, ctx))
        return await _in_thread(self._function, obj, ctx)


class _ThreadedReconciler(Reconciler[T]):
    """A reconciler whose methods are not async: each call runs in a thread."""

    def __init__(self, inner: Reconciler[T]) -> None:
        self._inner: Any = inner
        self.finalizer = inner.finalizer  # type: ignore[misc]
        self.reconcile_terminating = inner.reconcile_terminating  # type: ignore[misc]

    async def reconcile(self, obj: T, ctx: Context, /) -> Result | None:
        return await _in_thread(self._inner.reconcile, obj, ctx)

    async def finalize(self, obj: T, ctx: Context, /) -> Result | None:
        if inspect.iscoroutinefunction(self._inner.finalize):
            return cast("Result | None", await self._inner.finalize(obj, ctx))
        return await _in_thread(self._inner.finalize, obj, ctx)

    def gone(self, key: Key) -> None:
        self._inner.gone(key)


async def _in_thread(function: Callable[[Any, Any], Result | None], obj: Any, ctx: Context) -> Result | None:
    """Run a function in a thread, to its end: a thread cannot be cancelled, and its key must not be reconciled twice.

    After a cancellation (by the deadline or a stop) its context rejects every call, so that the function ends at the
    next one. When the process stops, the thread is not waited for.
    """
    blocking = BlockingContext(ctx, asyncio.get_running_loop())
    call = start_in_thread(function, obj, blocking)
    try:
        error, result = await asyncio.shield(call)
    except asyncio.CancelledError:
        blocking.reject_calls()
        if not ctx.stopping():
            ctx.log.warning("reconcile timed out in its thread, key blocked until the thread ends")
        while not call.done() and not ctx.stopping():
            await asyncio.wait([call], timeout=_STOP_POLL)
        call.cancel()  # its result has no receiver after the event loop ends
        raise
    if error is not None:
        raise error
    return cast("Result | None", result)
