"""The TTL of finished Jobs."""

from __future__ import annotations

from datetime import datetime, timedelta

from konverge.k8s.batch.v1 import Job
from konverge_cluster.workloads.jobs.conditions import COMPLETE, FAILED, condition_of
from konverge_cluster.workloads.pods.facts import is_being_deleted

__all__ = ["until_expiry"]


def until_expiry(job: Job, now: datetime) -> float | None:
    """Return in how many seconds a finished Job is to be deleted, 0 or less for now; None if never."""
    conditions = job.status.conditions
    finished = condition_of(conditions, COMPLETE) or condition_of(conditions, FAILED)
    ttl = job.spec.ttl_seconds_after_finished
    if finished is None or finished.last_transition_time is None or ttl is None or is_being_deleted(job):
        return None
    return (finished.last_transition_time + timedelta(seconds=ttl) - now).total_seconds()
