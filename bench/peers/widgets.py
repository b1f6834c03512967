"""The custom resource of the cache benchmark, written with konverge."""

from __future__ import annotations

from konverge.objects import field
from konverge.schema import CustomResource, Spec, Status

__all__ = ["Widget"]


class Setting(Spec):
    name: str
    value: str


class Part(Spec):
    name: str
    image: str
    replicas: int
    settings: list[Setting] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)


class WidgetSpec(Spec):
    node_name: str = ""
    parts: list[Part] = field(default_factory=list)


class Condition(Status):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class WidgetStatus(Status):
    observed_generation: int = 0
    conditions: list[Condition] = field(default_factory=list)


class Widget(CustomResource[WidgetSpec, WidgetStatus], group="bench.example.com", version="v1"):
    """A widget with parts."""
