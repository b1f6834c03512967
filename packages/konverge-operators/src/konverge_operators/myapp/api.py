"""The kind MyApp: the spec that users write and the status that the operator reports."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from konverge import CustomResource, Meta, Spec, field
from konverge.objects import QuantityText
from konverge.schema import AGE, IMMUTABLE, Column, Rule
from konverge.workflow import WorkflowStatus

__all__ = ["AppCache", "AppDatabase", "Bindings", "MyApp", "MyAppSpec", "MyAppStatus", "Phase", "Resources"]

Variables = Annotated[
    dict[str, Annotated[str, Meta(min_length=1, max_length=253)]],
    Meta(max_length=32),
    Rule(
        "self.all(name, name.matches('^[A-Za-z_][A-Za-z0-9_]*$') && name.size() <= 63 && name != 'PORT')",
        message="write names of environment variables other than PORT, of letters, digits and '_', at most 63",
    ),
]
"""Keys of a connection Secret, by the environment variable that gets the value."""


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


class AppDatabase(
    Spec,
    rules=(Rule("has(self.spec) != has(self.existing)", message="write either spec, for a new one, or existing"),),
):
    """The database: a new `Database` named `<name>-database`, or one that exists."""

    spec: dict[str, Any] | None = None
    """The spec of a Database; its operator validates it. Its deletionPolicy defaults to that of the application."""
    existing: Annotated[str, Meta(min_length=1, max_length=253)] | None = None
    """The name of a Database in this namespace. It is used, and never changed or deleted."""


class AppCache(Spec):
    """The cache: an object of this kind named `<name>-cache`."""

    kind: Annotated[Literal["Cache", "RedisCluster"], IMMUTABLE] = "Cache"
    spec: dict[str, Any] = field(default_factory=dict)
    """Its spec; its operator validates it."""


class Bindings(
    Spec,
    rules=(
        Rule(
            "!self.database.exists(name, name in self.cache)",
            message="an environment variable has one value: database and cache use the same name",
        ),
    ),
):
    """The environment variables of the application, by reference to the connection Secrets."""

    database: Variables = field(default_factory=lambda: {"DATABASE_URL": "uri"})
    cache: Variables = field(default_factory=lambda: {"CACHE_URL": "uri"})


class MyAppSpec(Spec):
    """The desired state of the application."""

    image: Annotated[str, Meta(min_length=1)]
    replicas: Annotated[int, Meta(ge=0, le=1000)] = 3
    port: Annotated[int, Meta(ge=1, le=65535)] = 8080
    """Port that the application serves; it is also in the variable PORT."""
    resources: Resources = field(default_factory=Resources)
    database: AppDatabase | None = None
    cache: AppCache | None = None
    bindings: Bindings = field(default_factory=Bindings)
    deletion_policy: Literal["Retain", "Delete"] = "Retain"
    """Retain: the Database outlives the application, with its data, and another one can use it."""
    suspend: bool = False
    """Change nothing; the status is still kept."""


class MyAppStatus(WorkflowStatus):
    """The observed state of the application."""

    phase: Phase = Phase.PENDING
    ready_replicas: int = 0
    connections: dict[str, str] = field(default_factory=dict)
    """The connection Secret that the pods refer to, by component."""


class MyApp(
    CustomResource[MyAppSpec, MyAppStatus],
    group="myapp.example.com",
    version="v1",
    rules=(
        Rule(
            "self.metadata.name.matches('^[a-z][-a-z0-9]{0,35}$')",
            message="the name begins the names of children: a letter first, no dots, at most 36 characters",
        ),
    ),
    columns=(
        Column("Replicas", ".spec.replicas"),
        Column("Ready", ".status.readyReplicas"),
        Column("Phase", ".status.phase"),
        Column("Message", ".status.message", priority=1),
        AGE,
    ),
):
    """An application with its database and its cache."""
