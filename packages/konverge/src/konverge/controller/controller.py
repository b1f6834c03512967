"""A controller as it is declared: which objects it is for, what wakes it, and who reconciles. It starts nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from konverge.cache import CacheOptions
from konverge.controller.permissions import Permission, permissions_on
from konverge.objects import AnyObject, Kind, kind_of
from konverge.queue import Backoff, RateLimit
from konverge.reconcile import Reconciler
from konverge.triggers import Channel, Timer, Trigger

__all__ = ["Controller"]

T = TypeVar("T", bound=AnyObject)


@dataclass(frozen=True, kw_only=True, eq=False)
class Controller(Generic[T]):
    """A reconciler and what wakes it; made by `controller_for(...)`, run by a manager.

    `type` is what objects are handed out as. The first of the triggers is the one for the controller's own kind.
    """

    name: str
    type: type[Any] | Kind
    triggers: tuple[Trigger, ...]
    reconciler: Reconciler[T]
    max_concurrent_reconciles: int = 16
    timeout: float = 60.0
    backoff: Backoff = field(default_factory=Backoff)
    rate: RateLimit | None = None
    channels: tuple[Channel, ...] = ()
    timers: tuple[Timer, ...] = ()
    indexes: tuple[tuple[Any, str, Any], ...] = ()  # kind, name, path or function
    needs: tuple[Permission, ...] = ()

    @property
    def kind(self) -> Kind:
        """The kind that this controller is for."""
        return kind_of(self.type)

    def permissions(self) -> tuple[Permission, ...]:
        """Give what this controller must be allowed to do, by what it declares, and no more.

        What a reconciler does beside that (reads by `ctx.client`, `recreate`) it says with `needs`.
        """
        found = set(self.needs)
        for trigger in self.triggers:
            found.update(permissions_on(kind_of(trigger.kind)))
            if trigger.owned:
                found.update(permissions_on(kind_of(trigger.kind), ("create", "patch", "delete")))
        found.update(permissions_on(self.kind, ("patch",), "status"))
        if self.reconciler.finalizer:
            found.update(permissions_on(self.kind, ("get", "patch")))  # read again when somebody else wrote first
        # An owner reference that blocks deletion may be set only by who may set the owner's finalizers.
        if any(trigger.owned for trigger in self.triggers):
            found.update(permissions_on(self.kind, ("update",), "finalizers"))
        return tuple(sorted(found))

    def options_of(self, trigger: Trigger) -> CacheOptions | None:
        """Give the options that a trigger's kind is kept with; those of a cluster-scoped kind name no namespaces."""
        if kind_of(trigger.kind).namespaced:
            return trigger.options
        return CacheOptions(namespaces=()).over(trigger.options or CacheOptions())
