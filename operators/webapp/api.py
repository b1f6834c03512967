"""The kind WebApp, version v1."""

from __future__ import annotations

from typing import Annotated

from konverge import Condition, CustomResource, Meta, Spec, Status, field


class WebAppSpec(Spec):
    """What the application shall be."""

    image: str
    replicas: Annotated[int, Meta(ge=0, le=100)] = 1
    port: Annotated[int, Meta(ge=1, le=65535)] = 80


class WebAppStatus(Status):
    """What it is."""

    observed_generation: int = 0
    available_replicas: int = 0
    conditions: list[Condition] = field(default_factory=list)


class WebApp(CustomResource[WebAppSpec, WebAppStatus], group="example.com", version="v1", short_names=("wa",)):
    """A stateless web application."""
