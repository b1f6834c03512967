"""What may change in a pod: images, the deadline downwards, tolerations and scheduling gates in one direction."""

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
_FREE: Final = ("activeDeadlineSeconds", "schedulingGates", "tolerations")
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
    wrong = list(_validate_deadline(spec.get("activeDeadlineSeconds"), old_spec.get("activeDeadlineSeconds")))
    yield from wrong
    if wrong and "activeDeadlineSeconds" in spec:
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
        kept = {key: value for key, value in toleration.items() if key != "tolerationSeconds"}
        if not any({k: v for k, v in each.items() if k != "tolerationSeconds"} == kept for each in new):
            text = "existing toleration can not be modified except its tolerationSeconds"
            yield forbidden("spec.tolerations", text)
            return


def _validate_scheduling_gates(spec: Spec, old_spec: Spec) -> FieldErrors:
    had = {gate["name"] for gate in old_spec.get("schedulingGates", ())}
    for index, gate in enumerate(spec.get("schedulingGates", ())):
        name = gate["name"]
        if name not in had:
            text = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield forbidden(f"spec.schedulingGates[{index}].name", text)


def _comparable(spec: Spec, old_spec: Spec) -> Spec:
    """A spec without what may change."""
    kept = {key: value for key, value in spec.items() if key not in _FREE}
    for name in ("containers", "initContainers"):
        if name in kept:
            kept[name] = [{k: v for k, v in each.items() if k != "image"} for each in kept[name] or ()]
    before = old_spec.get("terminationGracePeriodSeconds")
    if before is not None and before < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        kept["terminationGracePeriodSeconds"] = before
    return kept


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
    """A container that ended for good does not run again."""
    policy = new["spec"].get("restartPolicy")
    if policy == "Always":
        return
    now = {each["name"]: each for each in new["status"].get("containerStatuses", ())}
    for index, before in enumerate(old["status"].get("containerStatuses", ())):
        ended = before["state"].get("terminated")
        if ended is None or (policy == "OnFailure" and ended["exitCode"] != 0):
            continue
        after = now.get(before["name"])
        if after is not None and "terminated" not in after["state"]:
            path = f"status.containerStatuses[{index}].state"
            yield forbidden(path, "may not be transitioned to non-terminated state")
