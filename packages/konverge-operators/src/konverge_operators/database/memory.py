"""An engine in memory, for simulations and tests of the operator: a model of PostgreSQL with Patroni.

It is kept by the claims, as data is on disks: a member whose claim is new is empty. It goes on when it is asked
(`observe`, `write`), from the pods and claims that the server has at that moment, so it needs a client of its own
(`engine.server = cluster.client()`), which is not that of the operator and has no faults.

`violations` says what must never happen: a second initialisation while there is data, a lost acknowledged write, two
pods behind the Service for writes, a password that differs from that of the data, a member of another major version
than that of the data, or beside the Job of an upgrade. An upgrade fails while `parameters.upgrade` is "fails", a
backup while `parameters.backup` is; "slow" makes one take a minute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from konverge import Client, NotFound
from konverge.k8s.core.v1 import ConfigMap, PersistentVolumeClaim, Pod, Secret, Service
from konverge.objects import now
from konverge_operators.database.api import Database
from konverge_operators.database.engine import (
    ArchiveState,
    EngineError,
    Login,
    Major,
    MemberTemplate,
    ObservedMembers,
    Permission,
    SecretNames,
    Target,
)
from konverge_operators.database.facts import is_pod_ready
from konverge_operators.database.memory_backups import BackupModel, job_container
from konverge_operators.database.memory_model import (
    Cluster,
    Disk,
    config_of,
    first_disk,
    major_of,
    member_of,
    replicate,
    require_primary,
    run_upgrades,
    start_member,
)
from konverge_operators.database.names import claim_name, ordinal_of, read_write_service, secrets_of, selector_of
from konverge_operators.manifests import Json

__all__ = ["InMemoryEngine"]

_ROLE = "role"
_TTL = timedelta(seconds=10)
_MAJORS = (
    Major(name="18", newest="18.6", supported_until=date(2030, 11, 14), upgrades_from=("17",)),
    Major(name="17", newest="17.12", supported_until=date(2029, 11, 8)),
    Major(name="13", newest="13.23", supported_until=date(2025, 11, 13)),
)


@dataclass
class InMemoryEngine:
    """The engine, under the name of a real one. The other fields are what a simulation compares between its runs."""

    name: str = "postgresql"
    violations: list[str] = field(default_factory=list)
    initializations: dict[str, int] = field(default_factory=dict)
    writes: dict[str, int] = field(default_factory=dict)
    upgrades: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.server: Client | None = None
        self.backups = BackupModel(self.violations)
        self._clusters: dict[str, Cluster] = {}

    # What the operator is told

    @property
    def majors(self) -> Sequence[Major]:
        return _MAJORS

    @property
    def operator_permissions(self) -> Sequence[Permission]:
        return ((ConfigMap, ("get", "patch"), ""),)

    def find_violation(self, database: Database) -> str:
        return "parameters.port: the operator sets it" if "port" in database.spec.parameters else ""

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

    def render_upgrade(self, database: Database, major: str, version: str) -> Json:  # noqa: ARG002
        end = "exit 1" if database.spec.parameters.get("upgrade") == "fails" else "exit 0"
        return {"image": f"memory:{version}", "command": ["sh", "-c", f"sleep 2; {end}"]}

    # Backups

    def render_backup(self, database: Database, version: str, secrets: SecretNames) -> Json:  # noqa: ARG002
        return job_container(version, database.spec.parameters.get("backup", ""))

    def render_deletion(self, version: str) -> Json:
        return job_container(version)

    def render_recovery(self, database: Database, version: str, secrets: SecretNames) -> Json:  # noqa: ARG002
        return job_container(version)

    async def observe_archive(self, target: Target) -> ArchiveState:  # noqa: ARG002
        return ArchiveState()

    # Requests

    async def observe(self, target: Target) -> ObservedMembers:
        cluster = await self._advance(target.database)
        wanted = config_of(target.database)
        members = tuple(member_of(cluster, pod, wanted) for pod in target.pods)
        is_current = cluster.config == wanted
        return ObservedMembers(cluster.initialized, members, cluster.primary, is_current, cluster.major)

    async def configure(self, target: Target) -> None:
        cluster = await self._advance(target.database)
        require_primary(cluster)
        cluster.config = config_of(target.database)

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
        require_primary(cluster)
        cluster.disks.pop(cluster.members.get(member, ""), None)

    async def set_login(self, target: Target, login: Login) -> None:
        cluster = await self._advance(target.database)
        require_primary(cluster)
        cluster.passwords[login.username] = login.password

    async def delete_login(self, target: Target, username: str) -> None:
        cluster = await self._advance(target.database)
        require_primary(cluster)
        cluster.passwords.pop(username, None)

    async def reload_certificate(self, target: Target, member: str, digest: str) -> bool:
        cluster = await self._advance(target.database)
        if member not in cluster.running:
            raise EngineError(f"{member} does not run")
        cluster.certificates[member] = digest
        return True

    async def finish_upgrade(self, target: Target, message: str) -> None:  # noqa: ARG002
        cluster, major = await self._advance(target.database), major_of(target.version)
        disk = await first_disk(self._server, target.database, cluster)
        if cluster.major == major:
            return
        if cluster.running or disk is None or disk.others.get(major) != cluster.commits:
            self.violations.append(f"{target.database.key}: upgraded to data that lacks writes")
            return
        backup = f"{target.namespace}/{target.database.status.upgrade.backup}"
        if target.database.spec.backup.enabled and self.backups.stored.get(backup) is None:
            self.violations.append(f"{target.database.key}: upgraded without a backup")
        disk.others[cluster.major], disk.major, cluster.major = disk.writes, major, major
        self.upgrades[str(target.database.key)] = major

    async def delete_old_data(self, target: Target, member: str) -> None:
        cluster = await self._advance(target.database)
        require_primary(cluster)
        if (disk := cluster.disk(member)) is None or disk.writes < cluster.commits:
            raise EngineError(f"{member} lacks data")
        disk.others.clear()

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
        replicate(cluster)
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

    def _cluster(self, database: Database) -> Cluster:
        return self._clusters.setdefault(str(database.key), Cluster())

    async def _advance(self, database: Database) -> Cluster:
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
        await self.backups.advance(self._server, database.namespace, self._clusters)
        self.violations += await run_upgrades(self._server, database, cluster, running=bool(pods))
        for pod in ready:
            if violation := start_member(cluster, pod):
                self.violations.append(violation)
        await self._follow(database, cluster)
        await self._label(database, cluster)
        await self._check(database, cluster)
        return cluster

    async def _follow(self, database: Database, cluster: Cluster) -> None:
        if cluster.primary and cluster.disk(cluster.primary) is None:
            cluster.primary, cluster.lost_at = "", now()
        if not cluster.initialized and cluster.running:
            await self._initialize(database, cluster, cluster.running[0])
        if not cluster.primary and cluster.initialized:
            self._elect(cluster)
        replicate(cluster)

    async def _initialize(self, database: Database, cluster: Cluster, member: str) -> None:
        key = str(database.key)
        if cluster.disks:
            self.violations.append(f"{key}: initialised over existing data")
        restored = self.backups.restored.get(database.uid)
        if database.spec.recovery is not None and restored is None:
            self.violations.append(f"{key}: initialised without its recovery")
        cluster.commits = restored or 0
        cluster.initialized, cluster.primary = True, member
        pod = await self._find_pod(database, member)
        cluster.major = major_of((pod.spec.containers[0].image or "").rpartition(":")[2]) if pod is not None else ""
        cluster.config = config_of(database)
        cluster.disks[cluster.members[member]] = Disk(
            cluster.commits, parameters=dict(database.spec.parameters), major=cluster.major
        )
        cluster.passwords = await self._stored_passwords(database)
        self.initializations[key] = self.initializations.get(key, 0) + 1

    def _elect(self, cluster: Cluster) -> None:
        """Let the member with the most data lead, once the old primary is gone for long enough."""
        if cluster.lost_at is not None and now() - cluster.lost_at < _TTL:
            return
        found = [(disk.writes, -ordinal_of(name), name) for name in cluster.running if (disk := cluster.disk(name))]
        if found and max(found)[0] >= cluster.commits:  # as maximum_lag_on_failover: 0
            self._promote(cluster, max(found)[2])

    def _promote(self, cluster: Cluster, member: str) -> None:
        disk = cluster.disk(member)
        assert disk is not None
        disk.timeline += 1
        cluster.primary, cluster.lost_at = member, None

    async def _label(self, database: Database, cluster: Cluster) -> None:
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

    async def _check(self, database: Database, cluster: Cluster) -> None:
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

    async def _check_password(self, database: Database, cluster: Cluster, name: str) -> None:
        try:
            secret = await self._server.get(Secret, name, namespace=database.namespace)
        except NotFound:
            return
        known = cluster.passwords.get(secret.data["username"].decode())
        if known is not None and known != secret.data["password"].decode():
            self.violations.append(f"{database.key}: the password in {name} is not that of the data")
