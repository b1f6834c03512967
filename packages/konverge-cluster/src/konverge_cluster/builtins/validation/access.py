"""Validation of roles, bindings, leases, priority classes and runtime classes."""

from __future__ import annotations

from typing import Any, Final

from konverge.objects.names import path_segment_errors
from konverge_cluster.api.field_errors import forbidden, invalid, required, unsupported
from konverge_cluster.builtins.validation.labels import validate_label_selector, validate_labels
from konverge_cluster.builtins.validation.resources import validate_container_resources
from konverge_cluster.builtins.validation.scheduling import validate_tolerations
from konverge_cluster.builtins.validation.values import (
    FieldErrors,
    validate_dns_label,
    validate_dns_subdomain,
    validate_immutable,
    validate_name,
)

__all__ = [
    "validate_binding",
    "validate_binding_update",
    "validate_cluster_binding",
    "validate_cluster_role",
    "validate_lease",
    "validate_priority_class",
    "validate_priority_class_update",
    "validate_role",
    "validate_runtime_class",
    "validate_runtime_class_update",
]

Spec = dict[str, Any]

_GROUP: Final = "rbac.authorization.k8s.io"
_HIGHEST: Final = 1_000_000_000
_SYSTEM: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def validate_role(new: Spec) -> FieldErrors:
    for index, rule in enumerate(new["rules"] or ()):
        yield from _validate_rule(rule, f"rules[{index}]", namespaced=True)


def validate_cluster_role(new: Spec) -> FieldErrors:
    for index, rule in enumerate(new["rules"] or ()):
        yield from _validate_rule(rule, f"rules[{index}]", namespaced=False)
    aggregation = new.get("aggregationRule")
    if aggregation is None:
        return
    path = "aggregationRule.clusterRoleSelectors"
    selectors = aggregation.get("clusterRoleSelectors", ())
    if not selectors:
        yield required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, selector in enumerate(selectors):
        errors = list(validate_label_selector(selector, f"{path}[{index}]"))
        yield from errors
        if errors:
            yield invalid(f"{path}[{index}]", None, "invalid label selector.")


def _validate_rule(rule: Spec, path: str, *, namespaced: bool) -> FieldErrors:
    if not rule["verbs"]:
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            text = "namespaced rules cannot apply to non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", urls, text)
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", urls, text)
        return
    if not rule.get("apiGroups"):
        yield required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required(f"{path}.resources", "resource rules must supply at least one resource")


def validate_binding(new: Spec) -> FieldErrors:
    yield from _validate_role_reference(new["roleRef"], ("Role", "ClusterRole"))
    for index, subject in enumerate(new.get("subjects", ())):
        yield from _validate_subject(subject, f"subjects[{index}]", namespaced=True)


def validate_cluster_binding(new: Spec) -> FieldErrors:
    yield from _validate_role_reference(new["roleRef"], ("ClusterRole",))
    for index, subject in enumerate(new.get("subjects", ())):
        yield from _validate_subject(subject, f"subjects[{index}]", namespaced=False)


def _validate_role_reference(reference: Spec, kinds: tuple[str, ...]) -> FieldErrors:
    if reference["apiGroup"] != _GROUP:
        yield unsupported("roleRef.apiGroup", reference["apiGroup"], (_GROUP,))
    if reference["kind"] not in kinds:
        yield unsupported("roleRef.kind", reference["kind"], kinds)
    if not reference["name"]:
        yield required("roleRef.name")
    else:
        yield from validate_name(reference["name"], path_segment_errors, "roleRef.name")


def _validate_subject(subject: Spec, path: str, *, namespaced: bool) -> FieldErrors:
    kind, group = subject["kind"], subject.get("apiGroup", "")
    if not subject["name"]:
        yield required(f"{path}.name")
    if kind == "ServiceAccount":
        if subject["name"]:
            yield from validate_dns_subdomain(subject["name"], f"{path}.name")
        if group:
            yield unsupported(f"{path}.apiGroup", group, ("",))
        if not namespaced and not subject.get("namespace"):
            yield required(f"{path}.namespace")
    elif kind not in ("User", "Group"):
        yield unsupported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group"))
    elif group != _GROUP:
        yield unsupported(f"{path}.apiGroup", group, (_GROUP,))


def validate_binding_update(new: Spec, old: Spec) -> FieldErrors:
    reference = new["roleRef"]
    if reference != old["roleRef"]:
        value = {"APIGroup": reference["apiGroup"], "Kind": reference["kind"], "Name": reference["name"]}
        yield invalid("roleRef", value, "cannot change roleRef")


def validate_lease(new: Spec) -> FieldErrors:
    spec = new["spec"]
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")


def validate_priority_class(new: Spec) -> FieldErrors:
    name, value = new["metadata"].get("name", ""), new["value"]
    if name.startswith("system-"):
        if _SYSTEM.get(name) != value or new.get("globalDefault"):
            text = "priority class names with 'system-' prefix are reserved for system use only. error:"
            yield forbidden("metadata.name", f"{text} {_system_error(name, new)}")
    elif value > _HIGHEST:
        yield forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")
    policy = new["preemptionPolicy"]
    if not policy:
        yield required("preemptionPolicy")
    elif policy not in ("PreemptLowerPriority", "Never"):
        yield unsupported("preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))


def _system_error(name: str, new: Spec) -> str:
    if name not in _SYSTEM:
        return f"{name} is not a known system priority class"
    if _SYSTEM[name] != new["value"]:
        return f"value of {name} PriorityClass must be {_SYSTEM[name]}"
    return f"globalDefault of {name} PriorityClass must be false"


def validate_priority_class_update(new: Spec, old: Spec) -> FieldErrors:
    if new["value"] != old["value"]:
        yield forbidden("value", "may not be changed in an update.")
    yield from validate_immutable(new["preemptionPolicy"], old["preemptionPolicy"], "preemptionPolicy")


def validate_runtime_class(new: Spec) -> FieldErrors:
    if not new["handler"]:
        yield required("handler")
    else:
        yield from validate_dns_label(new["handler"], "handler")
    if "overhead" in new:
        yield from validate_container_resources(
            {"limits": new["overhead"].get("podFixed", {})}, frozenset(), "overhead"
        )
    scheduling = new.get("scheduling", {})
    yield from validate_labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
    yield from validate_tolerations(scheduling.get("tolerations", ()), "scheduling.tolerations")


def validate_runtime_class_update(new: Spec, old: Spec) -> FieldErrors:
    return validate_immutable(new["handler"], old["handler"], "handler")
