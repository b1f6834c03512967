"""Validation of autoscalers and disruption budgets."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from konverge.objects.names import path_segment_errors
from konverge.objects.quantities import Quantity
from konverge_cluster.api.field_errors import forbidden, invalid, required, unsupported
from konverge_cluster.builtins.validation.labels import validate_label_selector
from konverge_cluster.builtins.validation.resources import validate_container_resource_name
from konverge_cluster.builtins.validation.values import (
    FieldErrors,
    validate_dns_label,
    validate_int_or_percent,
    validate_name,
    validate_nonnegative,
)

__all__ = [
    "validate_autoscaler",
    "validate_autoscaler_status",
    "validate_disruption_budget",
    "validate_disruption_budget_status",
]

Spec = dict[str, Any]

_SOURCES: Final = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_TARGETS: Final = ("Utilization", "Value", "AverageValue")
_RAW_OR_UTILIZATION: Final = "must set either a target raw value or a target utilization"


def validate_autoscaler(new: Spec) -> FieldErrors:
    spec = new["spec"]
    low, high = spec["minReplicas"], spec["maxReplicas"]
    if low < 1:
        yield invalid("spec.minReplicas", low, "must be greater than or equal to 1")
    if not high:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif high < 0:
        yield invalid("spec.maxReplicas", high, "must be greater than or equal to 1")
    if high < low:
        yield invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`")
    yield from _validate_reference(spec["scaleTargetRef"], "spec.scaleTargetRef")
    version = spec["scaleTargetRef"].get("apiVersion", "")
    if "/" not in version:
        yield invalid("spec.scaleTargetRef.apiVersion", version, "apiVersion must specify API group")
    yield from _validate_metrics(spec["metrics"], low)
    for name in ("scaleUp", "scaleDown"):
        if name in spec.get("behavior", {}):
            yield from _validate_rules(spec["behavior"][name], f"spec.behavior.{name}")


def _validate_reference(reference: Spec, path: str) -> FieldErrors:
    for name in ("kind", "name"):
        if not reference[name]:
            yield required(f"{path}.{name}")
        else:
            yield from validate_name(reference[name], path_segment_errors, f"{path}.{name}")
    version = reference.get("apiVersion", "")
    if version.count("/") > 1:
        yield invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")


def _validate_metrics(metrics: list[Spec], low: int) -> FieldErrors:
    for index, metric in enumerate(metrics):
        yield from _validate_metric(metric, f"spec.metrics[{index}]")
    if low == 0 and not any(metric["type"] in ("Object", "External") for metric in metrics):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden("spec.metrics", text)


def _validate_metric(metric: Spec, path: str) -> FieldErrors:
    kind = metric["type"]
    allowed = sorted(_SOURCES)
    if not kind:
        yield required(f"{path}.type", "must specify a metric source type")
    if kind not in _SOURCES:
        yield unsupported(f"{path}.type", kind, allowed)
    present = [name for name in _SOURCES.values() if name in metric]
    for name in present[:1]:
        yield from _CHECKS[name](metric[name], f"{path}.{name}")
    expected = _SOURCES.get(kind)
    if expected is None:
        yield unsupported(f"{path}.type", kind, allowed)
    elif expected not in metric:
        yield required(f"{path}.{expected}", "must populate information for the given metric source")
    if len(present) != 1:
        for name in present:
            if name != expected:
                yield forbidden(f"{path}.{name}", "must populate the given metric source only")


def _validate_object(source: Spec, path: str) -> FieldErrors:
    yield from _validate_reference(source["describedObject"], f"{path}.describedObject")
    yield from _validate_identified_target(source, path)
    target = source["target"]
    if "value" not in target and "averageValue" not in target:
        yield required(f"{path}.target.averageValue", "must set either a target value or averageValue")


def _validate_external(source: Spec, path: str) -> FieldErrors:
    yield from _validate_identified_target(source, path)
    target = source["target"]
    if "value" not in target and "averageValue" not in target:
        text = "must set either a target value for metric or a per-pod target"
        yield required(f"{path}.target.averageValue", text)
    if "value" in target and "averageValue" in target:
        text = "may not set both a target value for metric and a per-pod target"
        yield forbidden(f"{path}.target.value", text)


def _validate_pods(source: Spec, path: str) -> FieldErrors:
    yield from _validate_identified_target(source, path)
    if "averageValue" not in source["target"]:
        yield required(f"{path}.target.averageValue", "must specify a positive target averageValue")


def _validate_resource(source: Spec, path: str) -> FieldErrors:
    if not source["name"]:
        yield required(f"{path}.name", "must specify a resource name")
    yield from _validate_resource_target(source["target"], f"{path}.target")


def _validate_container_resource(source: Spec, path: str) -> FieldErrors:
    if not source["name"]:
        yield required(f"{path}.name", "must specify a resource name")
    else:
        yield from validate_container_resource_name(source["name"], f"{path}.name")
    if not source["container"]:
        yield required(f"{path}.container", "must specify a container")
    else:
        yield from validate_dns_label(source["container"], f"{path}.container")
    yield from _validate_resource_target(source["target"], f"{path}.target")


_CHECKS: Final[dict[str, Callable[[Spec, str], FieldErrors]]] = {
    "object": _validate_object,
    "external": _validate_external,
    "pods": _validate_pods,
    "resource": _validate_resource,
    "containerResource": _validate_container_resource,
}


def _validate_identified_target(source: Spec, path: str) -> FieldErrors:
    name = source["metric"]["name"]
    if not name:
        yield required(f"{path}.metric.name", "must specify a metric name")
    else:
        yield from validate_name(name, path_segment_errors, f"{path}.metric.name")
    yield from _validate_target(source["target"], f"{path}.target")


def _validate_resource_target(target: Spec, path: str) -> FieldErrors:
    yield from _validate_target(target, path)
    has_raw, has_utilization = "averageValue" in target, "averageUtilization" in target
    if not has_raw and not has_utilization:
        yield required(f"{path}.averageUtilization", _RAW_OR_UTILIZATION)
    if has_raw and has_utilization:
        text = "may not set both a target raw value and a target utilization"
        yield forbidden(f"{path}.averageValue", text)


def _validate_target(target: Spec, path: str) -> FieldErrors:
    if not target["type"]:
        yield required(f"{path}.type", "must specify a metric target type")
    if target["type"] not in _TARGETS:
        yield invalid(f"{path}.type", target["type"], "must be either Utilization, Value, or AverageValue")
    for name in ("value", "averageValue"):
        if name in target and Quantity(target[name]) <= 0:
            yield invalid(f"{path}.{name}", target[name], "must be positive")
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        yield invalid(f"{path}.averageUtilization", utilization, "must be greater than 0")


def _validate_rules(rules: Spec, path: str) -> FieldErrors:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        yield invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    if window is not None and window > 3600:
        yield invalid(f"{path}.stabilizationWindowSeconds", window, "must be less than or equal to 3600")
    if rules["selectPolicy"] not in ("Disabled", "Max", "Min"):
        yield unsupported(f"{path}.selectPolicy", rules["selectPolicy"], ("Disabled", "Max", "Min"))
    if not rules.get("policies"):
        yield required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(rules.get("policies", ())):
        yield from _validate_policy(policy, f"{path}.policies[{index}]")


def _validate_policy(policy: Spec, path: str) -> FieldErrors:
    if policy["type"] not in ("Percent", "Pods"):
        yield unsupported(f"{path}.type", policy["type"], ("Percent", "Pods"))
    for name in ("value", "periodSeconds"):
        if policy[name] <= 0:
            yield invalid(f"{path}.{name}", policy[name], "must be greater than zero")
    if policy["periodSeconds"] > 1800:
        yield invalid(f"{path}.periodSeconds", policy["periodSeconds"], "must be less than or equal to 1800")


def validate_autoscaler_status(new: Spec, _old: Spec) -> FieldErrors:
    for name in ("currentReplicas", "desiredReplicas"):
        yield from validate_nonnegative(new["status"].get(name), f"status.{name}")


def validate_disruption_budget(new: Spec) -> FieldErrors:
    spec = new["spec"]
    both = [name for name in ("minAvailable", "maxUnavailable") if name in spec]
    if len(both) == 2:
        value = {
            "MinAvailable": spec["minAvailable"],
            "Selector": spec.get("selector"),
            "MaxUnavailable": spec["maxUnavailable"],
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        yield invalid("spec", value, "minAvailable and maxUnavailable cannot be both set")
    for name in both:
        value, path = spec[name], f"spec.{name}"
        yield from validate_int_or_percent(value, path)
        if isinstance(value, str) and re.fullmatch("[0-9]+%", value) and int(value[:-1]) > 100:
            yield invalid(path, value, "must not be greater than 100%")
    yield from validate_label_selector(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in ("AlwaysAllow", "IfHealthyBudget"):
        yield unsupported("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))


def validate_disruption_budget_status(new: Spec, _old: Spec) -> FieldErrors:
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        yield from validate_nonnegative(new["status"].get(name), f"status.{name}")
