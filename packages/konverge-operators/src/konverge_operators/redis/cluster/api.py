"""The kind RedisCluster: the spec that users write and the status that the operator reports."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from konverge import CustomResource, Meta, Spec, field
from konverge.objects import QuantityText
from konverge.schema import AGE, IMMUTABLE, Column, Rule
from konverge.workflow import WorkflowStatus
from konverge_operators.redis.cache.api import EvictionPolicy, Resources

__all__ = [
    "ROTATE_PASSWORD",
    "ClusterPhase",
    "NodeStatus",
    "Persistence",
    "Rebalance",
    "RebalanceStatus",
    "RedisCluster",
    "RedisClusterSpec",
    "RedisClusterStatus",
    "SlotsStatus",
    "Storage",
]

ROTATE_PASSWORD = "redis.example.com/rotate-password"
"""The annotation that requests a new password, by any value that it did not have before."""

_OWNED = "bind|port|dir|requirepass|masterauth|aclfile|user|cluster-.*|appendonly|appendfsync|save|maxmemory.*"


class ClusterPhase(StrEnum):
    """The phase of a cluster; `phases.derive_phase` derives it from what is observed."""

    PENDING = "Pending"
    INITIALIZING = "Initializing"
    READY = "Ready"
    SCALING = "Scaling"
    REBALANCING = "Rebalancing"
    UPDATING = "Updating"
    FAILING_OVER = "FailingOver"
    DEGRADED = "Degraded"
    SLOTS_UNCOVERED = "SlotsUncovered"
    FAILED = "Failed"
    DELETING = "Deleting"


class Storage(Spec):
    """The claim of each server."""

    size: QuantityText = "1Gi"
    storage_class_name: str | None = None


class Persistence(Spec):
    """How the servers keep their data over a restart."""

    mode: Literal["AOF", "RDB", "Both", "None"] = "AOF"
    fsync: Literal["always", "everysec", "no"] = "everysec"
    storage: Annotated[Storage, IMMUTABLE] = field(default_factory=Storage)


class Rebalance(Spec):
    """How slots are spread over the shards."""

    auto: bool = True
    """Whether slots move when shards differ; those of a removed shard always do."""
    threshold: Annotated[int, Meta(ge=1, le=100)] = 5
    """By how many percent a shard may differ from its share."""
    max_concurrent: Annotated[int, Meta(ge=1, le=1024)] = 128
    """How many slots move at a time."""
    weights: Annotated[list[Annotated[int, Meta(ge=1, le=100)]], Meta(max_length=100)] = field(default_factory=list)
    """The shares of the shards in turn, relative to each other; 1 for those not listed."""

    def weight_of(self, shard: int) -> int:
        """Return the weight of a shard."""
        return self.weights[shard] if shard < len(self.weights) else 1


class RedisClusterSpec(Spec):
    """The desired state of the cluster."""

    version: Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+){0,2}$")] = "8.1"
    """Version of Valkey, the tag of the image."""
    image: str | None = None
    """Image of the servers; Valkey of the version if not set. It needs redis-server and redis-cli."""
    shards: Annotated[int, Meta(ge=3, le=100)] = 3
    replicas_per_shard: Annotated[int, Meta(ge=0, le=5)] = 1
    """Replicas of each primary. Without any, a lost server makes its slots unavailable."""
    persistence: Persistence = field(default_factory=Persistence)
    rebalance: Rebalance = field(default_factory=Rebalance)
    max_memory: QuantityText | None = None
    """How much each server holds; not limited if not set."""
    max_memory_policy: EvictionPolicy = "noeviction"
    config: Annotated[dict[str, str], Meta(max_length=64)] = field(default_factory=dict)
    """Further options of redis-server."""
    resources: Resources = field(default_factory=Resources)
    suspend: bool = False
    """Change nothing; the status is still kept."""
    deletion_policy: Literal["Retain", "Delete"] = "Retain"
    """Whether the claims of the servers outlive the cluster."""


class NodeStatus(Spec):
    """One server of the cluster."""

    pod: str
    id: str = ""
    shard: int = 0
    role: str = ""
    slots: int = 0
    memory: str = ""
    """Used memory, rounded up to 16Mi."""
    link: str = ""
    """Whether the operator reaches it, and a replica its primary: up or down."""


class SlotsStatus(Spec):
    """The slots of the cluster."""

    assigned: int = 0
    migrating: int = 0


class RebalanceStatus(Spec):
    """The moves that are left, and those that were done since the slots were last balanced."""

    planned: int = 0
    moved: int = 0


class RedisClusterStatus(WorkflowStatus):
    """The observed state of the cluster. The fields after `rebalance` are bookkeeping of the operator."""

    phase: ClusterPhase = ClusterPhase.PENDING
    ready_replicas: int = 0
    connection_secret: str = ""
    """The Secret with the connection, once its password was generated. It is never generated again."""
    nodes: list[NodeStatus] = field(default_factory=list)
    slots: SlotsStatus = field(default_factory=SlotsStatus)
    rebalance: RebalanceStatus = field(default_factory=RebalanceStatus)
    balanced: bool = False
    unsaved: list[str] = field(default_factory=list)
    """Pods whose last write to disk failed."""
    formed: bool = False
    """Whether the cluster was formed; that happens once."""
    forming: list[str] = field(default_factory=list)
    """The ids of the empty nodes that a new cluster is formed of."""
    step: str = ""
    """What is under way, in one word; empty if nothing is."""
    step_message: str = ""


class RedisCluster(
    CustomResource[RedisClusterSpec, RedisClusterStatus],
    group="redis.example.com",
    version="v1",
    short_names=("rdc",),
    rules=(
        Rule(
            f"!has(self.spec.config) || self.spec.config.all(name, !name.matches('^({_OWNED})$'))",
            "config must not have options that the operator sets: bind, port, dir, passwords, cluster-*, append*, save,"
            " maxmemory*",
        ),
    ),
    columns=(
        Column("Shards", ".spec.shards"),
        Column("Ready", ".status.readyReplicas"),
        Column("Slots", ".status.slots.assigned"),
        Column("Phase", ".status.phase"),
        Column("Message", ".status.message", priority=1),
        AGE,
    ),
):
    """A Redis cluster: shards, each a primary with replicas, and 16384 slots spread over them."""
