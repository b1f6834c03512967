"""The engine of a database: everything that the operator does not know about PostgreSQL, or another one, itself.

The reconciler creates the objects, counts the members, orders every step and writes the status. It asks an `Engine`
for the rest. To add an engine, write a class with these attributes and methods, add its name to `DatabaseSpec.engine`
and pass it to `new_operator`; the reconciler does not change.

What the reconciler promises to an engine:

- The members are the pods of one StatefulSet, `<name>-0`, `<name>-1`, ..., each with a claim that is mounted at
  `MemberTemplate.data_path` and that is never deleted while the Database exists.
- `<name>-0` runs alone until `ObservedMembers.initialized` was true once. Further members are added one by one, each
  when those before it are healthy. After a hibernation all members that had data start together.
- The three Secrets exist before the first pod and their content is never generated a second time.
- A member is stopped on purpose only if it is no primary, or the only member. `switchover` is called first.
- Every request is repeated until the next observation shows that it was done, also after a crash of the operator. So
  requests must be idempotent: return without an error when there is nothing left to do.
- Requests about one database come one after the other, and only from the leader of the operator.

What an engine promises to the reconciler:

- It decides alone who the primary is, also while the operator is down. Never do two members accept writes.
- It initialises a cluster once, and marks that outside of the claims, where it outlives the pods. An empty claim of a
  cluster that is initialised is filled from the primary, never initialised.
- It labels the pod of the primary with `MemberTemplate.primary_labels` and those of replicas with `replica_labels`, and
  removes them from a member that is neither; the Services select by them.
- `render` is pure: the same Database yields the same result. A change of the result replaces the pods one by one.
- A method that cannot reach a member raises `EngineError`; `observe` reports such a member as unknown instead.

Backups are made by the program `konverge_operators.database.archive` in the image of the members, or by a tool that an
engine prefers. Where a destination is has one form, the environment that `backups.destinations` renders: ARCHIVE_URL,
ARCHIVE_PATH and the credentials. Containers of Jobs have it, and those of members while the log is archived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal, Protocol, TypeAlias

from konverge import Client, KonvergeError
from konverge.k8s.core.v1 import Pod
from konverge.objects import Kind, Resource
from konverge_operators.database.api import Database
from konverge_operators.manifests import Json

__all__ = [
    "ArchiveState",
    "Engine",
    "EngineError",
    "Failure",
    "Login",
    "Major",
    "Member",
    "MemberCalls",
    "MemberTemplate",
    "ObservedMembers",
    "Permission",
    "Response",
    "Role",
    "SecretNames",
    "Target",
]

Role: TypeAlias = Literal["primary", "replica", "unknown"]
Permission: TypeAlias = tuple[type[Resource] | Kind, tuple[str, ...], str]
"""A kind, the verbs that the *operator* needs for it on behalf of the engine, and the subresource or "":
`(ConfigMap, ("get", "patch"), "")`.
"""


class EngineError(KonvergeError):
    """A member did not do what it was asked for, or cannot be reached. The reconciler reports it and tries again."""


@dataclass(frozen=True, kw_only=True)
class Major:
    """One major version of the engine.

    `newest` is the version that "18" alone means. Any other minor of a known major is accepted too.
    """

    name: str
    newest: str
    supported_until: date
    upgrades_from: tuple[str, ...] = ()
    """The majors whose data can be upgraded to this one."""


@dataclass(frozen=True)
class SecretNames:
    """The Secrets of a database: `superuser` and `replication` have username and password, `application` has the keys
    of servicebinding.io (type, host, port, username, password, database, uri).
    """

    superuser: str
    replication: str
    application: str


@dataclass(frozen=True, kw_only=True)
class MemberTemplate:
    """What the members of a database are made of.

    The reconciler adds the security context (non-root `user`, read-only root, no capabilities), the mounts of `data`,
    `config` and /tmp, resources, spreading and scheduling to `container`.
    """

    container: Json
    """The container `database`: image, command, env, ports (the first one is for clients), startup, readiness and
    liveness probes, lifecycle. A member is ready when it serves: the primary writes, a replica reads.
    """
    port: int
    """The port for clients, of the Services too."""
    config: dict[str, str] = field(default_factory=dict)
    """The ConfigMap `<name>-engine`, mounted at `config_path`: files by name. A change replaces the pods, so leave
    out what `configure` changes in place.
    """
    config_path: str = "/etc/database"
    data_path: str = "/var/lib/database"
    member_ports: tuple[int, ...] = ()
    """Further ports that members and the operator reach, such as a REST API."""
    metrics_port: str = ""
    """The name of the container's port whose /metrics Prometheus scrapes; "" if there is none."""
    volumes: list[Json] = field(default_factory=list)
    init_containers: list[Json] = field(default_factory=list)
    """Steps before the container, with the same mounts of `data` and `config`."""
    role_rules: list[Json] = field(default_factory=list)
    """Rules of the Role of the members' service account. Empty: the pods get no token."""
    primary_labels: dict[str, str] = field(default_factory=dict)
    replica_labels: dict[str, str] = field(default_factory=dict)
    pod_annotations: dict[str, str] = field(default_factory=dict)
    user: int = 999
    grace_period: int = 120


