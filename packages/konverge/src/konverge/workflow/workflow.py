"""A workflow as a value: components with their dependencies, and the phases of the whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from konverge.cache import CacheOptions
from konverge.controller import Builder, controller_for
from konverge.objects import Resource, kind_of
from konverge.workflow.components import Component
from konverge.workflow.configuration import Configuration
from konverge.workflow.graphs import check_graph, closed_downwards
from konverge.workflow.phases import Phases

__all__ = ["Workflow"]

T = TypeVar("T", bound=Resource)


def _never(_obj: Any) -> bool:
    return False


def _unprotected(_obj: Any) -> str:
    return ""


@dataclass(frozen=True, kw_only=True)
class Workflow(Generic[T]):
    """The components of a kind, how its phase follows from them, and when an object is reconciled again.

    `suspended` reports whether an object is suspended: then nothing is written but its status. `protected` returns why
    an object that is being deleted is kept, and "" for one that may go: a kept one loses nothing. `ready_interval` and
    `progress_interval` are the seconds until the next reconcile while all components are ready, and otherwise. Fields
    that other managers set in children of the kinds `reports_foreign_fields_of`, and that change what the children do,
    are reported in the condition ForeignFields.

    Raises: ValueError for a duplicate name, an unknown dependency and a cycle.
    """

    kind: type[T]
    components: tuple[Component[T], ...]
    phases: Phases[Any]
    configuration: Configuration[T] = field(default_factory=Configuration)
    suspended: Callable[[T], bool] = _never
    protected: Callable[[T], str] = _unprotected
    ready_interval: float = 30.0
    progress_interval: float = 5.0
    reports_foreign_fields_of: tuple[type[Resource], ...] = ()

    def __post_init__(self) -> None:
        check_graph([one.name for one in self.components], self.order)

    @property
    def needs(self) -> dict[str, tuple[str, ...]]:
        """The dependencies of each component."""
        return {one.name: one.needs for one in self.components}

    @property
    def order(self) -> dict[str, tuple[str, ...]]:
        """The components that each one comes after: what it needs, and what it waits for if that is enabled."""
        return {one.name: (*one.needs, *one.after) for one in self.components}

    def enabled(self, obj: T) -> set[str]:
        """Return the components that an object wants: those with everything that they need."""
        return closed_downwards({one.name for one in self.components if one.enabled(obj)}, self.needs)

    def builder(self) -> Builder[T]:
        """Return a builder of a controller that owns every kind of the components and watches the configuration."""
        builder: Builder[T] = controller_for(self.kind)
        kinds = {kind_of(kind): kind for one in self.components for kind in one.kinds}
        optional = {kind_of(kind): kind for one in self.components for kind in one.optional_kinds}
        for kind in kinds.values():
            builder.owns(kind)
        for identity, kind in optional.items():
            if identity not in kinds:
                builder.owns(kind, options=CacheOptions(optional=True))
        for kind in self.reports_foreign_fields_of:
            builder.needs(kind, "get")
        return self.configuration.declare(builder, self.kind)
