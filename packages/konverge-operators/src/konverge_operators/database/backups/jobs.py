"""The Jobs of backups: what writes one, deletes one, restores one, and the CronJob of the schedule.

A Job is created once and never changed. The backup that it writes has its name, so a Job of the CronJob needs to know
nothing, and goes on while the operator is away.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast

from konverge.k8s.batch.v1 import CronJob, Job
from konverge.k8s.core.v1 import Pod
from konverge_operators.database.api import Database, Destination
from konverge_operators.database.backups.api import DatabaseBackup, Location
from konverge_operators.database.backups.destinations import Access, access_to, location_of
from konverge_operators.database.engine import Engine
from konverge_operators.database.names import (
    backup_labels,
    claim_name,
    cron_job_name,
    recovery_job,
    secrets_of,
    selector_of,
    short_name,
)
from konverge_operators.database.scheduling import scheduling_of
from konverge_operators.database.versions import major_of
from konverge_operators.manifests import Json, child, pod_spec

__all__ = [
    "PURPOSE",
    "Result",
    "archive_path_of",
    "backup_job",
    "backup_selector",
    "cron_job",
    "deletion_job",
    "deletion_job_name",
    "is_complete",
    "is_failed",
    "job_name",
    "job_result",
    "restore_job",
]

PURPOSE: Final = "example.com/purpose"
"""Label of a Job: backup, deletion or recovery."""
_LIMIT: Final = 24 * 3600
_RETRIES: Final = 2
_HISTORY: Final = 3
_RESOURCES: Final = {"requests": {"cpu": "100m", "memory": "256Mi"}}


@dataclass(frozen=True)
class Result:
    """What the container of a Job has said."""

    message: str = ""
    size: int = 0
    started: datetime | None = None
    completed: datetime | None = None


def job_name(backup: DatabaseBackup) -> str:
    return short_name(backup.name)


def deletion_job_name(backup: DatabaseBackup) -> str:
    return short_name(f"{backup.name}-delete")


def backup_job(database: Database, engine: Engine, version: str, backup: DatabaseBackup) -> Job:
    """Return the Job that writes a backup."""
    name = job_name(backup)
    return child(Job, name, _labels(database.name, "backup"), spec=_backup_spec(database, engine, version))


def cron_job(database: Database, engine: Engine, version: str) -> CronJob:
    """Return the CronJob of the schedule. Backups do not overlap: one that is late is left out."""
    backup = database.spec.backup
    labels = _labels(database.name, "backup")
    upgraded = database.status.upgrade.stage not in ("", "BackingUp")
    spec: Json = {
        "schedule": backup.schedule,
        "concurrencyPolicy": "Forbid",
        "suspend": database.spec.suspend or database.spec.hibernate or upgraded,
        "startingDeadlineSeconds": 3600,
        "successfulJobsHistoryLimit": _HISTORY,
        "failedJobsHistoryLimit": _HISTORY,
        "jobTemplate": {"metadata": {"labels": labels}, "spec": _backup_spec(database, engine, version)},
    }
    if backup.time_zone is not None:
        spec["timeZone"] = backup.time_zone
    return child(CronJob, cron_job_name(database), backup_labels(database.name), spec=spec)


def deletion_job(backup: DatabaseBackup, location: Location, engine: Engine) -> Job:
    """Return the Job that deletes the data of a backup."""
    container = engine.render_deletion(location.version)
    name = {"name": "BACKUP_NAME", "value": job_name(backup)}
    container = {**container, "env": [*container.get("env", ()), name]}
    access = access_to(location.destination, location.path)
    spec = _job_spec(_pods(container, access, {}), _labels(backup.spec.database, "deletion"))
    return child(Job, deletion_job_name(backup), _labels(backup.spec.database, "deletion"), spec=spec)


def restore_job(database: Database, engine: Engine, version: str, source: tuple[Destination, str, str]) -> Job:
    """Return the Job that fills the claim of the first member from a destination, a path and a backup, or ""."""
    destination, path, backup = source
    template = engine.render(database, version, secrets_of(database))
    container = engine.render_recovery(database, version, secrets_of(database))
    name = {"name": "BACKUP_NAME", "value": backup}
    data = {"name": "data", "mountPath": template.data_path}
    container = {**container, "env": [*container.get("env", ()), name], "volumeMounts": [data]}
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim_name(database, 0)}}
    pods = _pods(container, access_to(destination, path), {"volumes": [volume], **scheduling_of(database)})
    labels = _labels(database.name, "recovery")
    return child(Job, recovery_job(database), labels, spec=_job_spec(pods, labels))


def backup_selector(database: Database) -> str:
    """Return the label selector of the Jobs that write backups."""
    return ",".join(f"{name}={value}" for name, value in _labels(database.name, "backup").items())


def archive_path_of(job: Job) -> str:
    """Return the path that a Job writes to: that of the schedule may be older than the version that runs now."""
    env = job.spec.template.spec.containers[0].env
    return next((one.value or "" for one in env or () if one.name == "ARCHIVE_PATH"), "")


def is_complete(job: Job) -> bool:
    return _has_condition(job, "Complete")


def is_failed(job: Job) -> bool:
    return _has_condition(job, "Failed")


def job_result(job: Job, pods: Sequence[Pod]) -> Result:
    """Return what the last pod of a Job has said; nothing if it is gone."""
    own = [pod for pod in pods if any(one.uid == job.uid for one in pod.metadata.owner_references or ())]
    ended = sorted(filter(None, map(_message, own)))
    if not ended:
        return Result()
    text = ended[-1][1]
    try:
        found: Any = json.loads(text)
    except ValueError:
        return Result(text.strip())
    if not isinstance(found, dict):
        return Result(text.strip())
    fields = cast("dict[str, Any]", found)
    times = [datetime.fromisoformat(fields[name]) if name in fields else None for name in ("started", "completed")]
    return Result(size=int(fields.get("size", 0)), started=times[0], completed=times[1])


def _message(pod: Pod) -> tuple[str, str] | None:
    """Return when the container of a pod ended, and its message."""
    for one in pod.status.container_statuses or ():
        state = one.state.terminated if one.state is not None else None
        if state is not None and state.message:
            return (str(state.finished_at or ""), state.message)
    return None


def _has_condition(job: Job, name: str) -> bool:
    return any(one.type == name and one.status == "True" for one in job.status.conditions or ())


def _backup_spec(database: Database, engine: Engine, version: str) -> Json:
    location = location_of(database, version, major_of(engine.majors, version))
    container = engine.render_backup(database, version, secrets_of(database))
    label = "metadata.labels['batch.kubernetes.io/job-name']"
    name = {"name": "BACKUP_NAME", "valueFrom": {"fieldRef": {"fieldPath": label}}}
    container = {**container, "env": [*container.get("env", ()), name]}
    fields = _beside_the_member(database) if location.destination.claim is not None else {}
    pods = _pods(container, access_to(location.destination, location.path), {**fields, **scheduling_of(database)})
    return _job_spec(pods, _labels(database.name, "backup"))


def _beside_the_member(database: Database) -> Json:
    """Return the affinity of a backup of a single member: its claim may be one that only one node can mount."""
    if database.spec.replicas > 1:
        return {}
    term = {"labelSelector": {"matchLabels": selector_of(database)}, "topologyKey": "kubernetes.io/hostname"}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _labels(database: str, purpose: str) -> dict[str, str]:
    return {**backup_labels(database), PURPOSE: purpose}


def _pods(container: Json, access: Access, fields: Json) -> Json:
    """Return the pods of a Job, with what leads to the destination."""
    user = int(container.get("user", 999))
    full = {
        **{key: value for key, value in container.items() if key != "user"},
        "name": "archive",
        "resources": _RESOURCES,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "env": [*container["env"], *access.env],
        "volumeMounts": [*container.get("volumeMounts", ()), *access.mounts],
    }
    volumes = [*fields.get("volumes", ()), *access.volumes]
    pods = pod_spec(full, {}, user=user, **{**fields, "volumes": volumes, "restartPolicy": "Never"})
    del pods["topologySpreadConstraints"]
    return pods


def _job_spec(pods: Json, labels: dict[str, str]) -> Json:
    template = {"metadata": {"labels": labels}, "spec": pods}
    return {"backoffLimit": _RETRIES, "activeDeadlineSeconds": _LIMIT, "template": template}
