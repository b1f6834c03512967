"""What a Job makes of a failed pod, and when it is content with fewer successes: its two policies."""

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
from konverge_cluster.workloads.jobs.indexes import read_indexes

__all__ = ["Handling", "handling_of", "success_rule"]


@dataclass(frozen=True)
class Handling:
    """How a failed pod is taken: whether it counts, by which action, and the message that fails the whole Job."""

    counts: bool = True
    action: str = ""
    message: str = ""


def handling_of(policy: PodFailurePolicy | None, pod: Pod) -> Handling:
    """Find the first rule that a failed pod matches; without one it counts."""
    for place, rule in enumerate(policy.rules if policy is not None else ()):
        why = _match(rule, pod)
        if why and rule.action == "FailJob":
            return Handling(True, rule.action, f"{why} matching {rule.action} rule at index {place}")
        if why:
            return Handling(rule.action != "Ignore", rule.action)
    return Handling()


def success_rule(policy: SuccessPolicy | None, succeeded: set[int], completions: int) -> str:
    """Give the message of the first rule that the succeeded indexes fulfil, "" when there is none."""
    for place, rule in enumerate(policy.rules if policy is not None and succeeded else ()):
        if rule.succeeded_indexes is None:
            met = rule.succeeded_count is not None and len(succeeded) >= rule.succeeded_count
        else:
            required = read_indexes(rule.succeeded_indexes, completions)
            done = len(required & succeeded)
            enough = rule.succeeded_count is not None and done >= rule.succeeded_count
            met = bool(required) and (done == len(required) or enough)
        if met:
            return f"Matched rules at index {place}"
    return ""


def _match(rule: PodFailurePolicyRule, pod: Pod) -> str:
    """Say in words how a pod matches a rule, "" when it does not."""
    where = f"{pod.namespace}/{pod.name}"
    if rule.on_exit_codes is not None:
        found = _container(rule.on_exit_codes, pod)
        if found is None:
            return ""
        return f"Container {found.name} for pod {where} failed with exit code {_exit_code(found)}"
    for condition in pod.status.conditions:
        for pattern in rule.on_pod_conditions:
            if condition.type == pattern.type and condition.status == pattern.status:
                return f"Pod {where} has condition {condition.type}"
    return ""


def _container(wanted: PodFailurePolicyOnExitCodesRequirement, pod: Pod) -> ContainerStatus | None:
    statuses: Iterable[ContainerStatus] = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    for status in statuses:
        named = wanted.container_name is None or wanted.container_name == status.name
        code = _exit_code(status)
        if named and code and (code in wanted.values) == (wanted.operator == "In"):
            return status
    return None


def _exit_code(status: ContainerStatus) -> int:
    """Give the code that a container failed with; 0 when it did not, or runs."""
    terminated = status.state.terminated if status.state is not None else None
    return terminated.exit_code if terminated is not None else 0
