"""What an author writes: a class with `reconcile`, or a plain function."""

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

_LOOK_EVERY = 0.5

Reconcile: TypeAlias = Callable[[T, Context], Awaitable[Result | None]] | Callable[[T, BlockingContext], Result | None]
"""A function as reconciler; one that is not async runs in a thread, with a context that blocks."""


class Reconciler(Generic[T]):
    """Makes the world so that it fits one object; the machinery says when.

    `reconcile` is handed the object as it is now, never None and never a difference, and is called again after an
    error. It must come to the same end from wherever a run before it stopped.

    With a `finalizer` ("example.com/webapp") an object is held until `finalize` succeeded: the finalizer is there
    before the first call of `reconcile`, and goes when `finalize` returns done. "Not yet, again in 5 s" is
    `Result.requeue(after=5)`.

    An object that is being deleted is not handed to `reconcile`, since its children are going too; with
    `sees_deleting` it is.
    """

    finalizer: ClassVar[str] = ""
    sees_deleting: ClassVar[bool] = False

    async def reconcile(self, obj: T, ctx: Context) -> Result | None:  # noqa: ARG002 - an author needs them
        """Make it so."""
        raise TypeError(f"{type(self).__name__} has no reconcile: write `async def reconcile(self, obj, ctx)`")

    async def finalize(self, obj: T, ctx: Context) -> Result | None:  # noqa: ARG002 - an author needs them
        """Clean up what garbage collection cannot, before the object goes."""
        return None

    def gone(self, key: Key) -> None:
        """Forget what was kept in memory about an object that is no longer there."""


def reconciler_of(given: Reconciler[T] | Reconcile[T]) -> Reconciler[T]:
    """Give a reconciler of what an author wrote.

    Raises: TypeError for something that is neither, or a class instead of an object of it.
    """
    if isinstance(given, Reconciler):
        if type(given).reconcile is Reconciler.reconcile:
            raise TypeError(f"{type(given).__name__} has no reconcile: write `async def reconcile(self, obj, ctx)`")
        if type(given).finalize is not Reconciler.finalize and not given.finalizer:
            name = type(given).__name__
            raise TypeError(f"{name} has finalize but no finalizer: write `finalizer = 'example.com/{name.lower()}'`")
        return given if inspect.iscoroutinefunction(given.reconcile) else _InThreads(given)
    if isinstance(given, type) or not callable(given):
        raise TypeError(f"{given!r} is no reconciler: give an object of a Reconciler class, or a function")
    return _Function(given)


class _Function(Reconciler[T]):
    """A plain function as a reconciler."""

    def __init__(self, function: Reconcile[T]) -> None:
        self._function: Any = function
        self._is_async = inspect.iscoroutinefunction(function)

    async def reconcile(self, obj: T, ctx: Context) -> Result | None:
        if self._is_async:
            return cast("Result | None", await self._function(obj, ctx))
        return await _in_thread(self._function, obj, ctx)


class _InThreads(Reconciler[T]):
    """A reconciler whose methods are not async: each call runs in a thread."""

    def __init__(self, inner: Reconciler[T]) -> None:
        self._inner: Any = inner
        self.finalizer = inner.finalizer  # type: ignore[misc]
        self.sees_deleting = inner.sees_deleting  # type: ignore[misc]

    async def reconcile(self, obj: T, ctx: Context) -> Result | None:
        return await _in_thread(self._inner.reconcile, obj, ctx)

    async def finalize(self, obj: T, ctx: Context) -> Result | None:
        if inspect.iscoroutinefunction(self._inner.finalize):
            return cast("Result | None", await self._inner.finalize(obj, ctx))
        return await _in_thread(self._inner.finalize, obj, ctx)

    def gone(self, key: Key) -> None:
        self._inner.gone(key)


async def _in_thread(function: Callable[[Any, Any], Result | None], obj: Any, ctx: Context) -> Result | None:
    """Run a function in a thread, to its end: a thread cannot be cancelled, and its key must not run twice.

    After a cancellation (the deadline, a stop) its context refuses every call, so that it ends at its next one. When
    the process stops nobody waits for it any more.
    """
    blocking = BlockingContext(ctx, asyncio.get_running_loop())
    call = start_in_thread(function, obj, blocking)
    try:
        error, result = await asyncio.shield(call)
    except asyncio.CancelledError:
        blocking.refuse()
        if not ctx.stopping():
            ctx.log.warning("A reconcile in a thread has passed its deadline; its key waits until it ends")
        while not call.done() and not ctx.stopping():
            await asyncio.wait([call], timeout=_LOOK_EVERY)
        call.cancel()  # whoever ends after the loop has nobody to tell
        raise
    if error is not None:
        raise error
    return cast("Result | None", result)
