"""Validation of the status of a Job: which fields are allowed together, and how they may change.

No job controller, built-in or external, may finish a job without a reason or revert its end. Most rules apply only when
the fields that they mention change.
"""

from __future__ import annotations

from typing import Any, Final

from konverge_cluster.api.field_errors import OMIT_VALUE, invalid, required
from konverge_cluster.builtins.validation.values import FieldErrors, validate_nonnegative

__all__ = ["validate_job_status_update"]

Job = dict[str, Any]

_COUNTS: Final = ("active", "succeeded", "failed", "ready", "terminating")
_TERMINAL: Final = ("Failed", "Complete", "FailureTarget")
_CONDITIONS: Final = "status.conditions"


def validate_job_status_update(new: Job, old: Job) -> FieldErrors:
    """Validate an update of the status."""
    for name in _COUNTS:
        yield from validate_nonnegative(new["status"].get(name), f"status.{name}")
    yield from _validate_conditions(new, old)
    yield from _validate_completion_time(new, old)
    yield from _validate_reasons(new, old)
    yield from _validate_finished(new, old)
    yield from _validate_transitions(new, old)


def _has_condition(job: Job, *types: str) -> bool:
    conditions = job["status"].get("conditions", ())
    return any(each.get("type") in types and each.get("status") == "True" for each in conditions)


def _conditions_changed(new: Job, old: Job, *types: str) -> bool:
    return any(_has_condition(new, each) != _has_condition(old, each) for each in types)


def _fields_changed(new: Job, old: Job, *names: str) -> bool:
    return any(new["status"].get(name) != old["status"].get(name) for name in names)


def _validate_conditions(new: Job, old: Job) -> FieldErrors:
    if (
        _conditions_changed(new, old, "Complete", "Failed")
        and _has_condition(new, "Complete")
        and _has_condition(new, "Failed")
    ):
        yield invalid(_CONDITIONS, OMIT_VALUE, "cannot set Complete=True and Failed=true conditions")
    if (
        _conditions_changed(new, old, "Complete", "FailureTarget")
        and _has_condition(new, "Complete")
        and _has_condition(new, "FailureTarget")
    ):
        yield invalid(_CONDITIONS, OMIT_VALUE, "cannot set Complete=True and FailureTarget=true conditions")


def _validate_completion_time(new: Job, old: Job) -> FieldErrors:
    status = new["status"]
    start, end = status.get("startTime"), status.get("completionTime")
    if _conditions_changed(new, old, "Complete") or _fields_changed(new, old, "completionTime"):
        if end is not None and not _has_condition(new, "Complete"):
            text = "cannot set completionTime when there is no Complete=True condition"
            yield invalid("status.completionTime", end, text)
        if end is None and _has_condition(new, "Complete"):
            yield required("status.completionTime", "completionTime is required for Complete jobs")
    if _fields_changed(new, old, "startTime", "completionTime") and start and end and end < start:
        yield invalid("status.completionTime", end, "must be equal to or after `startTime`")


def _validate_reasons(new: Job, old: Job) -> FieldErrors:
    if (
        _conditions_changed(new, old, "Failed")
        and _has_condition(new, "Failed")
        and not _has_condition(new, "FailureTarget")
    ):
        text = "cannot set Failed=True condition without the FailureTarget=true condition"
        yield invalid(_CONDITIONS, OMIT_VALUE, text)
    unexplained = _has_condition(new, "Complete") and not _has_condition(new, "SuccessCriteriaMet")
    if unexplained and _conditions_changed(new, old, "Complete", "SuccessCriteriaMet"):
        text = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        yield invalid(_CONDITIONS, OMIT_VALUE, text)


def _validate_finished(new: Job, old: Job) -> FieldErrors:
    status, is_finished = new["status"], _has_condition(new, "Complete", "Failed")
    finished_changed = is_finished != _has_condition(old, "Complete", "Failed")
    active = status.get("active", 0)
    if is_finished and active > 0 and (finished_changed or _fields_changed(new, old, "active")):
        yield invalid("status.active", active, "active>0 is invalid for finished job")
    empty = new["spec"].get("suspend") is True and new["spec"].get("completions") == 0
    if (
        is_finished
        and "startTime" not in status
        and (finished_changed or _fields_changed(new, old, "startTime"))
        and not empty
    ):
        yield required("status.startTime", "startTime is required for finished job")
    terminating = status.get("terminating", 0)
    if is_finished and terminating > 0 and (finished_changed or _fields_changed(new, old, "terminating")):
        yield invalid("status.terminating", terminating, "terminating>0 is invalid for finished job")
    if "ready" in status and status["ready"] > active and _fields_changed(new, old, "ready", "active"):
        yield invalid("status.ready", status["ready"], "cannot set more ready pods than active")
    if _has_condition(new, "SuccessCriteriaMet"):
        for other in ("Failed", "FailureTarget"):
            if _has_condition(new, other):
                condition = "Failed=true" if other == "Failed" else "FailureTarget=true"
                yield invalid(_CONDITIONS, OMIT_VALUE, f"cannot set SuccessCriteriaMet=True and {condition} conditions")


def _validate_transitions(new: Job, old: Job) -> FieldErrors:
    for each in _TERMINAL:
        if _has_condition(old, each) and not _has_condition(new, each):
            yield invalid(_CONDITIONS, OMIT_VALUE, f"cannot disable the terminal {each}=True condition")
    status, old_status, spec = new["status"], old["status"], new["spec"]
    if status.get("failed", 0) < old_status.get("failed", 0):
        yield invalid("status.failed", status.get("failed", 0), "cannot decrease the failed counter")
    # An indexed job with equal completions and parallelism can be scaled down.
    shrinks = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    if status.get("succeeded", 0) < old_status.get("succeeded", 0) and not shrinks:
        yield invalid("status.succeeded", status.get("succeeded", 0), "cannot decrease the succeeded counter")
    end = status.get("completionTime")
    if end and old_status.get("completionTime") and end != old_status["completionTime"]:
        yield invalid("status.completionTime", end, "field is immutable")
    start = status.get("startTime")
    restarted = old_status.get("startTime") and start != old_status["startTime"]
    if restarted and not spec.get("suspend") and not _is_resumed(new, old):
        yield invalid("status.startTime", start, "field is immutable for unsuspended job once set")
    if _has_condition(old, "SuccessCriteriaMet") and not _has_condition(new, "SuccessCriteriaMet"):
        yield invalid(_CONDITIONS, OMIT_VALUE, "cannot disable the SuccessCriteriaMet=True condition")
    if (
        _has_condition(old, "Complete")
        and not _has_condition(old, "SuccessCriteriaMet")
        and _has_condition(new, "SuccessCriteriaMet")
    ):
        text = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        yield invalid(_CONDITIONS, OMIT_VALUE, text)


def _is_resumed(new: Job, old: Job) -> bool:
    conditions = new["status"].get("conditions", ())
    stops = any(each.get("type") == "Suspended" and each.get("status") == "False" for each in conditions)
    return _has_condition(old, "Suspended") and stops
