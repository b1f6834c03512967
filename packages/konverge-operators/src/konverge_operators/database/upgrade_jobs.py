"""The Job of a major upgrade: what it is made of, and what the server knows of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from konverge import Context
from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import Pod
from konverge_operators.database.api import Database
from konverge_operators.database.backups.jobs import backup_selector, is_complete, is_failed
from konverge_operators.database.engine import Engine
from konverge_operators.database.names import OPERATOR, RETRY_UPGRADE, claim_name, secrets_of
from konverge_operators.database.scheduling import scheduling_of
from konverge_operators.manifests import child, labels, pod_spec, selector

__all__ = ["JobState", "attempt_of", "delete_job", "find_job", "job_name", "upgrade_job", "upgrade_selector"]

_COMPONENT: Final = "upgrade"
_START_LIMIT: Final = timedelta(minutes=10)
"""How long the pod of the Job may need to start: an image may be missing, a node full."""


@dataclass(frozen=True)
class JobState:
    """The Job of an upgrade and its pods, as the server has them, and the names of backups that are being written."""

    job: Job | None = None
    pods: tuple[Pod, ...] = ()
    backups: tuple[str, ...] = ()

    @property
    def exists(self) -> bool:
        return self.job is not None or bool(self.pods)

    def has_condition(self, kind: str) -> bool:
        conditions = self.job.status.conditions if self.job is not None else []
        return any(one.type == kind and one.status == "True" for one in conditions)

    @property
    def message(self) -> str:
        """What the container has said at its end; "" if nothing is known."""
        states = [status.state for pod in self.pods for status in pod.status.container_statuses or ()]
        ended = [state.terminated for state in states if state is not None and state.terminated is not None]
        return next((one.message for one in ended if one.message), "")

    def is_expired(self, now: datetime) -> bool:
        """Report whether the pod does not start."""
        created = self.job.metadata.creation_timestamp if self.job is not None else None
        waits = all(pod.status.phase == "Pending" for pod in self.pods)
        return created is not None and waits and now - created > _START_LIMIT


def attempt_of(database: Database) -> str:
    """Return what a failed upgrade is remembered by."""
    return f"{database.spec.version} {database.metadata.annotations.get(RETRY_UPGRADE, '')}".strip()


def upgrade_selector(database: Database) -> str:
    """Return the label selector of the Job and its pods."""
    return ",".join(f"{name}={value}" for name, value in selector(database.name, _COMPONENT).items())


def job_name(database: Database, major: str) -> str:
    return f"{database.name}-upgrade-{major}"


async def find_job(database: Database, ctx: Context) -> JobState:
    """Return what the server knows of an upgrade; a cache may be late."""
    selected = upgrade_selector(database)
    jobs = list(await ctx.client.list(Job, namespace=database.namespace, labels=selected))
    pods = await ctx.client.list(Pod, namespace=database.namespace, labels=selected)
    written = await ctx.client.list(Job, namespace=database.namespace, labels=backup_selector(database))
    backups = [one.name for one in written if not is_complete(one) and not is_failed(one)]
    return JobState(jobs[0] if jobs else None, tuple(pods), tuple(sorted(backups)))


async def delete_job(state: JobState, ctx: Context) -> None:
    """Delete the Job with its pods; it is gone when they are."""
    if state.job is not None and state.job.metadata.deletion_timestamp is None:
        await ctx.delete(state.job, propagation="Foreground")


def upgrade_job(database: Database, engine: Engine, major: str, version: str) -> Job:
    """Return the Job that writes the data of a version beside that of a major, on the claim of the first member."""
    template = engine.render(database, version, secrets_of(database))
    selected = selector(database.name, _COMPONENT)
    container = {
        "name": "upgrade",
        "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}},
        **engine.render_upgrade(database, major, version),
        "volumeMounts": [{"name": "data", "mountPath": template.data_path}],
    }
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": claim_name(database, 0)}}
    fields = {"volumes": [claim], "restartPolicy": "Never", **scheduling_of(database)}
    pods = pod_spec(container, selected, user=template.user, **fields)
    common = labels(database.name, _COMPONENT, operator=OPERATOR)
    spec = {"backoffLimit": 0, "template": {"metadata": {"labels": common}, "spec": pods}}
    return child(Job, job_name(database, version.partition(".")[0]), common, spec=spec)
