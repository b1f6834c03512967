"""The backups of the engine in memory: what the Jobs of the simulation would have done.

A Job takes effect when it is first seen to have succeeded. `violations` says what must never happen: a recovery from
data that does not exist, or over other data, or twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from konverge import Client
from konverge.k8s.batch.v1 import Job
from konverge_operators.database.api import Database
from konverge_operators.database.backups.jobs import PURPOSE, is_complete
from konverge_operators.database.names import backup_labels
from konverge_operators.manifests import Json

__all__ = ["BackupModel", "job_container"]


@dataclass
class BackupModel:
    """The destination: the number of writes that each backup has, and what the databases were restored from."""

    violations: list[str]
    stored: dict[str, int] = field(default_factory=dict)
    restored: dict[str, int] = field(default_factory=dict)
    """The number of writes that the first claim of a database got, by the uid of the Database."""
    _seen: set[str] = field(default_factory=set)

    async def advance(self, server: Client, database: Database, commits: int, *, has_data: bool) -> None:
        """Let the Jobs of a database that have succeeded take effect."""
        labels = ",".join(f"{name}={value}" for name, value in backup_labels(database.name).items())
        jobs = await server.list(Job, namespace=database.namespace, labels=labels)
        for job in sorted(jobs, key=lambda one: one.name):
            if is_complete(job) and job.uid not in self._seen:
                self._seen.add(job.uid)
                self._end(database, job, commits, has_data=has_data)

    def _end(self, database: Database, job: Job, commits: int, *, has_data: bool) -> None:
        purpose = (job.metadata.labels or {})[PURPOSE]
        name = f"{database.namespace}/{_backup_name(job)}"
        if purpose == "backup":
            self.stored.setdefault(f"{database.namespace}/{job.name}", commits)
        elif purpose == "deletion":
            self.stored.pop(name, None)
        else:
            if has_data or database.uid in self.restored:
                self.violations.append(f"{database.key}: restored over existing data")
            if name not in self.stored:
                self.violations.append(f"{database.key}: restored from {name}, which does not exist")
            self.restored[database.uid] = self.stored.get(name, 0)


def job_container(version: str, behavior: str = "") -> Json:
    """Return a container that runs for two seconds; "slow" for a minute, and "fails" with an error."""
    command = f"sleep {60 if behavior == 'slow' else 2}; exit {int(behavior == 'fails')}"
    return {"image": f"memory:{version}", "command": ["sh", "-c", command], "env": []}


def _backup_name(job: Job) -> str:
    env = job.spec.template.spec.containers[0].env
    return next((one.value or "" for one in env or () if one.name == "BACKUP_NAME"), "")
