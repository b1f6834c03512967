"""Validation of job status: a job ends with a reason, and its end is final."""

from __future__ import annotations

from typing import Any

import pytest

from konverge_cluster.builtins.validation.job_status import validate_job_status_update

START, END = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def job(*conditions: str, **status: Any) -> dict[str, Any]:
    true_conditions = [{"type": each, "status": "True"} for each in conditions]
    return {"spec": {"completions": 1, "parallelism": 1}, "status": {"conditions": true_conditions, **status}}


DONE = job("SuccessCriteriaMet", "Complete", startTime=START, completionTime=END, succeeded=1)


def error_paths(new: dict[str, Any], old: dict[str, Any]) -> list[str]:
    return [error.path for error in validate_job_status_update(new, old)]


@pytest.mark.parametrize(
    "new",
    [
        DONE,
        job(startTime=START, active=2, ready=2),
        job("FailureTarget", startTime=START, active=1),
        job("FailureTarget", "Failed", startTime=START, failed=1),
    ],
)
def test_a_job_may_run_and_end_with_a_reason(new: dict[str, Any]) -> None:
    assert error_paths(new, job(startTime=START)) == []


@pytest.mark.parametrize(
    ("new", "paths"),
    [
        (job(startTime=START, active=-1), ["status.active"]),
        (job(startTime=START, active=1, ready=2), ["status.ready"]),
        (job("Failed", startTime=START), ["status.conditions"]),
        (job("Complete", startTime=START, completionTime=END), ["status.conditions"]),
        (job("SuccessCriteriaMet", "Complete", startTime=START), ["status.completionTime"]),
        (job(startTime=START, completionTime=END), ["status.completionTime"]),
        (job("SuccessCriteriaMet", "Complete", startTime=END, completionTime=START), ["status.completionTime"]),
        (job("SuccessCriteriaMet", "Complete", completionTime=END), ["status.startTime"]),
        (job("FailureTarget", "Failed", startTime=START, active=1), ["status.active"]),
    ],
)
def test_contradictory_fields_are_rejected(new: dict[str, Any], paths: list[str]) -> None:
    assert error_paths(new, job()) == paths


@pytest.mark.parametrize(
    ("new", "paths"),
    [
        (job("SuccessCriteriaMet", startTime=START, succeeded=1), ["status.conditions"]),
        (job("SuccessCriteriaMet", "Complete", startTime=START, completionTime=END), ["status.succeeded"]),
        (
            job("SuccessCriteriaMet", "Complete", startTime=START, completionTime="2027-01-01T00:00:00Z", succeeded=1),
            ["status.completionTime"],
        ),
    ],
)
def test_a_finished_job_stays_finished(new: dict[str, Any], paths: list[str]) -> None:
    assert error_paths(new, DONE) == paths
