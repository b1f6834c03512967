"""The state of the engine in memory: one database, the data on its claims, and what an upgrade does to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from konverge import Client, NotFound
from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod
from konverge_operators.database.api import Database
from konverge_operators.database.engine import EngineError, Member
from konverge_operators.database.names import claim_name
from konverge_operators.database.upgrade_jobs import JobState, upgrade_selector
from konverge_operators.manifests import Json

__all__ = [
    "Cluster",
    "Disk",
    "config_of",
    "first_disk",
    "major_of",
    "member_of",
    "replicate",
    "require_primary",
    "run_upgrades",
    "start_member",
]

_RESTARTS = frozenset({"max_connections"})


@dataclass
class Disk:
    """The data on one claim: the number of writes that it has, and the parameters that its member runs with."""

    writes: int = 0
    timeline: int = 1
    parameters: dict[str, str] = field(default_factory=dict)
    major: str = ""
    """The major version of this data."""
    others: dict[str, int] = field(default_factory=dict)
    """The number of writes that the data of other major versions beside it has."""


@dataclass
class Cluster:
    """One database. `disks` are by the uid of the claim, `members` by the name of the pod: which claim it has."""

    initialized: bool = False
    disks: dict[str, Disk] = field(default_factory=dict)
    members: dict[str, str] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    starts: dict[str, str] = field(default_factory=dict)
    primary: str = ""
    lost_at: datetime | None = None
    commits: int = 0
    config: Json = field(default_factory=dict)
    passwords: dict[str, str] = field(default_factory=dict)
    """Those that the data has: of the Secrets at the initialisation, and of logins."""
    major: str = ""
    jobs: set[str] = field(default_factory=set)
    """The Jobs of upgrades that have taken effect, by uid."""
    certificates: dict[str, str] = field(default_factory=dict)
    """The SHA-256 of the certificate that each member serves."""

    def disk(self, member: str) -> Disk | None:
        return self.disks.get(self.members.get(member, ""))


def replicate(cluster: Cluster) -> None:
    """Let each member that runs have what the primary has; an empty one fetches everything."""
    source = cluster.disk(cluster.primary)
    if source is None:
        return
    for name in cluster.running:
        disk = cluster.disks.setdefault(
            cluster.members[name], Disk(parameters=dict(source.parameters), major=source.major)
        )
        disk.writes, disk.timeline = source.writes, source.timeline


def major_of(version: str) -> str:
    return version.partition(".")[0]


def config_of(database: Database) -> Json:
    return {"parameters": dict(database.spec.parameters), "synchronous": database.spec.synchronous}


def member_of(cluster: Cluster, pod: Pod, requested: Json) -> Member:
    disk = cluster.disk(pod.name)
    if disk is None or pod.name not in cluster.running:
        return Member(pod.name)
    is_primary = pod.name == cluster.primary
    pending = any(disk.parameters.get(name) != requested["parameters"].get(name) for name in _RESTARTS)
    return Member(
        pod.name,
        role="primary" if is_primary else "replica",
        state="running" if is_primary else "streaming" if cluster.primary else "starting",
        healthy=bool(cluster.primary),
        lag=None if is_primary else cluster.commits - disk.writes,
        pending_restart=pending and cluster.config == requested,
        synchronous=not is_primary and cluster.config.get("synchronous") != "off",
    )


def require_primary(cluster: Cluster) -> None:
    if not cluster.primary:
        raise EngineError("no member accepts writes")


async def run_upgrades(server: Client, database: Database, cluster: Cluster, *, running: bool) -> list[str]:
    """Let the Jobs of upgrades that have succeeded take effect: data of the new version beside the old.

    Return what must not happen: that members run beside a Job.
    """
    violations: list[str] = []
    for job in await server.list(Job, namespace=database.namespace, labels=upgrade_selector(database)):
        state = JobState(job)
        if running and not state.has_condition("Complete") and not state.has_condition("Failed"):
            violations.append(f"{database.key}: members run beside an upgrade")
        if not state.has_condition("Complete") or job.uid in cluster.jobs:
            continue
        cluster.jobs.add(job.uid)
        if (disk := await first_disk(server, database, cluster)) is not None and disk.major == cluster.major:
            disk.others[job.name.rpartition("-")[2]] = disk.writes
    return violations


async def first_disk(server: Client, database: Database, cluster: Cluster) -> Disk | None:
    """Return the data of the first member, whether or not it runs."""
    try:
        claim = await server.get(PersistentVolumeClaim, claim_name(database, 0), namespace=database.namespace)
    except NotFound:
        return None
    return cluster.disks.get(claim.uid)


def start_member(cluster: Cluster, pod: Pod) -> str:
    """Let a pod that is new start with the parameters of the cluster; return what must not happen, or ""."""
    violation = ""
    disk, major = cluster.disk(pod.name), major_of((pod.spec.containers[0].image or "").rpartition(":")[2])
    if cluster.initialized and major != cluster.major:
        violation = f"{pod.name} runs {major} with data of {cluster.major}"
    if disk is not None and disk.major != cluster.major:
        # The directory of this version is empty: it is filled from the primary, and the old one is kept.
        disk.others[disk.major], disk.major, disk.writes = disk.writes, cluster.major, 0
    if cluster.starts.get(pod.name) != pod.uid and disk is not None:
        disk.parameters = dict(cluster.config.get("parameters", {}))
    cluster.starts[pod.name] = pod.uid
    return violation