@dataclass(frozen=True)
class Member:
    """What is known of one member. `healthy` says whether it serves: a replica only while it follows the primary."""

    name: str
    """The name of its pod."""
    role: Role = "unknown"
    state: str = "unknown"
    """The engine's word, for people: running, streaming, starting, stopped, ..."""
    healthy: bool = False
    timeline: int | None = None
    lag: int | None = None
    pending_restart: bool = False
    """Whether a changed parameter waits for a restart of this member."""
    synchronous: bool = False
    """Whether a commit on the primary waits for this replica."""
    version: str = ""
    """The version that runs, if it is known."""


@dataclass(frozen=True)
class Failure:
    """What members cannot repair by themselves: the reason in one word, and a message that says what to do."""

    reason: str
    message: str


@dataclass(frozen=True)
class ObservedMembers:
    """What is known of all members of a database."""

    initialized: bool = False
    """Whether the engine's own mark says that the cluster was initialised, whether or not anything runs now."""
    members: tuple[Member, ...] = ()
    primary: str = ""
    """The member that accepts writes now, or "". At most one."""
    config_current: bool = True
    """Whether the parameters that can change in place, and `synchronous`, are those of the spec."""
    major: str = ""
    """The major version of the data, by the engine's own mark; "" before there is any."""
    switchover_pending: bool = False
    """Whether a switchover was requested and is not done."""
    failure: Failure | None = None
    """Why the members do not become healthy, if they say so: the database is Degraded for that reason."""

    def member(self, name: str) -> Member:
        """Return a member; one of which nothing is known is unknown."""
        return next((one for one in self.members if one.name == name), Member(name))


@dataclass(frozen=True, kw_only=True)
class Target:
    """The database that a call is about: the object, its resolved version, and its pods as the cache has them.

    `pods` are those that exist, ready or not, by ordinal. `client` reads and writes on the server, with the permissions
    of the operator.
    """

    database: Database
    version: str
    pods: Sequence[Pod]
    secrets: SecretNames
    client: Client

    @property
    def name(self) -> str:
        return self.database.name

    @property
    def namespace(self) -> str:
        return self.database.namespace


