"""The builder: a controller written down as a sentence.

controller_for(WebApp).owns(Deployment).owns(Service).watches(Secret, to_keys(apps_of)).build(WebAppReconciler())
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Generic, Self, TypeVar, overload

from konverge.cache import CacheOptions
from konverge.controller.controller import Controller
from konverge.controller.permissions import permissions_on
from konverge.objects import AnyObject, Key, Kind, Resource, Unstructured, kind_of
from konverge.queue import Backoff, RateLimit
from konverge.reconcile import Reconcile, Reconciler, reconciler_of
from konverge.triggers import (
    Channel,
    Mapper,
    Predicate,
    Timer,
    Trigger,
    anything,
    spec_or_metadata_changed,
    to_owner,
    to_self,
)

__all__ = ["Builder", "controller_for"]

T = TypeVar("T", bound=AnyObject)
R = TypeVar("R", bound=Resource)


@overload
def controller_for(kind: type[R]) -> Builder[R]: ...
@overload
def controller_for(kind: Kind) -> Builder[Unstructured]: ...
def controller_for(kind: Any) -> Builder[Any]:
    """Begin a controller for a kind: a class for typed objects, a `Kind` for untyped ones."""
    return Builder(kind)


class Builder(Generic[T]):
    """Collects what a controller is made of. Each method gives the builder back; `build` ends the sentence.

    The controller's own objects wake it on any change outside of status, managedFields and version; `predicate`
    changes that. Children and watched objects wake it on every change, unless their predicate says otherwise.
    """

    def __init__(self, kind: type[Any] | Kind) -> None:
        name = kind_of(kind).kind
        self._type = kind
        self._primary = Trigger(
            name=f"for {name}", kind=kind, predicate=spec_or_metadata_changed, mapper=to_self(), primary=True
        )
        self._others: list[Trigger] = []
        self._parts: dict[str, Any] = {"name": name.lower()}
        self._channels: list[Channel] = []
        self._timers: list[Timer] = []
        self._indexes: list[tuple[Any, str, Any]] = []
        self._needs: list[Any] = []

    # What wakes it

    def predicate(self, predicate: Predicate) -> Self:
        """Enqueue on a change of an own object only when this holds."""
        self._primary = replace(self._primary, predicate=predicate)
        return self

    def options(self, options: CacheOptions) -> Self:
        """Keep the controller's own kind with these options."""
        self._primary = replace(self._primary, options=options)
        return self

    def owns(
        self,
        kind: type[Resource] | Kind,
        *,
        predicate: Predicate = anything,
        options: CacheOptions | None = None,
    ) -> Self:
        """Enqueue the owner when one of its children changes; the controller may create, change and delete them."""
        name = f"owns {kind_of(kind).kind}"
        mapper = to_owner(self._type)
        return self._add(Trigger(name=name, kind=kind, predicate=predicate, mapper=mapper, options=options, owned=True))

    def watches(
        self,
        kind: type[Resource] | Kind,
        mapper: Mapper,
        *,
        predicate: Predicate = anything,
        options: CacheOptions | None = None,
    ) -> Self:
        """Enqueue the keys that a mapper names when an object of another kind changes."""
        name = f"watches {kind_of(kind).kind}"
        return self._add(Trigger(name=name, kind=kind, predicate=predicate, mapper=mapper, options=options))

    def channel(self, channel: Channel) -> Self:
        """Enqueue the keys that are put into a channel, by whatever is outside of the cluster."""
        self._channels.append(channel)
        return self

    def every(self, seconds: float, keys: Callable[[], Iterable[Key]]) -> Self:
        """Enqueue the keys that a function gives, each so many seconds."""
        self._timers.append(Timer(seconds, keys))
        return self

    def index(self, kind: type[Resource] | Kind, name: str, values: Any) -> Self:
        """Keep an index of a kind, by a wire path or a function, for `ctx.find`."""
        self._indexes.append((kind, name, values))
        return self

    # How it runs

    def named(self, name: str) -> Self:
        """Name the controller; without it, it has the name of its kind."""
        if not name or "/" in name:
            raise ValueError(f"{name!r} is no name for a controller: write something short without a slash")
        self._parts["name"] = name
        return self

    def max_concurrent_reconciles(self, workers: int) -> Self:
        """Reconcile so many keys at a time; never one key twice."""
        if workers < 1:
            raise ValueError(f"max_concurrent_reconciles is the number of workers, at least 1, got {workers}")
        self._parts["max_concurrent_reconciles"] = workers
        return self

    def backoff(self, backoff: Backoff) -> Self:
        """Wait after errors as this says; the default is 1 s, 2 s, 4 s and so on to 5 min."""
        self._parts["backoff"] = backoff
        return self

    def rate(self, rate: RateLimit) -> Self:
        """Start at most so many reconciles a second, all keys together."""
        self._parts["rate"] = rate
        return self

    def timeout(self, seconds: float) -> Self:
        """Cancel a reconcile that takes longer than so many seconds; the default is 60."""
        if seconds <= 0:
            raise ValueError(f"timeout is a number of seconds above 0, got {seconds}")
        self._parts["timeout"] = seconds
        return self

    def needs(self, kind: type[Resource] | Kind, *verbs: str, subresource: str = "") -> Self:
        """Say what the reconciler does beside what is declared, so that generated RBAC allows it."""
        self._needs += permissions_on(kind_of(kind), verbs, subresource)
        return self

    def build(self, reconciler: Reconciler[T] | Reconcile[T]) -> Controller[T]:
        """Give the controller."""
        return Controller(
            type=self._type,
            triggers=(self._primary, *self._others),
            reconciler=reconciler_of(reconciler),
            channels=tuple(self._channels),
            timers=tuple(self._timers),
            indexes=tuple(self._indexes),
            needs=tuple(self._needs),
            **self._parts,
        )

    def _add(self, trigger: Trigger) -> Self:
        taken = {one.name for one in self._others}
        if trigger.name in taken:
            trigger = replace(trigger, name=f"{trigger.name} ({len(taken) + 1})")
        self._others.append(trigger)
        return self
