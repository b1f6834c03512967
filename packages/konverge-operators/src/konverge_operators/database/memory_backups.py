"""The backups of the engine in memory: what the Jobs of the simulation would have done.

The Jobs of all databases take effect in the order in which they succeeded, when any database is asked: a backup is
there before it is restored, also if its own database is not asked in between. `violations` says what must never happen:
a recovery from data that does not exist, or over other data, or twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from konverge import Client
from konverge.k8s.batch.v1 import Job
from konverge_operators.database.backups.jobs import PURPOSE, is_complete
from konverge_operators.database.memory_model import Cluster
from konverge_operators.manifests import Json

__all__ = ["BackupModel", "job_container"]

_INSTANCE = "app.kubernetes.io/instance"


@dataclass
class BackupModel:
    """The destination: the number of writes that each backup has, and what the databases were restored from."""

    violations: list[str]
    stored: dict[str, int] = field(default_factory=dict)
    restored: dict[str, int] = field(default_factory=dict)
    """The number of writes that the first claim of a database got, by the uid of the Database."""
    _seen: set[str] = field(default_factory=set)

    async def advance(self, server: Client, namespace: str, clusters: Mapping[str, Cluster]) -> None:
        """Let the Jobs of a namespace that have succeeded take effect on these databases."""
        jobs = [one for one in await server.list(Job, namespace=namespace, labels=PURPOSE) if is_complete(one)]
        for job in sorted(jobs, key=lambda one: (str(one.status.completion_time), one.name)):
            if job.uid not in self._seen:
                self._seen.add(job.uid)
                labels = job.metadata.labels or {}
                self._end(job, labels[PURPOSE], clusters.get(f"{namespace}/{labels[_INSTANCE]}", Cluster()))

    def _end(self, job: Job, purpose: str, cluster: Cluster) -> None:
        name = f"{job.namespace}/{_backup_name(job)}"
        if purpose == "backup":
            self.stored.setdefault(f"{job.namespace}/{job.name}", cluster.commits)
        elif purpose == "deletion":
            self.stored.pop(name, None)
        else:
            database = next(one.uid for one in job.metadata.owner_references or ())
            if cluster.disks or database in self.restored:
                self.violations.append(f"{job.namespace}/{job.name}: restored over existing data")
            if name not in self.stored:
                self.violations.append(f"{job.namespace}/{job.name}: restored from {name}, which does not exist")
            self.restored[database] = self.stored.get(name, 0)


def job_container(version: str, behavior: str = "") -> Json:
    """Return a container that runs for two seconds; "slow" for a minute, and "fails" with an error."""
    command = f"sleep {60 if behavior == 'slow' else 2}; exit {int(behavior == 'fails')}"
    return {"image": f"memory:{version}", "command": ["sh", "-c", command], "env": []}


def _backup_name(job: Job) -> str:
    env = job.spec.template.spec.containers[0].env
    return next((one.value or "" for one in env or () if one.name == "BACKUP_NAME"), "")
