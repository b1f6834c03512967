"""The kind Database: the spec that users write and the status that the operator reports."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from konverge import Condition, CustomResource, Meta, Spec, Status, field
from konverge.objects import QuantityText
from konverge.schema import AGE, IMMUTABLE, Column, Rule, Scale

__all__ = [
    "MAX_REPLICAS",
    "S3",
    "Backup",
    "Database",
    "DatabaseSpec",
    "DatabaseStatus",
    "Destination",
    "LastBackup",
    "LastReady",
    "MemberStatus",
    "Phase",
    "Recovery",
    "RecoverySource",
    "Resources",
    "Rotation",
    "Scheduling",
    "Synchronous",
    "Tls",
    "Toleration",
    "Upgrade",
]

MAX_REPLICAS = 9

Identifier = Annotated[str, Meta(pattern="^[a-z_][a-z0-9_]{0,62}$"), IMMUTABLE]
Synchronous = Literal["off", "on", "strict"]

_NO_DOWNGRADE = Rule(
    "self.split('.')[0] != oldSelf.split('.')[0] || self.split('.').size() < 2 || oldSelf.split('.').size() < 2"
    " || int(self.split('.')[1]) >= int(oldSelf.split('.')[1])",
    message="the version cannot be lowered",
)
_NO_OLDER_RELEASE = Rule(
    "self.split('.').size() < 3 || oldSelf.split('.').size() < 3 || self.split('.')[0] != oldSelf.split('.')[0]"
    " || self.split('.')[1] != oldSelf.split('.')[1] || int(self.split('.')[2]) >= int(oldSelf.split('.')[2])",
    message="the version cannot be lowered",
)
Version = Annotated[
    str, Meta(pattern=r"^[0-9]{1,4}(\.[0-9]{1,4}){0,2}$", max_length=14), _NO_DOWNGRADE, _NO_OLDER_RELEASE
]
_GROWS = Rule(
    "quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0", message="the storage cannot become smaller"
)
_QUANTITY = Rule("quantity(string(self)).isGreaterThan(quantity('0'))", message="the size must be above 0")
_STRICT = Rule(
    "self.synchronous != 'strict' || self.replicas >= 2",
    message="synchronous: strict needs 2 replicas or more: a single one would accept no write",
    field_path=".replicas",
)
_SAME_CLASS = Rule(
    "has(self.storageClassName) == has(oldSelf.storageClassName)", message="storageClassName cannot be changed"
)
_ONE_DESTINATION = Rule("has(self.claim) != has(self.s3)", message="set either claim or s3")
_ONE_SOURCE = Rule(
    "has(self.fromBackup) != has(self.fromDestination)", message="set either fromBackup or fromDestination"
)
_AT_CREATION = Rule(
    "has(self.recovery) == has(oldSelf.recovery)", message="recovery can be set at the creation only, and stays"
)
_MARIADB = (
    Rule(
        "self.engine != 'mariadb' || self.replicas % 2 == 1",
        message="mariadb needs an odd number of replicas: with an even one the loss of half of them ends the quorum",
        field_path=".replicas",
    ),
    Rule(
        "self.engine != 'mariadb' || self.synchronous != 'strict'",
        message="mariadb always replicates a write before it is acknowledged: set synchronous to off or on",
        field_path=".synchronous",
    ),
)
"""What the engine cannot do is refused by the API server, not found out later."""


class Phase(StrEnum):
    """The phase of a database; `phases.derive_phase` derives it from what is observed."""

    PENDING = "Pending"
    CREATING = "Creating"
    RESTORING = "Restoring"
    READY = "Ready"
    UPDATING = "Updating"
    SCALING = "Scaling"
    EXPANDING = "Expanding"
    FAILING_OVER = "FailingOver"
    DEGRADED = "Degraded"
    FAILED = "Failed"
    HIBERNATED = "Hibernated"
    DELETING = "Deleting"


class Resources(Spec):
    """Compute resources of each member: requests and limits."""

    requests: dict[str, QuantityText] = field(default_factory=dict)
    limits: dict[str, QuantityText] = field(default_factory=dict)


class Toleration(Spec):
    """A taint of nodes that the pods tolerate."""

    key: str | None = None
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = None


class Scheduling(Spec):
    """Where the members run. They are spread over the domains of `spreadBy`."""

    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: list[Toleration] = field(default_factory=list)
    priority_class_name: str | None = None
    spread_by: Annotated[str, Meta(min_length=1)] = "kubernetes.io/hostname"
    """The label of nodes whose values are the domains."""


class S3(Spec):
    """A bucket of an S3-compatible store."""

    endpoint: Annotated[str, Meta(pattern="^https?://[^/ ]+/?$", max_length=253)]
    """The URL of the store, without the bucket."""
    bucket: Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")]
    secret_name: Annotated[str, Meta(min_length=1, max_length=253)]
    """A Secret with the keys AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."""
    prefix: Annotated[str, Meta(pattern="^[A-Za-z0-9._/-]*$", max_length=512)] = ""
    region: Annotated[str, Meta(pattern="^[a-z0-9-]+$", max_length=63)] = "us-east-1"


class Destination(Spec, rules=(_ONE_DESTINATION,)):
    """Where backups are: a claim of the namespace, or a bucket."""

    claim: Annotated[str, Meta(min_length=1, max_length=253)] | None = None
    s3: S3 | None = None


class Backup(Spec):
    """Base backups on a schedule and, with `wal`, the log between them, so that any time can be restored."""

    enabled: bool = False
    schedule: Annotated[str, Meta(min_length=1, max_length=100)] = "0 2 * * *"
    """As in a CronJob."""
    time_zone: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    retention: Annotated[str, Meta(pattern="^[1-9][0-9]{0,3}[hdw]$")] = "7d"
    """For how long any time can be restored: hours, days or weeks. The last good backup is never deleted."""
    destination: Destination | None = None
    """The claim `<name>-backup` if not set: it is lost together with the cluster."""
    wal: bool = True
    """Whether the log is archived. Without it, only the times of backups can be restored."""


class Tls(Spec):
    """TLS for clients and between members, with certificates that the operator creates and renews."""

    enabled: Annotated[bool, IMMUTABLE] = False
    """Connections without TLS are refused."""


class RecoverySource(Spec, rules=(_ONE_DESTINATION,)):
    """The destination of the backups of a database that need not exist any more."""

    claim: Annotated[str, Meta(min_length=1, max_length=253)] | None = None
    s3: S3 | None = None
    database: Annotated[str, Meta(min_length=1, max_length=253)] | None = None
    """The name of that Database; the name of the new one if not set."""


class Recovery(Spec, rules=(_ONE_SOURCE,)):
    """What a new database is restored from."""

    from_backup: Annotated[str, Meta(min_length=1, max_length=253)] | None = None
    """A DatabaseBackup of the namespace."""
    from_destination: RecoverySource | None = None
    target_time: datetime | None = None
    """The time to restore: the end of the archived log if not set."""


class DatabaseSpec(Spec, rules=(_STRICT, _SAME_CLASS, _AT_CREATION, *_MARIADB)):
    """The desired state of the database."""

    version: Version
    """Major or major.minor; a major alone means its newest minor that the operator knows.

    A higher major upgrades the data. A lower one than that of the data is refused by the operator.
    """
    storage_size: Annotated[QuantityText, _QUANTITY, _GROWS] = "1Gi"
    """Size of the claim of each member. It may only grow."""
    engine: Annotated[Literal["postgresql", "mariadb"], IMMUTABLE] = "postgresql"
    replicas: Annotated[int, Meta(ge=1, le=MAX_REPLICAS)] = 1
    """Number of members. 1 means no failover."""
    storage_class_name: Annotated[str | None, IMMUTABLE] = None
    """The cluster's default class if not set."""
    resources: Resources = field(default_factory=Resources)
    scheduling: Scheduling = field(default_factory=Scheduling)
    parameters: dict[str, str] = field(default_factory=dict)
    """Settings of the engine. Those that the operator owns are refused."""
    database: Identifier = "app"
    """Name of the application's database."""
    owner: Identifier = "app"
    """The role that owns it, and that the application logs in as. It is no superuser."""
    synchronous: Synchronous = "off"
    """on: a commit waits for a replica while there is one. strict: always, so no committed write is ever lost."""
    backup: Backup = field(default_factory=Backup)
    tls: Tls = field(default_factory=Tls)
    recovery: Annotated[Recovery | None, IMMUTABLE] = None
    """Restore the data of another database at the creation, never in place."""
    suspend: bool = False
    """Change nothing; the status is still kept."""
    hibernate: bool = False
    """Stop all members and keep their data."""
    deletion_policy: Literal["Retain", "Delete"] = "Retain"
    """Whether the claims and the credentials outlive the object."""


