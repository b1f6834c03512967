"""Conditions of a Job, and the one that decides how it ends.

A Job ends in two steps: SuccessCriteriaMet or FailureTarget says what will be, and when no pod is left running,
Complete or Failed says that it is so.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from konverge.k8s.batch.v1 import Job, JobCondition
from konverge.k8s.core.v1 import Pod
from konverge.objects.conditions import ConditionStatus
from konverge_cluster.clock import truncate_to_seconds
from konverge_cluster.workloads.jobs.policies import handling_of, success_rule
from konverge_cluster.workloads.jobs.tallies import Tally, has_failed, is_indexed

__all__ = [
    "COMPLETE",
    "FAILED",
    "FAILURE",
    "SUCCESS",
    "condition_of",
    "finish_of",
    "is_finished",
    "is_suspended",
    "new_condition",
    "reached_completions",
    "suspension",
    "until_deadline",
    "verdict",
]

SUCCESS: Final = "SuccessCriteriaMet"
FAILURE: Final = "FailureTarget"
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
_SUSPENDED: Final = "Suspended"


def new_condition(type_: str, status: ConditionStatus, *, reason: str, message: str, now: datetime) -> JobCondition:
    """Make a condition that changed just now."""
    at = truncate_to_seconds(now)
    return JobCondition(
        type=type_, status=status, reason=reason, message=message, last_probe_time=at, last_transition_time=at
    )


def condition_of(conditions: Sequence[JobCondition], type_: str) -> JobCondition | None:
    """Give the condition of a type, if it is true."""
    return next((one for one in conditions if one.type == type_ and one.status == "True"), None)


def is_finished(job: Job) -> bool:
    """Tell whether a Job has ended."""
    return any(condition_of(job.status.conditions, type_) is not None for type_ in (COMPLETE, FAILED))


def is_suspended(job: Job) -> bool:
    """Tell whether a Job is to have no pods for now."""
    return bool(job.spec.suspend)


def verdict(job: Job, tally: Tally, *, pods: Sequence[Pod], now: datetime) -> JobCondition | None:
    """Say how a Job ends, if that is decided by more than the number of its successes.

    What was decided before stays so; then a policy for failed pods, the limits, and a policy for successes.
    """
    met = condition_of(job.status.conditions, SUCCESS)
    missed = condition_of(job.status.conditions, FAILURE)
    if met is not None or missed is not None:
        return met or missed
    reason, message = _failure(job, tally, pods=pods, now=now)
    if reason:
        return new_condition(FAILURE, "True", reason=reason, message=message, now=now)
    if is_indexed(job):
        rule = success_rule(job.spec.success_policy, tally.done, job.spec.completions or 0)
        if rule:
            return new_condition(SUCCESS, "True", reason="SuccessPolicy", message=rule, now=now)
    return None


def reached_completions(job: Job, *, succeeded: int, active: int, now: datetime) -> JobCondition | None:
    """Say that a Job has as many successes as it asks for, if so; one that names no number needs one."""
    wanted = 1 if job.spec.completions is None else job.spec.completions
    if active or succeeded < wanted:
        return None
    message = "Reached expected number of succeeded pods"
    return new_condition(SUCCESS, "True", reason="CompletionsReached", message=message, now=now)


def finish_of(decided: JobCondition, now: datetime) -> JobCondition:
    """Give the condition of the end that was decided."""
    type_ = COMPLETE if decided.type == SUCCESS else FAILED
    return new_condition(type_, "True", reason=decided.reason or "", message=decided.message or "", now=now)


def suspension(job: Job, now: datetime) -> list[JobCondition] | None:
    """Give the conditions after a suspension or its end; None when nothing changed."""
    old = next((one for one in job.status.conditions if one.type == _SUSPENDED), None)
    if is_suspended(job):
        new = new_condition(_SUSPENDED, "True", reason="JobSuspended", message="Job suspended", now=now)
    else:
        new = new_condition(_SUSPENDED, "False", reason="JobResumed", message="Job resumed", now=now)
    if old is None:
        # Never to have been suspended is nothing to be told.
        return [*job.status.conditions, new] if new.status == "True" else None
    if (old.status, old.reason, old.message) == (new.status, new.reason, new.message):
        return None
    return [new if one is old else one for one in job.status.conditions]


def until_deadline(job: Job, now: datetime) -> float | None:
    """Say how many seconds a Job may still be active; None without a limit, or while it is suspended."""
    limit, start = job.spec.active_deadline_seconds, job.status.start_time
    if limit is None or start is None or is_suspended(job):
        return None
    return (start + timedelta(seconds=limit) - now).total_seconds()


def _failure(job: Job, tally: Tally, *, pods: Sequence[Pod], now: datetime) -> tuple[str, str]:
    """Give reason and message of a failure, "" when there is none."""
    for pod in pods:
        message = handling_of(job.spec.pod_failure_policy, pod).message if has_failed(job, pod) else ""
        if message:
            return "PodFailurePolicy", message
    limit = 6 if job.spec.backoff_limit is None else job.spec.backoff_limit
    if tally.failed > limit or _restarted_too_often(job, pods, limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    left = until_deadline(job, now)
    if left is not None and left <= 0:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return _failed_indexes(job, tally)


def _failed_indexes(job: Job, tally: Tally) -> tuple[str, str]:
    given_up = len(tally.given_up or ())
    most = job.spec.max_failed_indexes
    if most is not None and given_up > most:
        return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
    if given_up and given_up + len(tally.done) >= (job.spec.completions or 0):
        return "FailedIndexes", "Job has failed indexes"
    return "", ""


def _restarted_too_often(job: Job, pods: Sequence[Pod], limit: int) -> bool:
    """Count restarts as failures where a failed container is restarted in its pod."""
    if job.spec.template.spec.restart_policy != "OnFailure":
        return False
    running = [pod for pod in pods if pod.status.phase in ("Running", "Pending")]
    restarts = sum(
        status.restart_count
        for pod in running
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    )
    return restarts > 0 if limit == 0 else restarts >= limit
