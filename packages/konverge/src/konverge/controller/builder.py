"""The builder of controllers.

controller_for(WebApp).owns(Deployment).watches(Secret, to_keys(apps_of, Secret)).build(WebAppReconciler())

For a function, the builder is a decorator:

@controller_for(Greeting).owns(ConfigMap)
async def greet(greeting: Greeting, ctx: Context) -> None: ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Generic, Self, TypeVar, overload

from konverge.cache import CacheOptions, IndexFunc
from konverge.controller.controller import Controller
from konverge.controller.permissions import check_names, permissions_on
from konverge.objects import AnyObject, FieldSelector, Key, Kind, Resource, Unstructured, kind_of
from konverge.queue import Backoff, ItemExponentialRateLimiter, RateLimit, RateLimiter
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
from konverge.triggers.mappers import ToReferring

__all__ = ["Builder", "controller_for"]

T = TypeVar("T", bound=AnyObject)
R = TypeVar("R", bound=Resource)


@overload
def controller_for(kind: type[R]) -> Builder[R]: ...
@overload
def controller_for(kind: Kind) -> Builder[Unstructured]: ...
def controller_for(kind: Any) -> Builder[Any]:
    """Return a builder of a controller for a kind: a class for typed objects, a `Kind` for unstructured ones."""
    return Builder(kind)


class Builder(Generic[T]):
    """Collect the parts of a controller. Each method returns the builder itself, and `build` returns the controller.

    The controller's own objects are enqueued on any change outside of status, managedFields and resourceVersion, unless
    `predicate` sets another rule. Changes of owned and watched objects always enqueue, unless they have a predicate.
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

    # Triggers

    def predicate(self, predicate: Predicate) -> Self:
        """Enqueue an object of the controller's own kind only for events that pass a predicate."""
        self._primary = replace(self._primary, predicate=predicate)
        return self

    def options(self, options: CacheOptions) -> Self:
        """Cache the controller's own kind with these options."""
        self._primary = replace(self._primary, options=options)
        return self

    def owns(
        self,
        kind: type[Resource] | Kind,
        *,
        predicate: Predicate = anything,
        options: CacheOptions | None = None,
        resync: float | None = None,
    ) -> Self:
        """Enqueue the owner when one of its children changes; the controller may create, patch and delete them.

        With `resync`, the owners of all children are enqueued at that interval in seconds, without a change.
        """
        name = f"owns {kind_of(kind).kind}"
        mapper = to_owner(self._type)
        trigger = Trigger(name=name, kind=kind, predicate=predicate, mapper=mapper, options=options, owned=True)
        return self._add(replace(trigger, resync=_interval(resync)))

    def watches(
        self,
        kind: type[Resource] | Kind,
        mapper: Mapper,
        *,
        predicate: Predicate = anything,
        options: CacheOptions | None = None,
        resync: float | None = None,
    ) -> Self:
        """Enqueue the keys that a mapper returns when an object of another kind changes.

        With `resync`, all objects of the kind are mapped at that interval in seconds, without a change.
        """
        name = f"watches {kind_of(kind).kind}"
        trigger = Trigger(name=name, kind=kind, predicate=predicate, mapper=mapper, options=options)
        return self._add(replace(trigger, resync=_interval(resync)))

    def resync(self, seconds: float) -> Self:
        """Enqueue all objects of the controller's own kind at an interval in seconds, without a change."""
        self._primary = replace(self._primary, resync=_interval(seconds))
        return self

    def channel(self, channel: Channel) -> Self:
        """Enqueue the keys that are put into a channel, for events from outside the cluster."""
        self._channels.append(channel)
        return self

    def every(self, seconds: float, keys: Callable[[], Iterable[Key]]) -> Self:
        """Enqueue the keys that a function returns, at an interval in seconds."""
        self._timers.append(Timer(seconds, keys))
        return self

    def index(self, kind: type[Resource] | Kind, name: str, values: IndexFunc | str) -> Self:
        """Index the objects of a kind by a wire path such as ".spec.nodeName" or with `by_function`, for `ctx.find`."""
        self._indexes.append((kind, name, values))
        return self

    # Settings

    def named(self, name: str) -> Self:
        """Name the controller; the default is the name of its kind in lower case."""
        if not name or "/" in name:
            raise ValueError(f"{name!r} is not a controller name: write a short name without a slash")
        self._parts["name"] = name
        return self

    def max_concurrent_reconciles(self, workers: int) -> Self:
        """Set the maximum number of concurrent reconciles; a key is never reconciled twice at the same time."""
        if workers < 1:
            raise ValueError(f"max_concurrent_reconciles is the number of workers, at least 1, got {workers}")
        self._parts["max_concurrent_reconciles"] = workers
        return self

    def backoff(self, backoff: Backoff) -> Self:
        """Set the backoff after errors; the default is 1 s, 2 s, 4 s and so on up to 5 min."""
        return self.rate_limiter(partial(ItemExponentialRateLimiter, backoff))

    def rate_limiter(self, new_limiter: Callable[[], RateLimiter[Key]]) -> Self:
        """Set how long keys wait after errors, instead of `backoff`: a function that returns a new rate limiter.

        It is called once for each run of the controller, so that two managers do not share a limiter.
        """
        self._parts["rate_limiter"] = new_limiter
        return self

    def rate(self, rate: RateLimit) -> Self:
        """Limit the rate at which reconciles start, over all keys."""
        self._parts["rate"] = rate
        return self

    def timeout(self, seconds: float) -> Self:
        """Cancel a reconcile that takes longer than this number of seconds; the default is 60."""
        if seconds <= 0:
            raise ValueError(f"timeout is a number of seconds greater than 0, got {seconds}")
        self._parts["timeout"] = seconds
        return self

    def cache_sync_timeout(self, seconds: float) -> Self:
        """Fail the manager with NotSynced when a kind of this controller is not synced after this number of seconds.

        By default a controller waits: a CRD may be installed later, a permission granted later.
        """
        if not seconds > 0:
            raise ValueError(f"cache_sync_timeout is a number of seconds greater than 0, got {seconds}")
        self._parts["cache_sync_timeout"] = seconds
        return self

    def needs(
        self, kind: type[Resource] | Kind, *verbs: str, subresource: str = "", names: tuple[str, ...] = ()
    ) -> Self:
        """Declare what the reconciler does beyond its triggers, so that generated RBAC rules allow it.

        With `names`, only for the objects with these names: `.needs(ClusterRole, "bind", names=("view",))`. "list" and
        "watch" with a name limit the cache of a watched kind to that object, with a field selector.

        Raises: ValueError for a verb that RBAC cannot limit to names.
        """
        check_names(kind_of(kind), verbs, subresource, names)
        self._needs += permissions_on(kind_of(kind), verbs, subresource, names or ("",))
        return self

    def read_only(self) -> Self:
        """Declare that the controller writes nothing, not even a status: generated RBAC rules allow no write."""
        self._parts["read_only"] = True
        return self

    def build(self, reconciler: Reconciler[T] | Reconcile[T]) -> Controller[T]:
        """Return the controller.

        Raises: ValueError when `to_referring` names an index that is not declared with `index`, and for a `read_only`
        controller that owns a kind or has a finalizer.
        """
        triggers = tuple(self._limited(trigger) for trigger in (self._primary, *self._others))
        for trigger in triggers:
            self._check_index(trigger, triggers)
        checked = reconciler_of(reconciler)
        if "read_only" in self._parts and any(trigger.owned for trigger in triggers):
            raise ValueError("a read_only controller owns no kinds: write .watches() instead of .owns()")
        if "read_only" in self._parts and checked.finalizer:
            raise ValueError("a read_only controller has no finalizer: it would have to write it")
        return Controller(
            type=self._type,
            triggers=triggers,
            reconciler=checked,
            channels=tuple(self._channels),
            timers=tuple(self._timers),
            indexes=tuple(self._indexes),
            needs=tuple(self._needs),
            **self._parts,
        )

    def __call__(self, function: Reconcile[T]) -> Controller[T]:
        """Build a controller for a function: the builder is its decorator.

        Raises: TypeError for anything but a function.
        """
        if isinstance(function, type | Reconciler) or not callable(function):
            raise TypeError(f"{self!r} decorates functions: for a Reconciler, use .build({_class_name(function)}())")
        return self.build(function)

    def __repr__(self) -> str:
        return f"controller_for({kind_of(self._type).kind})"

    def _limited(self, trigger: Trigger) -> Trigger:
        """Return a trigger whose cache selects the object that `needs` names for list and watch."""
        kind = kind_of(trigger.kind)
        names = {one.name for one in self._needs if one in permissions_on(kind, names=(one.name,)) and one.name}
        if len(names) != 1:
            return trigger
        by_name = CacheOptions(fields=str(FieldSelector.of({"metadata.name": names.pop()})))
        return replace(trigger, options=by_name.over(trigger.options or CacheOptions()))

    def _check_index(self, trigger: Trigger, triggers: tuple[Trigger, ...]) -> None:
        mapper = trigger.mapper
        if not isinstance(mapper, ToReferring):
            return
        if mapper.kind not in {kind_of(one.kind) for one in triggers}:
            raise ValueError(f"{trigger.name}: {mapper!r} reads {mapper.kind.kind}: declare it with .watches()")
        declared = {(kind_of(kind), name) for kind, name, _ in self._indexes}
        declared |= {
            (kind_of(one.kind), name) for one in triggers if one.options for name, _ in one.options.indexes or ()
        }
        if (mapper.kind, mapper.index) not in declared:
            raise ValueError(
                f"{trigger.name}: {mapper!r} needs an index:"
                f' add .index({mapper.kind.kind}, {mapper.index!r}, ".spec.<field with the name>")'
            )

    def _add(self, trigger: Trigger) -> Self:
        names = {one.name for one in self._others}
        if trigger.name in names:
            trigger = replace(trigger, name=f"{trigger.name} ({len(names) + 1})")
        self._others.append(trigger)
        return self


def _interval(seconds: float | None) -> float | None:
    if seconds is not None and not seconds > 0:
        raise ValueError(f"resync is a number of seconds greater than 0, got {seconds}")
    return seconds


def _class_name(value: object) -> str:
    return value.__name__ if isinstance(value, type) else type(value).__name__