class MemberStatus(Spec):
    """The observed state of one member."""

    name: str
    role: str = ""
    state: str = ""
    timeline: int | None = None
    lag: int | None = None
    """Bytes that a replica is behind; absent when it is not known."""


class LastReady(Spec):
    """What the database was when it was last ready: the memory that a change is compared with."""

    replicas: int = 0
    revision: str = ""
    """Hash of the pod template."""


class Rotation(Spec):
    """A password rotation: the last request, and since when the old password has been replaced."""

    request: str = ""
    """The value of the annotation that was last handled, or is being handled."""
    replaced: str = ""
    """The login that is still valid beside the new one; "" when there is none."""
    since: datetime | None = None


class LastBackup(Spec):
    """The newest backup that has succeeded."""

    name: str = ""
    time: datetime | None = None
    """Its end: the first time that can be restored from it."""
    size: int = 0
    """Bytes at the destination."""
    duration: int = 0
    """Seconds, with the verification."""


class Upgrade(Spec):
    """A major upgrade: how far it is, and the last one that has failed."""

    stage: Literal["", "BackingUp", "Stopping", "Stopped", "Starting"] = ""
    previous: str = ""
    """The major version whose data is kept until all members run the new one."""
    backup: str = ""
    """The DatabaseBackup that is made before; in the stage Starting that which is made after. "" without backups."""
    attempt: str = ""
    """The request that has failed; it is not tried again. "" when none has."""
    message: str = ""
    """Why it has failed."""


