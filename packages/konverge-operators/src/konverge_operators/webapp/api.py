"""The kind WebApp, version v1: the spec that users write and the status that the operator reports."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from konverge import CustomResource, Meta, Spec, field
from konverge.objects import IntOrString, QuantityText
from konverge.schema import AGE, Column, Scale
from konverge.workflow import WorkflowStatus

__all__ = [
    "MAX_REPLICAS",
    "Autoscaling",
    "EnvFrom",
    "GatewayReference",
    "IngressOptions",
    "Monitoring",
    "Phase",
    "Port",
    "Probe",
    "Probes",
    "Resources",
    "Scheduling",
    "SecretReference",
    "Security",
    "Source",
    "Strategy",
    "Tls",
    "Toleration",
    "WebApp",
    "WebAppSpec",
    "WebAppStatus",
]

MAX_REPLICAS = 100
"""The limit of replicas: in the schema, in the rules and in the README."""

Replicas = Annotated[int, Meta(ge=0, le=MAX_REPLICAS)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Seconds = Annotated[int, Meta(ge=1)]
Name = Annotated[str, Meta(min_length=1, max_length=253)]


class Phase(StrEnum):
    """The phase of a WebApp; `phases.derive_phase` derives it from what is observed."""

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


class Source(Spec):
    """A ConfigMap or a Secret in the namespace of the WebApp."""

    name: Name
    optional: bool = False
    """Whether the pods start without it."""


class EnvFrom(Spec, exactly_one=("configMapRef", "secretRef")):
    """Environment variables from every entry of a ConfigMap or a Secret. A change of the content rolls the pods."""

    config_map_ref: Source | None = None
    secret_ref: Source | None = None
    prefix: str | None = None


class SecretReference(Spec):
    """A Secret in the namespace of the WebApp."""

    name: Name


class Probe(Spec):
    """How a kubelet checks the container: a GET of `path`, or a TCP connection if no path is set."""

    path: str | None = None
    port: Port | None = None
    """The port of the application if not set."""
    initial_delay_seconds: Annotated[int, Meta(ge=0)] = 0
    period_seconds: Seconds = 10
    timeout_seconds: Seconds = 1
    failure_threshold: Annotated[int, Meta(ge=1)] = 3


class Probes(Spec):
    """The probes of the container. By default only readiness is checked, with a TCP connection."""

    readiness: Probe = field(default_factory=Probe)
    liveness: Probe | None = None
    startup: Probe | None = None


class Security(Spec):
    """The security context of the pods. By default they pass the Pod Security level restricted."""

    restricted: bool = True
    """False for an image that needs root; then the image decides."""
    run_as_user: Annotated[int, Meta(ge=1)] = 65532
    read_only_root_filesystem: bool = True
    """Whether only `/tmp` can be written."""


class Toleration(Spec):
    """A taint of nodes that the pods tolerate."""

    key: str | None = None
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = None


class Scheduling(Spec):
    """Where the pods run. They are spread over the domains of `spreadBy`."""

    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: list[Toleration] = field(default_factory=list)
    priority_class_name: str | None = None
    spread_by: Annotated[str, Meta(min_length=1)] = "kubernetes.io/hostname"
    """The label of nodes whose values are the domains."""


class Strategy(Spec):
    """How pods are replaced."""

    type: Literal["RollingUpdate", "Recreate"] = "RollingUpdate"
    max_unavailable: IntOrString = "25%"
    max_surge: IntOrString = "25%"


class Tls(Spec):
    """HTTPS, with the certificate in a Secret."""

    secret_name: Name | None = None
    """`<name>-tls` if not set."""


class GatewayReference(Spec):
    """A Gateway of the Gateway API."""

    name: Name
    namespace: Name | None = None
    section_name: Name | None = None


class Monitoring(Spec):
    """How Prometheus reads the metrics of the application."""

    path: str = "/metrics"
    interval: Annotated[str, Meta(pattern="^[0-9]+(ms|s|m|h)$")] = "30s"


class IngressOptions(Spec):
    """How the application is exposed outside the cluster."""

    host: Annotated[str, Meta(min_length=1)]
    """Host name of the application."""
    path: str = "/"
    """Path prefix of the requests that are routed to the application."""
    class_name: str | None = None
    """Name of the IngressClass; the cluster's default if not set."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations of the Ingress or HTTPRoute, for example for cert-manager."""
    tls: Tls | None = None
    """Of an Ingress; the listener of a Gateway has its own certificate."""
    gateway: GatewayReference | None = None
    """An HTTPRoute is attached to this Gateway instead of an Ingress."""


class Autoscaling(Spec):
    """How the number of replicas follows the load. While this is set, `replicas` is only the initial number."""

    max_replicas: Annotated[int, Meta(ge=1, le=MAX_REPLICAS)]
    min_replicas: Annotated[int, Meta(ge=1, le=MAX_REPLICAS)] = 1
    cpu_percent: Annotated[int, Meta(ge=1)] = 80
    """Target CPU utilization, in percent of the requested CPU."""


class WebAppSpec(Spec):
    """The desired state of the application."""

    image: Annotated[str, Meta(min_length=1)]
    """Container image, with a tag or a digest."""
    replicas: Replicas = 1
    """Number of replicas."""
    port: Port = 80
    """Port of the container and of the Service."""
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables of the container."""
    env_from: Annotated[list[EnvFrom], Meta(max_length=64)] = field(default_factory=list)
    resources: Resources | None = None
    ingress: IngressOptions | None = None
    autoscaling: Autoscaling | None = None
    rollback: bool = False
    """Roll back to the last image that was ready when a new image does not become ready in time."""
    progress_deadline_seconds: Seconds = 600
    """Seconds without progress after which a rollout has failed."""
    image_pull_secrets: list[SecretReference] = field(default_factory=list)
    service_account_name: Name | None = None
    automount_service_account_token: bool = False
    probes: Probes = field(default_factory=Probes)
    security: Security = field(default_factory=Security)
    scheduling: Scheduling = field(default_factory=Scheduling)
    strategy: Strategy = field(default_factory=Strategy)
    monitoring: Monitoring | None = None
    suspend: bool = False
    """Change nothing; the status is kept up to date."""


class WebAppStatus(WorkflowStatus):
    """The observed state of the application. The fields after `selector` are memory of the operator."""

    phase: Phase = Phase.CREATED
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    selector: str = ""
    """Label selector of the pods, for autoscalers."""
    last_good_image: str = ""
    """The last image that was ready."""
    last_good_replicas: int = 0
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
        Column("Ready", ".status.readyReplicas"),
        Column("Available", ".status.availableReplicas"),
        Column("Phase", ".status.phase"),
        Column("Error", ".status.lastError", priority=1),
        AGE,
    ),
):
    """A stateless web application."""
