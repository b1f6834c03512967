"""The kind WebApp, version v1: the spec that users write and the status that the operator reports."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from konverge import Condition, CustomResource, Meta, Spec, Status, field
from konverge.objects import QuantityText
from konverge.schema import AGE, Column, Scale

__all__ = ["Autoscaling", "IngressOptions", "Phase", "Resources", "WebApp", "WebAppSpec", "WebAppStatus"]


class Phase(StrEnum):
    """The phase of a WebApp; `lifecycle.derive_status` derives it from what is observed."""

    CREATED = "Created"
    RECONCILING = "Reconciling"
    WAITING = "WaitingForPods"
    READY = "Ready"
    SCALING = "Scaling"
    UPDATING = "Updating"
    DEGRADED = "Degraded"
    DELETING = "Deleting"


class Resources(Spec):
    """Compute resources of each replica: requests and limits."""

    requests: dict[str, QuantityText] = field(default_factory=dict)
    limits: dict[str, QuantityText] = field(default_factory=dict)


class IngressOptions(Spec):
    """How the application is exposed outside the cluster."""

    host: Annotated[str, Meta(min_length=1)]
    """Host name of the application."""
    path: str = "/"
    """Path prefix of the requests that are routed to the application."""
    class_name: str | None = None
    """Name of the IngressClass; the cluster's default if not set."""


class Autoscaling(Spec):
    """How the number of replicas follows the load. While this is set, `replicas` is only the initial number."""

    max_replicas: Annotated[int, Meta(ge=1)]
    min_replicas: Annotated[int, Meta(ge=1)] = 1
    cpu_percent: Annotated[int, Meta(ge=1)] = 80
    """Target CPU utilization, in percent of the requested CPU."""


class WebAppSpec(Spec):
    """The desired state of the application."""

    image: Annotated[str, Meta(min_length=1)]
    """Container image, with a tag or a digest."""
    replicas: Annotated[int, Meta(ge=0, le=1000)] = 1
    """Number of replicas."""
    port: Annotated[int, Meta(ge=1, le=65535)] = 80
    """Port of the container and of the Service."""
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables of the container."""
    resources: Resources | None = None
    ingress: IngressOptions | None = None
    autoscaling: Autoscaling | None = None
    rollback: bool = False
    """Roll back to the last image that was ready when a new image does not become ready in time."""
    progress_deadline_seconds: Annotated[int, Meta(ge=1)] = 600
    """Seconds without progress after which a rollout has failed."""


class WebAppStatus(Status):
    """The observed state of the application. The fields after `conditions` are bookkeeping of the operator."""

    phase: Phase = Phase.CREATED
    observed_generation: int = 0
    replicas: int = 0
    available_replicas: int = 0
    selector: str = ""
    """Label selector of the pods, for autoscalers."""
    last_error: str = ""
    """Error of the last reconcile; empty if it succeeded."""
    retry_count: int = 0
    """Number of consecutive failed reconciles."""
    conditions: list[Condition] = field(default_factory=list)
    last_good_image: str = ""
    """The last image that was ready."""
    ready_replicas: int = 0
    """Number of desired replicas when the application was last ready."""
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
