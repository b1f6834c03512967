"""The kind Cache: the spec that users write and the status that the operator reports."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from konverge import CustomResource, Meta, Spec, field
from konverge.objects import QuantityText
from konverge.schema import AGE, Column
from konverge.workflow import WorkflowStatus

__all__ = ["Cache", "CachePhase", "CacheSpec", "CacheStatus", "EvictionPolicy", "Resources"]

EvictionPolicy = Literal[
    "noeviction",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
]


class CachePhase(StrEnum):
    """The phase of a cache; `phases.derive_phase` derives it from what is observed."""

    PENDING = "Pending"
    CREATING = "Creating"
    READY = "Ready"
    UPDATING = "Updating"
    DEGRADED = "Degraded"
    FAILED = "Failed"
    SUSPENDED = "Suspended"
    DELETING = "Deleting"


class Resources(Spec):
    """Compute resources of the server: requests and limits."""

    requests: dict[str, QuantityText] = field(default_factory=dict)
    limits: dict[str, QuantityText] = field(default_factory=dict)


class CacheSpec(Spec):
    """The desired state of the cache."""

    version: Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+){0,2}$")] = "8.1"
    """Version of Valkey, the tag of the image."""
    image: str | None = None
    """Image of the server; Valkey of the version if not set. It needs redis-server and redis-cli."""
    max_memory: QuantityText = "100Mi"
    """How much the cache holds. The memory of the container is a quarter more, unless `resources` sets it."""
    max_memory_policy: EvictionPolicy = "allkeys-lru"
    """Which keys are evicted when the memory is full."""
    resources: Resources = field(default_factory=Resources)
    suspend: bool = False
    """Change nothing; the status is still kept."""


class CacheStatus(WorkflowStatus):
    """The observed state of the cache."""

    phase: CachePhase = CachePhase.PENDING
    ready_replicas: int = 0
    connection_secret: str = ""
    """The Secret with the connection, once its password was generated. It is never generated again."""


class Cache(
    CustomResource[CacheSpec, CacheStatus],
    group="cache.example.com",
    version="v1",
    columns=(
        Column("Memory", ".spec.maxMemory"),
        Column("Phase", ".status.phase"),
        Column("Message", ".status.message", priority=1),
        AGE,
    ),
):
    """An in-memory cache: one server without persistence, behind a Service, with a password."""
