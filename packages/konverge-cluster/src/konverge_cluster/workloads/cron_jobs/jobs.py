"""The Jobs of a CronJob: their names and content, and which of the finished ones are kept."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from konverge.k8s.batch.v1 import CronJob, Job
from konverge.k8s.core.v1 import ObjectReference
from konverge.objects import ObjectMeta
from konverge_cluster.cron_schedules import find_zone
from konverge_cluster.workloads.jobs.conditions import COMPLETE, FAILED, condition_of
from konverge_cluster.workloads.pods.claims import owner_reference

__all__ = ["expired_jobs", "finished_type", "job_name", "new_job", "reference_to", "succeeded"]

_SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_NEVER_STARTED: Final = datetime.max.replace(tzinfo=UTC)


def job_name(cron_job: CronJob, scheduled: datetime) -> str:
    """Return the name of the Job of a time: there is one for each minute, so a Job is never created twice."""
    return f"{cron_job.name}-{int(scheduled.timestamp()) // 60}"


def new_job(cron_job: CronJob, scheduled: datetime) -> Job:
    """Return the Job of a time. It shares the spec of the template."""
    template = cron_job.spec.job_template
    metadata = template.metadata or ObjectMeta()
    local = scheduled.astimezone(find_zone(cron_job.spec.time_zone or ""))
    return Job(
        metadata=ObjectMeta(
            name=job_name(cron_job, scheduled),
            namespace=cron_job.namespace,
            labels=dict(metadata.labels),
            annotations={**metadata.annotations, _SCHEDULED: local.isoformat().replace("+00:00", "Z")},
            owner_references=[owner_reference(cron_job)],
        ),
        spec=template.spec,
    )


def reference_to(job: Job) -> ObjectReference:
    """Return the reference to a Job in the status of its CronJob."""
    return ObjectReference(
        api_version=job.__kind__.api_version,
        kind=job.__kind__.kind,
        namespace=job.namespace,
        name=job.name,
        uid=job.uid,
        resource_version=job.resource_version,
    )


def finished_type(job: Job) -> str:
    """Return the type of the condition that finished a Job, "" if it is not finished."""
    for one in job.status.conditions:
        if one.type in (COMPLETE, FAILED) and one.status == "True":
            return one.type
    return ""


def expired_jobs(cron_job: CronJob, jobs: Iterable[Job]) -> list[Job]:
    """Return the finished Jobs beyond the history limits, the oldest; successes and failures are counted apart."""
    jobs = list(jobs)
    spec = cron_job.spec
    limits = ((COMPLETE, spec.successful_jobs_history_limit), (FAILED, spec.failed_jobs_history_limit))
    expired: list[Job] = []
    for type_, limit in limits:
        if limit is not None:
            finished = sorted((job for job in jobs if finished_type(job) == type_), key=_start)
            expired += finished[: max(len(finished) - limit, 0)]
    return expired


def succeeded(job: Job) -> bool:
    """Report whether a Job is complete."""
    return condition_of(job.status.conditions, COMPLETE) is not None


def _start(job: Job) -> tuple[datetime, str]:
    return job.status.start_time or _NEVER_STARTED, job.name
