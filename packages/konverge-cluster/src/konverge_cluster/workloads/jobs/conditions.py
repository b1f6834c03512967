"""Conditions of a Job, and the condition that decides its result.

A Job finishes in two steps: SuccessCriteriaMet or FailureTarget announces the result. When no pod runs any more,
Complete or Failed confirms it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from konverge.k8s.batch.v1 import Job, JobCondition
from konverge.k8s.core.v1 import Pod
from konverge.objects.conditions import ConditionStatus
from konverge_cluster.clock import truncate_to_seconds
from konverge_cluster.workloads.jobs.pod_counts import PodCounts, has_failed, is_indexed
from konverge_cluster.workloads.jobs.policies import match_failure_policy, success_rule
from konverge_cluster.workloads.pods.facts import is_being_deleted

__all__ = [
    "COMPLETE",
    "FAILED",
    "FAILURE",
    "SUCCESS",
    "completions_condition",
    "condition_of",
    "finished_condition",
    "is_finished",
    "is_suspended",
    "new_condition",
    "suspended_conditions",
    "target_condition",
    "until_deadline",
    "until_expiry",
]

SUCCESS: Final = "SuccessCriteriaMet"
FAILURE: Final = "FailureTarget"
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
_SUSPENDED: Final = "Suspended"


def new_condition(type_: str, status: ConditionStatus, *, reason: str, message: str, now: datetime) -> JobCondition:
    """Return a condition that changed just now."""
    at = truncate_to_seconds(now)
    return JobCondition(
        type=type_, status=status, reason=reason, message=message, last_probe_time=at, last_transition_time=at
    )


def condition_of(conditions: Sequence[JobCondition], type_: str) -> JobCondition | None:
    """Return the condition of a type if it is true."""
    return next((one for one in conditions if one.type == type_ and one.status == "True"), None)


def is_finished(job: Job) -> bool:
    """Report whether a Job has finished."""
    return any(condition_of(job.status.conditions, type_) is not None for type_ in (COMPLETE, FAILED))


def is_suspended(job: Job) -> bool:
    """Report whether a Job is suspended."""
    return bool(job.spec.suspend)


def target_condition(job: Job, counts: PodCounts, *, pods: Sequence[Pod], now: datetime) -> JobCondition | None:
    """Return the condition that decides the result of a Job, except by the number of its successes.

    An earlier decision stays; then come the policy for failed pods, the limits, and the policy for successes.
    """
    success = condition_of(job.status.conditions, SUCCESS)
    failure = condition_of(job.status.conditions, FAILURE)
    if success is not None or failure is not None:
        return success or failure
    reason, message = _failure(job, counts, pods=pods, now=now)
    if reason:
        return new_condition(FAILURE, "True", reason=reason, message=message, now=now)
    if is_indexed(job):
        rule = success_rule(job.spec.success_policy, counts.completed, job.spec.completions or 0)
        if rule:
            return new_condition(SUCCESS, "True", reason="SuccessPolicy", message=rule, now=now)
    return None


def completions_condition(job: Job, *, succeeded: int, active: int, now: datetime) -> JobCondition | None:
    """Return the condition of a Job with enough successes, if so; without `completions` one is enough."""
    desired = 1 if job.spec.completions is None else job.spec.completions
    if active or succeeded < desired:
        return None
    message = "Reached expected number of succeeded pods"
    return new_condition(SUCCESS, "True", reason="CompletionsReached", message=message, now=now)


def finished_condition(target: JobCondition, now: datetime) -> JobCondition:
    """Return the final condition for a target condition."""
    type_ = COMPLETE if target.type == SUCCESS else FAILED
    return new_condition(type_, "True", reason=target.reason or "", message=target.message or "", now=now)


def suspended_conditions(job: Job, now: datetime) -> list[JobCondition] | None:
    """Return the conditions after a suspension or a resumption; None if nothing changed."""
    old = next((one for one in job.status.conditions if one.type == _SUSPENDED), None)
    if is_suspended(job):
        new = new_condition(_SUSPENDED, "True", reason="JobSuspended", message="Job suspended", now=now)
    else:
        new = new_condition(_SUSPENDED, "False", reason="JobResumed", message="Job resumed", now=now)
    if old is None:
        # A Job that was never suspended has no such condition.
        return [*job.status.conditions, new] if new.status == "True" else None
    if (old.status, old.reason, old.message) == (new.status, new.reason, new.message):
        return None
    return [new if one is old else one for one in job.status.conditions]


def until_deadline(job: Job, now: datetime) -> float | None:
    """Return how many seconds a Job may still be active; None without a limit, or while it is suspended."""
    limit, start = job.spec.active_deadline_seconds, job.status.start_time
    if limit is None or start is None or is_suspended(job):
        return None
    return (start + timedelta(seconds=limit) - now).total_seconds()


def until_expiry(job: Job, now: datetime) -> float | None:
    """Return in how many seconds a finished Job is to be deleted, 0 or less for now; None if never."""
    conditions = job.status.conditions
    finished = condition_of(conditions, COMPLETE) or condition_of(conditions, FAILED)
    ttl = job.spec.ttl_seconds_after_finished
    if finished is None or finished.last_transition_time is None or ttl is None or is_being_deleted(job):
        return None
    return (finished.last_transition_time + timedelta(seconds=ttl) - now).total_seconds()


def _failure(job: Job, counts: PodCounts, *, pods: Sequence[Pod], now: datetime) -> tuple[str, str]:
    """Return reason and message of a failure, "" if there is none."""
    for pod in pods:
        message = match_failure_policy(job.spec.pod_failure_policy, pod).message if has_failed(job, pod) else ""
        if message:
            return "PodFailurePolicy", message
    limit = 6 if job.spec.backoff_limit is None else job.spec.backoff_limit
    if counts.failed > limit or _restarted_too_often(job, pods, limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    left = until_deadline(job, now)
    if left is not None and left <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return _failed_indexes(job, counts)


def _failed_indexes(job: Job, counts: PodCounts) -> tuple[str, str]:
    failed_indexes = len(counts.failed_indexes or ())
    limit = job.spec.max_failed_indexes
    if limit is not None and failed_indexes > limit:
        return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
    if failed_indexes and failed_indexes + len(counts.completed) >= (job.spec.completions or 0):
        return "FailedIndexes", "Job has failed indexes"
    return "", ""


def _restarted_too_often(job: Job, pods: Sequence[Pod], limit: int) -> bool:
    """Report whether restarts reach the limit; they count where failed containers restart in their pod."""
    if job.spec.template.spec.restart_policy != "OnFailure":
        return False
    running = [pod for pod in pods if pod.status.phase in ("Running", "Pending")]
    restarts = sum(
        status.restart_count
        for pod in running
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    )
    return restarts > 0 if limit == 0 else restarts >= limit
