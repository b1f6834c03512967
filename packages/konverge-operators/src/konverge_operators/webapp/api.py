"""The kind WebApp, version v1: what users write, and what the operator tells them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from konverge import Condition, CustomResource, Meta, Spec, Status, field
from konverge.objects import QuantityText
from konverge.schema import AGE, Column, Scale

__all__ = ["Autoscaling", "Exposure", "Phase", "Resources", "WebApp", "WebAppSpec", "WebAppStatus"]


class Phase(StrEnum):
    """Where a WebApp is in its life; `lifecycle` says how one follows from what is observed."""

    CREATED = "Created"
    RECONCILING = "Reconciling"
    WAITING = "WaitingForPods"
    READY = "Ready"
    SCALING = "Scaling"
    UPDATING = "Updating"
    DEGRADED = "Degraded"
    DELETING = "Deleting"


class Resources(Spec):
    """What each copy needs, and what it may use at most."""

    requests: dict[str, QuantityText] = field(default_factory=dict)
    limits: dict[str, QuantityText] = field(default_factory=dict)


class Exposure(Spec):
    """How the application is reached from outside."""

    host: Annotated[str, Meta(min_length=1)]
    """The host name that requests come to."""
    path: str = "/"
    """Requests below this path are the application's."""
    class_name: str | None = None
    """The IngressClass; the cluster's default unless given."""


class Autoscaling(Spec):
    """How the number of copies follows the load. While it is there, `replicas` is only where scaling starts."""

    max_replicas: Annotated[int, Meta(ge=1)]
    min_replicas: Annotated[int, Meta(ge=1)] = 1
    cpu_percent: Annotated[int, Meta(ge=1)] = 80
    """The use of the requested CPU that scaling aims at, in percent."""


class WebAppSpec(Spec):
    """What the application shall be."""

    image: Annotated[str, Meta(min_length=1)]
    """The container image, with a tag or a digest."""
    replicas: Annotated[int, Meta(ge=0, le=1000)] = 1
    """How many copies run."""
    port: Annotated[int, Meta(ge=1, le=65535)] = 80
    """Where the application listens, and where its Service does."""
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables of the container."""
    resources: Resources | None = None
    ingress: Exposure | None = None
    autoscaling: Autoscaling | None = None
    rollback: bool = False
    """Go back to the last image that was ready when a new one does not become ready in time."""
    progress_deadline_seconds: Annotated[int, Meta(ge=1)] = 600
    """A roll-out that makes no progress for so long has failed."""


class WebAppStatus(Status):
    """What the application is. What comes after `conditions` is the operator's memory."""

    phase: Phase = Phase.CREATED
    observed_generation: int = 0
    replicas: int = 0
    available_replicas: int = 0
    selector: str = ""
    """The pods of it, for autoscalers."""
    last_error: str = ""
    """Why the last reconcile failed; empty when it did not."""
    retry_count: int = 0
    """How many reconciles failed in a row."""
    conditions: list[Condition] = field(default_factory=list)
    last_good_image: str = ""
    """The image that was ready last."""
    ready_replicas: int = 0
    """How many copies were wanted when it was last ready."""
    failed_image: str = ""
    """The image that was rolled back."""


class WebApp(
    CustomResource[WebAppSpec, WebAppStatus],
    group="example.com",
    version="v1",
    short_names=("wa",),
    categories=("all",),
    scale=Scale(status_replicas=".status.replicas", selector=".status.selector"),
    columns=(
        Column("Image", ".spec.image"),
        Column("Replicas", ".spec.replicas"),
        Column("Available", ".status.availableReplicas"),
        Column("Phase", ".status.phase"),
        Column("Error", ".status.lastError", priority=1),
        AGE,
    ),
):
    """A stateless web application."""