@dataclass(frozen=True)
class Login:
    """A role that the application logs in as, with the rights of the owner."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Response:
    """The answer of a member to an HTTP request."""

    status: int
    body: bytes = b""


@dataclass(frozen=True)
class ArchiveState:
    """What is known of the archived log: until when it is complete, and why it does not go on, or ""."""

    archived_at: datetime | None = None
    error: str = ""


class MemberCalls(Protocol):
    """HTTP requests to members: the seam that tests of an engine replace."""

    async def send(self, pod: Pod, port: int, method: str, path: str, body: bytes = b"") -> Response:
        """Send a request to a port of a pod.

        Raises: EngineError when the pod has no address or does not answer in time.
        """
        ...


class Engine(Protocol):
    """One engine. The in-memory engine of the simulation and PostgreSQL with Patroni implement it.

    `operator_permissions` are what its methods need of `Target.client`.
    """

    @property
    def name(self) -> str: ...
    @property
    def majors(self) -> Sequence[Major]: ...
    @property
    def operator_permissions(self) -> Sequence[Permission]: ...

    # Pure

    def find_violation(self, database: Database) -> str:
        """Return what the engine refuses in a spec beside its version, or "".

        That are parameters which the engine owns, and what it cannot do.
        """
        ...

    def render(self, database: Database, version: str, secrets: SecretNames) -> MemberTemplate:
        """Return what the members of a database in a version are made of."""
        ...

    def usernames(self, database: Database) -> Mapping[str, str]:
        """Return the user names of the Secrets `superuser` and `replication`, and of `application` and `alternate`.

        The last two are the logins of the application, which password rotations use in turns.
        """
        ...

    def connection(self, database: Database, host: str, login: Login) -> dict[str, str]:
        """Return the content of the application's Secret: the keys of servicebinding.io."""
        ...

    def member_changed(self, before: Pod, after: Pod) -> bool:
        """Report whether a member has written something new about itself into its pod.

        The reconciler sees changes of labels, conditions and containers by itself. It must leave out what changes all
        the time: a reconcile follows.
        """
        ...

    def render_upgrade(self, database: Database, major: str, version: str) -> Json:
        """Return the container that writes the data of a version beside that of a major: image, command, env.

        The claim of the first member is mounted at `MemberTemplate.data_path`. It never changes the old data, and
        checks the new by a query before it ends with success. A second run starts anew. Its last message is passed to
        `finish_upgrade`, or says why it failed.
        """
        ...

    # Backups. Each container ends with an exit code, and with a message of why it failed.

    def render_backup(self, database: Database, version: str, secrets: SecretNames) -> Json:
        """Return the container that writes the backup BACKUP_NAME and verifies it: image, command, env.

        A second run after the end does nothing, one after a crash starts anew. The message of a success is JSON with
        `size` in bytes, and `started` and `completed`.
        """
        ...

    def render_deletion(self, version: str) -> Json:
        """Return the container that deletes the backup BACKUP_NAME, and the log that no other backup needs."""
        ...

    def render_recovery(self, database: Database, version: str, secrets: SecretNames) -> Json:
        """Return the container that fills the empty claim of the first member, mounted at `MemberTemplate.data_path`.

        It restores the backup BACKUP_NAME, or the best one if that is empty, up to `recovery.targetTime`, sets the
        passwords of the Secrets, and checks the result by a query. It never changes a claim that has other data.
        """
        ...

    async def observe_archive(self, target: Target) -> ArchiveState:
        """Return what the primary knows of the archived log."""
        ...

    # Members

    async def observe(self, target: Target) -> ObservedMembers:
        """Return what is known of the members. It changes nothing, and must be quick: it is called in each reconcile.

        Raises: EngineError when not even the engine's own mark can be read. Then nothing is changed.
        """
        ...

    async def configure(self, target: Target) -> None:
        """Bring what can change in place to the spec: parameters, `synchronous`. Called unless `config_current`."""
        ...

    async def switchover(self, target: Target, to: str) -> None:
        """Ask the primary to hand over to a replica. It need not be done on return."""
        ...

    async def restart(self, target: Target, member: str) -> None:
        """Restart the engine of a member in place, for parameters that need it. The pod stays."""
        ...

    async def rebuild(self, target: Target, member: str) -> None:
        """Let a replica fetch all data from the primary again."""
        ...

    async def set_login(self, target: Target, login: Login) -> None:
        """Create a login with the rights of the owner, or change its password."""
        ...

    async def delete_login(self, target: Target, username: str) -> None:
        """Make a login invalid. One that does not exist is no error."""
        ...

    async def reload_certificate(self, target: Target, member: str, digest: str) -> bool:
        """Let a member serve the certificate with this SHA-256, without a restart; report whether it does.

        A member that does not have the renewed files yet does not: the kubelet takes a minute to update them.
        """
        ...

    async def finish_upgrade(self, target: Target, message: str) -> None:
        """Let the data that an upgrade to the version has written belong to the members, in one write.

        No member runs. `message` is the last one of the container of `render_upgrade`.

        Raises: EngineError when the message cannot be read. Then the old data still belongs to the members.
        """
        ...

    async def delete_old_data(self, target: Target, member: str) -> None:
        """Delete the data of earlier major versions in a member that runs."""
        ...

    async def forget(self, target: Target) -> None:
        """Delete what the engine has stored outside of the claims. The data is deleted too, and no pod is left."""
        ...
