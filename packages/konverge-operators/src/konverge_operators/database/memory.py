"""An engine in memory, for simulations and tests of the operator: a model of PostgreSQL with Patroni.

It is kept by the claims, as data is on disks: a member whose claim is new is empty. It goes on when it is asked
(`observe`, `write`), from the pods and claims that the server has at that moment, so it needs a client of its own
(`engine.server = cluster.client()`), which is not that of the operator and has no faults.

`violations` says what must never happen: a second initialisation while there is data, a lost acknowledged write, two
pods behind the Service for writes, a password that differs from that of the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from konverge import Client, NotFound
from konverge.k8s.core.v1 import ConfigMap, PersistentVolumeClaim, Pod, Secret, Service
from konverge.objects import now
from konverge_operators.database.api import Database
from konverge_operators.database.engine import (
    ArchiveState,
    EngineError,
    Login,
    Major,
    Member,
    MemberTemplate,
    ObservedMembers,
    Permission,
    SecretNames,
    Target,
)
from konverge_operators.database.facts import is_pod_ready
from konverge_operators.database.memory_backups import BackupModel, job_container
from konverge_operators.database.names import claim_name, ordinal_of, read_write_service, secrets_of, selector_of
from konverge_operators.manifests import Json

__all__ = ["InMemoryEngine"]

_ROLE = "role"
_TTL = timedelta(seconds=10)
_RESTARTS = frozenset({"max_connections"})
_MAJORS = (
    Major(name="18", newest="18.6", supported_until=date(2030, 11, 14)),
    Major(name="17", newest="17.12", supported_until=date(2029, 11, 8)),
    Major(name="13", newest="13.23", supported_until=date(2025, 11, 13)),
)


@dataclass
class _Disk:
    """The data on one claim: the number of writes that it has, and the parameters that its member runs with."""

    writes: int = 0
    timeline: int = 1
    parameters: dict[str, str] = field(default_factory=dict)


@dataclass
class _Cluster:
    """One database. `disks` are by the uid of the claim, `members` by the name of the pod: which claim it has."""

    initialized: bool = False
    disks: dict[str, _Disk] = field(default_factory=dict)
    members: dict[str, str] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    starts: dict[str, str] = field(default_factory=dict)
    primary: str = ""
    lost_at: datetime | None = None
    commits: int = 0
    config: Json = field(default_factory=dict)
    passwords: dict[str, str] = field(default_factory=dict)
    """Those that the data has: of the Secrets at the initialisation, and of logins."""
    certificates: dict[str, str] = field(default_factory=dict)
    """The SHA-256 of the certificate that each member serves."""

    def disk(self, member: str) -> _Disk | None:
        return self.disks.get(self.members.get(member, ""))


@dataclass
class InMemoryEngine:
    """The engine. The fields are what a simulation compares between its runs."""

    violations: list[str] = field(default_factory=list)
    initializations: dict[str, int] = field(default_factory=dict)
    writes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.server: Client | None = None
        self.backups = BackupModel(self.violations)
        self._clusters: dict[str, _Cluster] = {}

    # What the operator is told

    @property
    def name(self) -> str:
        return "postgresql"

    @property
    def majors(self) -> Sequence[Major]:
        return _MAJORS

    @property
    def denied_parameters(self) -> Mapping[str, str]:
        return {"port": "the operator sets it"}

    @property
    def operator_permissions(self) -> Sequence[Permission]:
        return ((ConfigMap, ("get", "patch"), ""),)

    def render(self, database: Database, version: str, secrets: SecretNames) -> MemberTemplate:
        password = {"secretKeyRef": {"name": secrets.superuser, "key": "password"}}
        probe = {"tcpSocket": {"port": 5432}}
        container: Json = {
            "image": f"memory:{version}",
            "ports": [{"name": "database", "containerPort": 5432}],
            "env": [{"name": "PASSWORD", "valueFrom": password}],
            **dict.fromkeys(("startupProbe", "readinessProbe", "livenessProbe"), probe),
        }
        rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"]}
        return MemberTemplate(
            container=container,
            port=5432,
            config={"name": database.name},
            metrics_port="database",
            role_rules=[rule],
            primary_labels={_ROLE: "primary"},
            replica_labels={_ROLE: "replica"},
        )

    def usernames(self, database: Database) -> Mapping[str, str]:
        owner = database.spec.owner
        return {"superuser": "root", "replication": "standby", "application": owner, "alternate": f"{owner}_2"}

    def connection(self, database: Database, host: str, login: Login) -> dict[str, str]:
        name = database.spec.database
        uri = f"memory://{login.username}:{login.password}@{host}:5432/{name}"
        fixed = {"type": "memory", "host": host, "port": "5432", "database": name, "uri": uri}
        return {**fixed, "username": login.username, "password": login.password}

    def member_changed(self, before: Pod, after: Pod) -> bool:  # noqa: ARG002
        return False  # its members write nothing

    # Backups

    def render_backup(self, database: Database, version: str, secrets: SecretNames) -> Json:  # noqa: ARG002
        return job_container(version)

    def render_deletion(self, version: str) -> Json:
        return job_container(version)

    def render_recovery(self, database: Database, version: str, secrets: SecretNames) -> Json:  # noqa: ARG002
        return job_container(version)

    async def observe_archive(self, target: Target) -> ArchiveState:  # noqa: ARG002
        return ArchiveState()

    # Requests

    async def observe(self, target: Target) -> ObservedMembers:
        cluster = await self._advance(target.database)
        wanted = _config_of(target.database)
        members = tuple(_member(cluster, pod, wanted) for pod in target.pods)
        is_current = cluster.config == wanted
        return ObservedMembers(cluster.initialized, members, cluster.primary, is_current)

    async def configure(self, target: Target) -> None:
        cluster = await self._advance(target.database)
        _require_primary(cluster)
        cluster.config = _config_of(target.database)

    async def switchover(self, target: Target, to: str) -> None:
        cluster = await self._advance(target.database)
        disk = cluster.disk(to)
        if cluster.primary == to:
            return
        if disk is None or to not in cluster.running or disk.writes < cluster.commits:
            raise EngineError(f"{to} cannot become the primary")
        self._promote(cluster, to)
        await self._label(target.database, cluster)

    async def restart(self, target: Target, member: str) -> None:
        cluster = await self._advance(target.database)
        if (disk := cluster.disk(member)) is not None:
            disk.parameters = dict(cluster.config.get("parameters", {}))

    async def rebuild(self, target: Target, member: str) -> None:
        cluster = await self._advance(target.database)
        _require_primary(cluster)
        cluster.disks.pop(cluster.members.get(member, ""), None)

    async def set_login(self, target: Target, login: Login) -> None:
        cluster = await self._advance(target.database)
        _require_primary(cluster)
        cluster.passwords[login.username] = login.password

    async def delete_login(self, target: Target, username: str) -> None:
        cluster = await self._advance(target.database)
        _require_primary(cluster)
        cluster.passwords.pop(username, None)

    async def reload_certificate(self, target: Target, member: str, digest: str) -> bool:
        cluster = await self._advance(target.database)
        if member not in cluster.running:
            raise EngineError(f"{member} does not run")
        cluster.certificates[member] = digest
        return True

    async def forget(self, target: Target) -> None:
        self._clusters.pop(str(target.database.key), None)

    # What a test does

    async def write(self, database: Database) -> bool:
        """Write once as the application does, with the login of its Secret; report whether it was acknowledged."""
        cluster = await self._advance(database)
        disk = cluster.disk(cluster.primary)
        if disk is None:
            return False
        secret = await self._server.get(Secret, secrets_of(database).application, namespace=database.namespace)
        username, password = secret.data["username"].decode(), secret.data["password"].decode()
        if cluster.passwords.get(username) != password:
            self.violations.append(f"{database.key}: the login of the Secret is not valid")
            return False
        disk.writes += 1
        cluster.commits = disk.writes
        _replicate(cluster)
        self.writes[str(database.key)] = disk.writes
        return True

    def primary_of(self, database: Database) -> str:
        return self._cluster(database).primary

    def timeline_of(self, database: Database) -> int:
        """Return how often a primary was chosen. It is not observed: faults may well change it."""
        cluster = self._cluster(database)
        disk = cluster.disk(cluster.primary)
        return disk.timeline if disk is not None else 0

    def certificates_of(self, database: Database) -> dict[str, str]:
        return dict(self._cluster(database).certificates)

    def logins_of(self, database: Database) -> set[str]:
        return set(self._cluster(database).passwords)

    # The model

    @property
    def _server(self) -> Client:
        assert self.server is not None, "set engine.server to a client of the cluster"
        return self.server

    def _cluster(self, database: Database) -> _Cluster:
        return self._clusters.setdefault(str(database.key), _Cluster())

    async def _advance(self, database: Database) -> _Cluster:
        """Bring the model to the pods and claims of this moment."""
        cluster, labels = self._cluster(database), selector_of(database)
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        pods = list(await self._server.list(Pod, namespace=database.namespace, labels=selector))
        claims = await self._server.list(PersistentVolumeClaim, namespace=database.namespace, labels=selector)
        uids = {one.name: one.uid for one in claims}
        ready = sorted((pod for pod in pods if is_pod_ready(pod)), key=lambda one: ordinal_of(one.name))
        cluster.members = {pod.name: uids.get(claim_name(database, ordinal_of(pod.name)), "") for pod in ready}
        cluster.disks = {uid: disk for uid, disk in cluster.disks.items() if uid in uids.values()}
        cluster.running = list(cluster.members)
        await self.backups.advance(self._server, database, cluster.commits, has_data=bool(cluster.disks))
        for pod in ready:
            self._start(cluster, pod)
        await self._follow(database, cluster)
        await self._label(database, cluster)
        await self._check(database, cluster)
        return cluster

    def _start(self, cluster: _Cluster, pod: Pod) -> None:
        """Let a pod that is new start with the parameters of the cluster."""
        disk = cluster.disk(pod.name)
        if cluster.starts.get(pod.name) != pod.uid and disk is not None:
            disk.parameters = dict(cluster.config.get("parameters", {}))
        cluster.starts[pod.name] = pod.uid

    async def _follow(self, database: Database, cluster: _Cluster) -> None:
        if cluster.primary and cluster.disk(cluster.primary) is None:
            cluster.primary, cluster.lost_at = "", now()
        if not cluster.initialized and cluster.running:
            await self._initialize(database, cluster, cluster.running[0])
        if not cluster.primary and cluster.initialized:
            self._elect(cluster)
        _replicate(cluster)

    async def _initialize(self, database: Database, cluster: _Cluster, member: str) -> None:
        key = str(database.key)
        if cluster.disks:
            self.violations.append(f"{key}: initialised over existing data")
        restored = self.backups.restored.get(database.uid)
        if database.spec.recovery is not None and restored is None:
            self.violations.append(f"{key}: initialised without its recovery")
        cluster.commits = restored or 0
        cluster.initialized, cluster.primary = True, member
        cluster.config = _config_of(database)
        cluster.disks[cluster.members[member]] = _Disk(cluster.commits, parameters=dict(database.spec.parameters))
        cluster.passwords = await self._stored_passwords(database)
        self.initializations[key] = self.initializations.get(key, 0) + 1

    def _elect(self, cluster: _Cluster) -> None:
        """Let the member with the most data lead, once the old primary is gone for long enough."""
        if cluster.lost_at is not None and now() - cluster.lost_at < _TTL:
            return
        found = [(disk.writes, -ordinal_of(name), name) for name in cluster.running if (disk := cluster.disk(name))]
        if found and max(found)[0] >= cluster.commits:  # as maximum_lag_on_failover: 0
            self._promote(cluster, max(found)[2])

    def _promote(self, cluster: _Cluster, member: str) -> None:
        disk = cluster.disk(member)
        assert disk is not None
        disk.timeline += 1
        cluster.primary, cluster.lost_at = member, None

    async def _label(self, database: Database, cluster: _Cluster) -> None:
        """Label the pods: those that lose the role first, so that at no moment two have it."""
        for name in sorted(cluster.running, key=lambda one: one == cluster.primary):
            pod = await self._find_pod(database, name)
            role = "primary" if name == cluster.primary else "replica"
            if pod is not None and (pod.metadata.labels or {}).get(_ROLE) != role:
                change = {"metadata": {"labels": {_ROLE: role}}}
                await self._server.patch(Pod, name, change, namespace=database.namespace)

    async def _find_pod(self, database: Database, name: str) -> Pod | None:
        try:
            return await self._server.get(Pod, name, namespace=database.namespace)
        except NotFound:
            return None

    async def _stored_passwords(self, database: Database) -> dict[str, str]:
        names = secrets_of(database)
        found: dict[str, str] = {}
        for name in (names.superuser, names.replication, names.application):
            secret = await self._server.get(Secret, name, namespace=database.namespace)
            found[secret.data["username"].decode()] = secret.data["password"].decode()
        return found

    async def _check(self, database: Database, cluster: _Cluster) -> None:
        """Check what must hold at every moment."""
        try:
            service = await self._server.get(Service, read_write_service(database), namespace=database.namespace)
        except NotFound:
            return
        selector = ",".join(f"{name}={value}" for name, value in (service.spec.selector or {}).items())
        writable = await self._server.list(Pod, namespace=database.namespace, labels=selector)
        if len(writable) > 1:
            self.violations.append(f"{database.key}: {len(writable)} pods accept writes")
        names = secrets_of(database)
        for name in (names.superuser, names.replication):
            await self._check_password(database, cluster, name)

    async def _check_password(self, database: Database, cluster: _Cluster, name: str) -> None:
        try:
            secret = await self._server.get(Secret, name, namespace=database.namespace)
        except NotFound:
            return
        known = cluster.passwords.get(secret.data["username"].decode())
        if known is not None and known != secret.data["password"].decode():
            self.violations.append(f"{database.key}: the password in {name} is not that of the data")


def _replicate(cluster: _Cluster) -> None:
    """Let each member that runs have what the primary has; an empty one fetches everything."""
    source = cluster.disk(cluster.primary)
    if source is None:
        return
    for name in cluster.running:
        disk = cluster.disks.setdefault(cluster.members[name], _Disk(parameters=dict(source.parameters)))
        disk.writes, disk.timeline = source.writes, source.timeline


def _config_of(database: Database) -> Json:
    return {"parameters": dict(database.spec.parameters), "synchronous": database.spec.synchronous}


def _member(cluster: _Cluster, pod: Pod, wanted: Json) -> Member:
    disk = cluster.disk(pod.name)
    if disk is None or pod.name not in cluster.running:
        return Member(pod.name)
    is_primary = pod.name == cluster.primary
    pending = any(disk.parameters.get(name) != wanted["parameters"].get(name) for name in _RESTARTS)
    return Member(
        pod.name,
        role="primary" if is_primary else "replica",
        state="running" if is_primary else "streaming" if cluster.primary else "starting",
        healthy=bool(cluster.primary),
        lag=None if is_primary else cluster.commits - disk.writes,
        pending_restart=pending and cluster.config == wanted,
        synchronous=not is_primary and cluster.config.get("synchronous") != "off",
    )


def _require_primary(cluster: _Cluster) -> None:
    if not cluster.primary:
        raise EngineError("no member accepts writes")
