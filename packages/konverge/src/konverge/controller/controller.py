"""The declaration of a controller: its kind, its triggers and its reconciler. It starts nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from konverge.cache import CacheOptions
from konverge.controller.permissions import Permission, permissions_on
from konverge.objects import AnyObject, FieldSelector, Key, Kind, kind_of
from konverge.queue import ItemExponentialRateLimiter, RateLimit, RateLimiter
from konverge.reconcile import Reconciler
from konverge.triggers import Channel, Timer, Trigger

__all__ = ["Controller"]

T = TypeVar("T", bound=AnyObject)


@dataclass(frozen=True, kw_only=True, eq=False)
class Controller(Generic[T]):
    """A reconciler and its triggers; built with `controller_for(...)`, run by a manager.

    `type` is the class, or the `Kind`, that objects are passed to the reconciler as. The first trigger is that of the
    controller's own kind.
    """

    name: str
    type: type[Any] | Kind
    triggers: tuple[Trigger, ...]
    reconciler: Reconciler[T]
    max_concurrent_reconciles: int = 16
    timeout: float = 60.0
    cache_sync_timeout: float | None = None
    rate_limiter: Callable[[], RateLimiter[Key]] = ItemExponentialRateLimiter
    rate: RateLimit | None = None
    channels: tuple[Channel, ...] = ()
    timers: tuple[Timer, ...] = ()
    indexes: tuple[tuple[Any, str, Any], ...] = ()  # kind, name, path or function
    needs: tuple[Permission, ...] = ()
    read_only: bool = False

    @property
    def kind(self) -> Kind:
        """The kind that this controller reconciles."""
        return kind_of(self.type)

    def permissions(self) -> tuple[Permission, ...]:
        """Return exactly the permissions that the declaration of this controller needs.

        What a reconciler does beyond the declaration (reads with `ctx.client`, `recreate`) is declared with `needs`.
        """
        found = set(self.needs)
        for trigger in self.triggers:
            found.update(permissions_on(kind_of(trigger.kind), names=(_selected_name(trigger),)))
            if trigger.owned:  # get: to read the child and its owner again when the cache is stale
                found.update(permissions_on(kind_of(trigger.kind), ("get", "create", "patch", "delete")))
                found.update(permissions_on(self.kind, ("get",)))
        if not self.read_only:
            found.update(permissions_on(self.kind, ("patch",), "status"))
        if self.reconciler.finalizer:
            found.update(permissions_on(self.kind, ("get", "patch")))  # get: to read the object again after a conflict
        # Setting an owner reference that blocks deletion requires permission to set the owner's finalizers.
        if any(trigger.owned for trigger in self.triggers):
            found.update(permissions_on(self.kind, ("update",), "finalizers"))
        return tuple(sorted(found))

    def applied_kinds(self) -> frozenset[tuple[str, str]]:
        """Return the kinds that generated RBAC rules allow to apply, as group and plural."""
        permissions = self.permissions()
        return frozenset(
            (one.group, one.resource) for one in permissions if (one.subresource, one.verb) == ("", "patch")
        )

    def options_of(self, trigger: Trigger) -> CacheOptions | None:
        """Return the cache options of a trigger's kind; those of a cluster-scoped kind name no namespaces."""
        if kind_of(trigger.kind).namespaced:
            return trigger.options
        return CacheOptions(namespaces=()).over(trigger.options or CacheOptions())


def _selected_name(trigger: Trigger) -> str:
    """Return the name that the field selector of a trigger requires, or ""."""
    selector = FieldSelector.parse((trigger.options and trigger.options.fields) or "")
    return next((one.value for one in selector.requirements if one.field == "metadata.name" and one.equal), "")
