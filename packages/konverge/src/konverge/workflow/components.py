"""Components: the parts of an application, each with its desired objects, its dependencies and its readiness."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from konverge.errors import KonvergeError
from konverge.objects import AnyObject, Kind, ObjectStatus, Resource, object_status
from konverge.objects.names import dns_label_errors
from konverge.reconcile import Context

__all__ = ["COMPONENT_LABEL", "Component", "ComponentPhase", "ComponentState", "Waiting", "objects_status"]

T = TypeVar("T", bound=Resource)

COMPONENT_LABEL = "app.kubernetes.io/component"
"""The label of a child with the name of its component."""

DesiredObjects: TypeAlias = Callable[[T, Context], Awaitable[Iterable[AnyObject]]]
"""Returns the complete set of desired objects of a component, the most important one first."""


class Waiting(KonvergeError):
    """Raised by the function of a component that cannot be brought in step yet, since something is not configured.

    The component keeps its children and reports the reason, one word, and the message. No error is counted: a change of
    what it waits for must enqueue the key.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ComponentPhase(StrEnum):
    """The phase of one component."""

    WAITING = "Waiting"
    """A dependency is not ready, or something is not configured."""
    CREATING = "Creating"
    """It was created and has not been ready yet."""
    READY = "Ready"
    UPDATING = "Updating"
    """Its desired objects have changed since it was ready."""
    DEGRADED = "Degraded"
    """It was ready, and is not any more although its desired objects are the same."""
    FAILED = "Failed"
    """An error, or an object that reports that it cannot become ready."""
    REMOVING = "Removing"
    """It is not enabled any more, and some of its objects still exist."""


async def _nothing(_obj: Any, _ctx: Context) -> None:
    return None


def _always(_obj: Any) -> bool:
    return True


def objects_status(_obj: Any, objects: Sequence[AnyObject]) -> ObjectStatus:
    """Return the status of a component by the rules of kstatus: that of the first object that is not current."""
    statuses = [(one, object_status(one)) for one in objects]
    for status in ("Failed", "Terminating", "InProgress"):
        for obj, found in statuses:
            if found.status == status:
                return ObjectStatus(found.status, f"{obj.kind} {obj.name}: {found.message}")
    return ObjectStatus("Current")


@dataclass(frozen=True)
class Component(Generic[T]):
    """One part of an application.

    `objects` is an async function of the reconciled object and the context; it returns the complete set of desired
    objects, whose kinds are among `kinds` and `optional_kinds`. The latter may be missing on a server: ask with
    `ctx.is_served(kind)` before returning one. `needs` are the components that must be ready before this one is
    created, `after` are those that must be if they are enabled. A component is enabled if `enabled` says so and
    everything that it needs is enabled. `readiness` judges the live objects. `cleanup` runs before the objects are
    deleted; raise `Retry` to wait there. An object that it makes the child of nobody is kept. With `propagation`
    "Foreground" an object counts as gone when its dependents are gone too. `title` is what events call it.

    Raises: ValueError when the name is not a DNS label, or the component needs itself.
    """

    name: str
    objects: DesiredObjects[T]
    kinds: tuple[type[Resource] | Kind, ...]
    optional_kinds: tuple[type[Resource] | Kind, ...] = ()
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    enabled: Callable[[T], bool] = _always
    readiness: Callable[[T, Sequence[AnyObject]], ObjectStatus] = objects_status
    cleanup: Callable[[T, Context], Awaitable[None]] = _nothing
    propagation: Literal["Background", "Foreground"] = "Foreground"
    title: str = ""

    def __post_init__(self) -> None:
        if dns_label_errors(self.name):
            raise ValueError(f"{self.name!r} is not a name for a component: write lower-case letters, digits and '-'")
        for part in ("kinds", "optional_kinds", "needs", "after"):
            if not isinstance(getattr(self, part), tuple):
                raise ValueError(f"{part} of component {self.name} is a tuple: write {part}=(one,) for a single one")
        if self.name in (*self.needs, *self.after):
            raise ValueError(f"component {self.name} needs itself: {self.name} -> {self.name}")
        object.__setattr__(self, "title", self.title or self.name.replace("-", " ").capitalize())

    @property
    def condition(self) -> str:
        """The type of the component's condition, such as DatabaseReady."""
        return "".join(word.capitalize() for word in self.name.split("-")) + "Ready"


@dataclass(frozen=True, kw_only=True)
class ComponentState:
    """What one reconcile found out about a component.

    `revision` is a hash of its desired objects when it was last ready, "" if it never was. `objects` are its live
    objects. `error` is the error that stopped it.
    """

    name: str
    phase: ComponentPhase
    reason: str
    message: str = ""
    revision: str = ""
    objects: tuple[AnyObject, ...] = ()
    error: Exception | None = field(default=None, compare=False)

    @property
    def ready(self) -> bool:
        return self.phase is ComponentPhase.READY
