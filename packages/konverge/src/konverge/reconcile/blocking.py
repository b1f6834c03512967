"""The context of reconcilers that are not async: the same calls, which block their thread until they are done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

from konverge.errors import WriteRefused
from konverge.objects import AnyObject, HasConditions, Key, Resource
from konverge.reconcile.applied import Applied
from konverge.reconcile.apply import Recreate
from konverge.reconcile.foreign_fields import ForeignField

if TYPE_CHECKING:
    from konverge.reconcile.context import Context

__all__ = ["BlockingContext"]

R = TypeVar("R", bound=AnyObject)
T = TypeVar("T", bound=Resource)
V = TypeVar("V")

Objects: TypeAlias = list[V]


class BlockingContext:
    """A `Context` for a thread. Every call runs on the event loop, so nothing here needs a lock."""

    def __init__(self, inner: Context, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop
        self._rejecting = False
        self.key = inner.key
        self.controller = inner.controller
        self.attempt = inner.attempt
        self.last_error = inner.last_error
        self.reconcile_id = inner.reconcile_id
        self.log = inner.log

    def reject_calls(self) -> None:
        """Reject every call from now on: the reconcile has passed its deadline, or the process stops."""
        self._rejecting = True

    @overload
    def shared(self, type_: type[V]) -> V: ...
    @overload
    def shared(self, type_: Callable[..., V]) -> V: ...
    def shared(self, type_: Any) -> Any:
        """Return the object of a type that the operator shares. It must be safe to use from a thread."""
        return self._inner.shared(type_)

    def get(self, kind: type[T], name: str | Key, *, namespace: str | None = None) -> T | None:
        """Return one object from the cache, or None."""
        return self._wait(self._inner.get(kind, name, namespace=namespace))

    def list(self, kind: type[T], *, namespace: str | None = None, labels: str = "") -> Objects[T]:
        """Return objects from the cache."""
        return self._wait(self._inner.list(kind, namespace=namespace, labels=labels))

    def owned(self, kind: type[T]) -> Objects[T]:
        """Return the children of this object."""
        return self._wait(_called(lambda: self._inner.owned(kind)))

    def is_served(self, kind: type[Resource]) -> bool:
        """Report whether the server serves an optional kind."""
        return self._wait(_called(lambda: self._inner.is_served(kind)))

    def find(self, kind: type[T], index: str, value: Any, *, namespace: str = "") -> Objects[T]:
        """Return the objects that an index has under a value."""
        return self._wait(_called(lambda: self._inner.find(kind, index, value, namespace=namespace)))

    def apply(self, desired: R, *, force: bool = True, owned: bool = True, recreate: Recreate = False) -> R:
        """Server-side apply `desired` unless the live object already matches; return the live object."""
        return self._wait(self._inner.apply(desired, force=force, owned=owned, recreate=recreate))

    def applied(self, obj: AnyObject) -> Applied:
        """Return what the last `apply` of an object in this reconcile did: created, changed or unchanged."""
        return self._wait(_called(lambda: self._inner.applied(obj)))

    def create_once(self, obj: R, *, owned: bool = True) -> R:
        """Create an object unless it exists, and never write it again; return the stored object."""
        return self._wait(self._inner.create_once(obj, owned=owned))

    def hand_over(self, obj: AnyObject, path: str, *, to: str) -> None:
        """Hand a field of an applied object over to another manager, so that leaving it out does not reset it."""
        self._wait(self._inner.hand_over(obj, path, to=to))

    def foreign_fields(self, obj: AnyObject) -> Objects[ForeignField]:
        """Return the fields of a child that other managers set, read from the server."""
        return self._wait(self._inner.foreign_fields(obj))

    def prune(self, *kinds: type[Resource], labels: str = "") -> None:
        """Delete the children of these kinds that this reconcile did not apply."""
        self._wait(self._inner.prune(*kinds, labels=labels))

    def delete(self, obj: AnyObject, *, missing_ok: bool = True) -> None:
        """Delete an object, if it is still the one that was read."""
        self._wait(self._inner.delete(obj, missing_ok=missing_ok))

    def update_status(self, obj: R) -> R:
        """Patch an edited status, if it differs."""
        return self._wait(self._inner.update_status(obj))

    def condition(
        self, obj: HasConditions, type_: str, status: bool | Literal["Unknown"], *, reason: str, message: str = ""
    ) -> bool:
        """Set a condition in the status of an object; report whether it changed."""
        return self._inner.condition(obj, type_, status, reason=reason, message=message)

    def set_ready(
        self, obj: HasConditions, ready: bool | Literal["Unknown"], *, reason: str, message: str = ""
    ) -> bool:
        """Set the condition Ready of an object; report whether anything changed."""
        return self._inner.set_ready(obj, ready, reason=reason, message=message)

    def event(self, reason: str, message: str, *, warning: bool = False, action: str = "") -> None:
        """Record an event about this object."""
        self._wait(_called(lambda: self._inner.event(reason, message, warning=warning, action=action)))

    def call(self, coroutine: Coroutine[Any, Any, V]) -> V:
        """Run a coroutine on the event loop, for calls that have no method: `ctx.call(ctx.client.get(Pod, "web"))`."""
        return self._wait(coroutine)

    @property
    def client(self) -> Any:
        """The client of the reconcile; its methods are coroutines, to be passed to `call`."""
        return self._inner.client

    def _wait(self, coroutine: Coroutine[Any, Any, V]) -> V:
        if self._rejecting:
            coroutine.close()
            raise WriteRefused("this reconcile has passed its deadline, or the process stops: the call was not made")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


async def _called(function: Callable[[], V]) -> V:
    return function()
