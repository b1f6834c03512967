"""Validation of pod updates: images may change, the deadline may shrink, tolerations may be added, gates removed."""

from __future__ import annotations

from typing import Any, Final

from konverge_cluster.api.field_errors import forbidden, invalid, required
from konverge_cluster.builtins.validation.values import (
    MAX_INT32,
    NOT_NEGATIVE,
    FieldErrors,
    validate_dns_subdomain,
    validate_immutable,
    validate_qualified_name,
)

__all__ = ["validate_pod_status_update", "validate_pod_update"]

Spec = dict[str, Any]

_UPDATABLE: Final = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)
_MUTABLE_FIELDS: Final = ("activeDeadlineSeconds", "schedulingGates", "tolerations")
_SYSTEM_CONDITIONS: Final = ("PodScheduled", "Ready", "Initialized")


def validate_pod_update(new: dict[str, Any], old: dict[str, Any]) -> FieldErrors:
    spec, old_spec = new["spec"], old["spec"]
    for name in ("containers", "initContainers"):
        if len(spec.get(name) or ()) != len(old_spec.get(name) or ()):
            yield forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
        for index, container in enumerate(spec.get(name) or ()):
            if not container.get("image"):
                yield required(f"spec.{name}[{index}].image")
    errors = list(_validate_deadline(spec.get("activeDeadlineSeconds"), old_spec.get("activeDeadlineSeconds")))
    yield from errors
    if errors and "activeDeadlineSeconds" in spec:
        return
    yield from _validate_tolerations(spec.get("tolerations", []), old_spec.get("tolerations", []))
    yield from _validate_scheduling_gates(spec, old_spec)
    if _comparable(spec, old_spec) != _comparable(old_spec, old_spec):
        yield forbidden("spec", f"pod updates may not change fields other than {','.join(_UPDATABLE)}")


def _validate_deadline(new: int | None, old: int | None) -> FieldErrors:
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            yield invalid(path, None, "must not update from a positive integer to nil value")
    elif not 0 <= new <= MAX_INT32:
        yield invalid(path, new, f"must be between 0 and {MAX_INT32}, inclusive")
    elif old is not None and old < new:
        yield invalid(path, new, "must be less than or equal to previous value")


def _validate_tolerations(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> FieldErrors:
    for toleration in old:
        identity = {key: value for key, value in toleration.items() if key != "tolerationSeconds"}
        if not any({k: v for k, v in each.items() if k != "tolerationSeconds"} == identity for each in new):
            text = "existing toleration can not be modified except its tolerationSeconds"
            yield forbidden("spec.tolerations", text)
            return


def _validate_scheduling_gates(spec: Spec, old_spec: Spec) -> FieldErrors:
    old_gates = {gate["name"] for gate in old_spec.get("schedulingGates", ())}
    for index, gate in enumerate(spec.get("schedulingGates", ())):
        name = gate["name"]
        if name not in old_gates:
            text = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield forbidden(f"spec.schedulingGates[{index}].name", text)


def _comparable(spec: Spec, old_spec: Spec) -> Spec:
    """Return a spec without its mutable fields."""
    comparable = {key: value for key, value in spec.items() if key not in _MUTABLE_FIELDS}
    for name in ("containers", "initContainers"):
        if name in comparable:
            comparable[name] = [{k: v for k, v in each.items() if k != "image"} for each in comparable[name] or ()]
    old_period = old_spec.get("terminationGracePeriodSeconds")
    if old_period is not None and old_period < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        comparable["terminationGracePeriodSeconds"] = old_period
    return comparable


def validate_pod_status_update(new: dict[str, Any], old: dict[str, Any]) -> FieldErrors:
    status, old_status = new["status"], old["status"]
    for index, condition in enumerate(status.get("conditions", ())):
        if condition.get("observedGeneration", 0) < 0:
            path = f"status.conditions[{index}].observedGeneration"
            yield invalid(path, condition["observedGeneration"], "must be a non-negative integer")
        if condition["type"] not in _SYSTEM_CONDITIONS:
            yield from validate_qualified_name(condition["type"], f"status.conditions[{index}].Type")
    nominated = status.get("nominatedNodeName")
    if nominated and nominated != old_status.get("nominatedNodeName"):
        yield from validate_dns_subdomain(nominated, "status.nominatedNodeName")
    if status.get("observedGeneration", 0) < 0:
        yield invalid("status.observedGeneration", status["observedGeneration"], NOT_NEGATIVE)
    yield from validate_immutable(status.get("qosClass", ""), old_status.get("qosClass", ""), "status.qosClass")
    yield from _validate_state_changes(new, old)


def _validate_state_changes(new: dict[str, Any], old: dict[str, Any]) -> FieldErrors:
    """Reject a transition of a permanently terminated container to another state."""
    policy = new["spec"].get("restartPolicy")
    if policy == "Always":
        return
    statuses = {each["name"]: each for each in new["status"].get("containerStatuses", ())}
    for index, old_status in enumerate(old["status"].get("containerStatuses", ())):
        terminated = old_status["state"].get("terminated")
        if terminated is None or (policy == "OnFailure" and terminated["exitCode"] != 0):
            continue
        status = statuses.get(old_status["name"])
        if status is not None and "terminated" not in status["state"]:
            path = f"status.containerStatuses[{index}].state"
            yield forbidden(path, "may not be transitioned to non-terminated state")
