"""The kind EcommerceApp: the spec that users write and the status that the operator reports."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from konverge import CustomResource, Meta, Spec, field
from konverge.objects import QuantityText
from konverge.schema import AGE, IMMUTABLE, Column, Rule
from konverge.workflow import WorkflowStatus

__all__ = [
    "Authentication",
    "Autoscaling",
    "Backend",
    "Backup",
    "DatabaseOptions",
    "EcommerceApp",
    "EcommerceSpec",
    "EcommerceStatus",
    "Frontend",
    "IngressOptions",
    "Migrations",
    "Monitoring",
    "Phase",
    "Resources",
    "Security",
    "Tier",
]

Count = Annotated[int, Meta(ge=0, le=1000)]
Port = Annotated[int, Meta(ge=1, le=65535)]


class Phase(StrEnum):
    """The phase of an application; `phases.derive_phase` derives it from what is observed."""

    PENDING = "Pending"
    CREATING = "Creating"
    RUNNING = "Running"
    UPDATING = "Updating"
    DEGRADED = "Degraded"
    FAILED = "Failed"
    SUSPENDED = "Suspended"
    DELETING = "Deleting"


class Resources(Spec):
    """Compute resources of each replica: requests and limits."""

    requests: dict[str, QuantityText] = field(default_factory=dict)
    limits: dict[str, QuantityText] = field(default_factory=dict)


class Autoscaling(Spec):
    """How the number of replicas follows the load. While this is set, `replicas` is only the initial number."""

    max_replicas: Annotated[int, Meta(ge=1, le=1000)]
    min_replicas: Annotated[int, Meta(ge=1, le=1000)] = 1
    cpu_percent: Annotated[int, Meta(ge=1)] = 80
    """Target CPU utilization, in percent of the requested CPU."""


class Backup(Spec):
    """Scheduled dumps of the database."""

    enabled: bool = False
    schedule: str = "0 2 * * *"


class DatabaseOptions(
    Spec,
    rules=(
        Rule(
            "self.version.split('.').size() in (self.engine == 'mariadb' ? [2, 3] : [1, 2])",
            message="write a version of the engine: 18 or 18.6 for postgresql, 10.11 or 10.11.19 for mariadb",
            field_path=".version",
        ),
    ),
):
    """The database of the application."""

    engine: Annotated[Literal["postgresql", "mariadb"], IMMUTABLE] = "postgresql"
    version: Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+){0,2}$", max_length=14)] = "18"
    storage: QuantityText = "10Gi"
    backup: Backup = field(default_factory=Backup)


class Migrations(Spec):
    """A command that brings the database to the schema of a new backend image, before that image is rolled out."""

    command: Annotated[list[str], Meta(min_length=1)]


class Tier(Spec):
    """What frontend and backend have in common."""

    replicas: Count | None = None
    port: Port = 8080
    resources: Resources = field(default_factory=Resources)
    autoscaling: Autoscaling | None = None


class Frontend(Tier):
    """The web frontend. Image and replicas default to those of the application."""

    image: str | None = None


class Backend(Tier):
    """The backend, which the frontend calls; the only part that reaches the database."""

    image: Annotated[str, Meta(min_length=1)]
    migrations: Migrations | None = None


class Monitoring(Spec):
    """How the application is monitored."""

    enabled: bool = False
    prometheus: bool = True
    grafana: bool = True


class Tls(Spec):
    """Whether the application is served over HTTPS, with the certificate in the Secret `<name>-tls`."""

    enabled: bool = False


class Authentication(Spec):
    """Whether users must log in; the Secret `<name>-oauth2` has issuer, client-id and client-secret."""

    enabled: bool = False
    provider: Literal["oauth2"] = "oauth2"


class Security(Spec):
    """TLS and authentication."""

    tls: Tls = field(default_factory=Tls)
    authentication: Authentication = field(default_factory=Authentication)


class IngressOptions(Spec):
    """How the application is exposed outside the cluster."""

    host: str | None = None
    """Host name of the application; all hosts if not set."""
    class_name: str | None = None
    """Name of the IngressClass; the cluster's default if not set."""
    gateway: str | None = None
    """Name of a Gateway: an HTTPRoute is attached to it instead of an Ingress."""


class EcommerceSpec(Spec):
    """The desired state of the application."""

    backend: Backend
    image: str | None = None
    """Default image of the frontend."""
    replicas: Count = 1
    """Default number of replicas of the frontend."""
    frontend: Frontend = field(default_factory=Frontend)
    database: DatabaseOptions = field(default_factory=DatabaseOptions)
    monitoring: Monitoring = field(default_factory=Monitoring)
    security: Security = field(default_factory=Security)
    ingress: IngressOptions = field(default_factory=IngressOptions)
    progress_deadline_seconds: Annotated[int, Meta(ge=1)] = 900
    """Seconds that a component may take to become ready before the application has failed."""
    deletion_policy: Literal["Retain", "Delete"] = "Retain"
    """Whether the claims of the database outlive the application."""
    suspend: bool = False
    """Change nothing; the status is still kept."""


class LastRunning(Spec):
    """What the tiers were when the application last ran: the memory that an update is compared with."""

    images: dict[str, str] = field(default_factory=dict)
    replicas: dict[str, int] = field(default_factory=dict)


class EcommerceStatus(WorkflowStatus):
    """The observed state of the application. The fields after `url` are bookkeeping of the operator."""

    phase: Phase = Phase.PENDING
    reason: str = ""
    """Why the application is updated: ImageUpdate, Scaling or ConfigurationUpdate; "" in other phases."""
    last_updated: str = ""
    """When another field of the status last changed."""
    url: str = ""
    database_kind: str = ""
    """Whether the database is a StatefulSet or a Database; decided at creation and never changed."""
    last_running: LastRunning = field(default_factory=LastRunning)
    last_restart: str = ""
    """The time of the last rolling restart, which is on the pod templates."""
    restart_pending: bool = False
    """Whether the annotation that requested the restart may still exist."""


class EcommerceApp(
    CustomResource[EcommerceSpec, EcommerceStatus],
    group="ecommerce.io",
    version="v1",
    plural="ecommerceapps",
    short_names=("eca",),
    rules=(
        Rule(
            "self.metadata.name.size() <= 36",
            message="the name is too long for the children: use at most 36 characters",
        ),
        Rule(
            "self.metadata.name.matches('^[a-z][-a-z0-9]*$')",
            message="the name begins the names of Services: write a letter first, and no dots",
        ),
    ),
    columns=(
        Column("Phase", ".status.phase"),
        Column("Message", ".status.message", priority=1),
        Column("URL", ".status.url"),
        AGE,
    ),
):
    """An online shop: a database, a backend, a frontend, an ingress, and monitoring."""