class DatabaseStatus(Status):
    """The observed state of the database. The fields after `selector` are memory of the operator."""

    phase: Phase = Phase.PENDING
    message: str = ""
    observed_generation: int = 0
    conditions: list[Condition] = field(default_factory=list)
    primary: str = ""
    """The pod that accepts writes; "" when there is none."""
    ready_replicas: int = 0
    replicas: int = 0
    version: str = ""
    """The version that all members run."""
    storage: str = ""
    """The smallest capacity of the members' claims."""
    connection_secret: str = ""
    last_backup: LastBackup = field(default_factory=LastBackup)
    recoverable_from: datetime | None = None
    recoverable_to: datetime | None = None
    """Any time between these two can be restored."""
    members: list[MemberStatus] = field(default_factory=list)
    last_error: str = ""
    retry_count: int = 0
    selector: str = ""
    """Label selector of the pods, for autoscalers."""
    credentials_created: bool = False
    """Whether the Secrets were created once: they are never created again."""
    initialized: bool = False
    """Whether the members were initialised once: never again."""
    restored_at: datetime | None = None
    """When `recovery` was done: never again."""
    last_ready: LastReady = field(default_factory=LastReady)
    last_replicas: int = 0
    """How many members were last started: after a hibernation all of them start, since any may have the newest data."""
    primary_lost_at: datetime | None = None
    switchover_from: str = ""
    """The primary when a switchover was requested; "" when none is requested."""
    rotation: Rotation = field(default_factory=Rotation)
    upgrade: Upgrade = field(default_factory=Upgrade)
    certificate: str = ""
    """SHA-256 of the certificate that all members serve; "" without TLS."""


class Database(
    CustomResource[DatabaseSpec, DatabaseStatus],
    group="example.com",
    version="v1",
    short_names=("db",),
    scale=Scale(status_replicas=".status.replicas", selector=".status.selector"),
    columns=(
        Column("Version", ".spec.version"),
        Column("Replicas", ".spec.replicas"),
        Column("Ready", ".status.readyReplicas"),
        Column("Primary", ".status.primary"),
        Column("Phase", ".status.phase"),
        Column("Message", ".status.message", priority=1),
        AGE,
    ),
):
    """A database with replication and failover."""
