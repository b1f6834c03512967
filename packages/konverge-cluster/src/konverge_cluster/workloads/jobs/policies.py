"""The two policies of a Job: what a failed pod means, and which successes suffice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from konverge.k8s.batch.v1 import (
    PodFailurePolicy,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyRule,
    SuccessPolicy,
)
from konverge.k8s.core.v1 import ContainerStatus, Pod
from konverge_cluster.workloads.jobs.indexes import parse_indexes

__all__ = ["FailurePolicyMatch", "match_failure_policy", "success_rule"]


@dataclass(frozen=True)
class FailurePolicyMatch:
    """The match of a failed pod: whether it counts, the action, and the message if it fails the whole Job."""

    counts: bool = True
    action: str = ""
    message: str = ""


def match_failure_policy(policy: PodFailurePolicy | None, pod: Pod) -> FailurePolicyMatch:
    """Return the match of the first rule for a failed pod; without a match it counts."""
    for index, rule in enumerate(policy.rules if policy is not None else ()):
        reason = _match(rule, pod)
        if reason and rule.action == "FailJob":
            return FailurePolicyMatch(True, rule.action, f"{reason} matching {rule.action} rule at index {index}")
        if reason:
            return FailurePolicyMatch(rule.action != "Ignore", rule.action)
    return FailurePolicyMatch()


def success_rule(policy: SuccessPolicy | None, succeeded: set[int], completions: int) -> str:
    """Return the message of the first rule that the succeeded indexes meet, "" if none."""
    for index, rule in enumerate(policy.rules if policy is not None and succeeded else ()):
        if rule.succeeded_indexes is None:
            met = rule.succeeded_count is not None and len(succeeded) >= rule.succeeded_count
        else:
            required = parse_indexes(rule.succeeded_indexes, completions)
            done = len(required & succeeded)
            enough = rule.succeeded_count is not None and done >= rule.succeeded_count
            met = bool(required) and (done == len(required) or enough)
        if met:
            return f"Matched rules at index {index}"
    return ""


def _match(rule: PodFailurePolicyRule, pod: Pod) -> str:
    """Return a message about how a pod matches a rule, "" if it does not."""
    key = f"{pod.namespace}/{pod.name}"
    if rule.on_exit_codes is not None:
        found = _container(rule.on_exit_codes, pod)
        if found is None:
            return ""
        return f"Container {found.name} for pod {key} failed with exit code {_exit_code(found)}"
    for condition in pod.status.conditions:
        for pattern in rule.on_pod_conditions:
            if condition.type == pattern.type and condition.status == pattern.status:
                return f"Pod {key} has condition {condition.type}"
    return ""


def _container(requirement: PodFailurePolicyOnExitCodesRequirement, pod: Pod) -> ContainerStatus | None:
    statuses: Iterable[ContainerStatus] = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    for status in statuses:
        name_matches = requirement.container_name is None or requirement.container_name == status.name
        code = _exit_code(status)
        if name_matches and code and (code in requirement.values) == (requirement.operator == "In"):
            return status
    return None


def _exit_code(status: ContainerStatus) -> int:
    """Return the exit code of a failed container; 0 if it did not fail, or runs."""
    terminated = status.state.terminated if status.state is not None else None
    return terminated.exit_code if terminated is not None else 0
