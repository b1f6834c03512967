"""What members have written into the cluster: the record, and the report of each pod. Nothing here asks a member."""

from __future__ import annotations

from collections.abc import Sequence

from konverge.k8s.core.v1 import Pod
from konverge_operators.database.engine import Failure, Member, ObservedMembers, Role
from konverge_operators.database.mariadb.member.api_server import REPORT
from konverge_operators.database.mariadb.member.decisions import Record, Report

__all__ = ["observed_members", "report_of"]


def report_of(pod: Pod) -> Report:
    """Return the report of a member."""
    return Report.parse((pod.metadata.annotations or {}).get(REPORT, ""))


def observed_members(pods: Sequence[Pod], record: Record | None, major: str) -> ObservedMembers:
    """Return what is known of the members."""
    members = tuple(_member(pod, record) for pod in pods)
    primaries = [one.name for one in members if one.role == "primary" and one.healthy]
    return ObservedMembers(
        initialized=record is not None,
        members=members,
        primary=primaries[0] if primaries else "",
        major=major if record is not None else "",
        switchover_pending=record is not None and bool(record.switchover),
        failure=_find_failure(pods),
    )


def _member(pod: Pod, record: Record | None) -> Member:
    report = report_of(pod)
    serves = report.state == "running" and report.component and report.synced
    role: Role = "unknown"
    if serves and record is not None:
        role = "primary" if record.primary == pod.name else "replica"
    return Member(
        name=pod.name,
        role=role,
        state="synced" if serves else report.reason or report.state,
        healthy=role != "unknown" and _is_ready(pod),
        synchronous=role == "replica",
        version=_version(pod) if report.state == "running" else "",
    )


def _find_failure(pods: Sequence[Pod]) -> Failure | None:
    """Return what members say that they cannot repair; a member that was left behind matters more than a quorum."""
    reports = [report_of(pod) for pod in pods]
    found = sorted((one.reason, one.message) for one in reports if one.reason)
    return Failure(*found[0]) if found else None


def _is_ready(pod: Pod) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or ())


def _version(pod: Pod) -> str:
    """Return the release of the image that the pod runs."""
    images = [one.image or "" for one in pod.spec.containers]
    return images[0].rpartition(":")[2] if images else ""
