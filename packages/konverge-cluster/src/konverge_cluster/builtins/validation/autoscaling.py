"""Autoscalers and disruption budgets."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from konverge.objects.names import path_segment_errors
from konverge.objects.quantities import Quantity
from konverge_cluster.api.field_errors import forbidden, invalid, required, unsupported
from konverge_cluster.builtins.validation.labels import label_selector
from konverge_cluster.builtins.validation.resources import container_resource_name
from konverge_cluster.builtins.validation.values import (
    Problems,
    dns_label,
    int_or_percent,
    named,
    not_negative,
)

__all__ = ["autoscaler", "autoscaler_status", "disruption_budget", "disruption_budget_status"]

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


def autoscaler(new: Spec) -> Problems:
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
    yield from _reference(spec["scaleTargetRef"], "spec.scaleTargetRef")
    version = spec["scaleTargetRef"].get("apiVersion", "")
    if "/" not in version:
        yield invalid("spec.scaleTargetRef.apiVersion", version, "apiVersion must specify API group")
    yield from _metrics(spec["metrics"], low)
    for name in ("scaleUp", "scaleDown"):
        if name in spec.get("behavior", {}):
            yield from _rules(spec["behavior"][name], f"spec.behavior.{name}")


def _reference(reference: Spec, path: str) -> Problems:
    for name in ("kind", "name"):
        if not reference[name]:
            yield required(f"{path}.{name}")
        else:
            yield from named(reference[name], path_segment_errors, f"{path}.{name}")
    version = reference.get("apiVersion", "")
    if version.count("/") > 1:
        yield invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")


def _metrics(metrics: list[Spec], low: int) -> Problems:
    for index, metric in enumerate(metrics):
        yield from _metric(metric, f"spec.metrics[{index}]")
    if low == 0 and not any(metric["type"] in ("Object", "External") for metric in metrics):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden("spec.metrics", text)


def _metric(metric: Spec, path: str) -> Problems:
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


def _object(source: Spec, path: str) -> Problems:
    yield from _reference(source["describedObject"], f"{path}.describedObject")
    yield from _identified_target(source, path)
    target = source["target"]
    if "value" not in target and "averageValue" not in target:
        yield required(f"{path}.target.averageValue", "must set either a target value or averageValue")


def _external(source: Spec, path: str) -> Problems:
    yield from _identified_target(source, path)
    target = source["target"]
    if "value" not in target and "averageValue" not in target:
        text = "must set either a target value for metric or a per-pod target"
        yield required(f"{path}.target.averageValue", text)
    if "value" in target and "averageValue" in target:
        text = "may not set both a target value for metric and a per-pod target"
        yield forbidden(f"{path}.target.value", text)


def _pods(source: Spec, path: str) -> Problems:
    yield from _identified_target(source, path)
    if "averageValue" not in source["target"]:
        yield required(f"{path}.target.averageValue", "must specify a positive target averageValue")


def _resource(source: Spec, path: str) -> Problems:
    if not source["name"]:
        yield required(f"{path}.name", "must specify a resource name")
    yield from _resource_target(source["target"], f"{path}.target")


def _container_resource(source: Spec, path: str) -> Problems:
    if not source["name"]:
        yield required(f"{path}.name", "must specify a resource name")
    else:
        yield from container_resource_name(source["name"], f"{path}.name")
    if not source["container"]:
        yield required(f"{path}.container", "must specify a container")
    else:
        yield from dns_label(source["container"], f"{path}.container")
    yield from _resource_target(source["target"], f"{path}.target")


_CHECKS: Final[dict[str, Callable[[Spec, str], Problems]]] = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}


def _identified_target(source: Spec, path: str) -> Problems:
    name = source["metric"]["name"]
    if not name:
        yield required(f"{path}.metric.name", "must specify a metric name")
    else:
        yield from named(name, path_segment_errors, f"{path}.metric.name")
    yield from _target(source["target"], f"{path}.target")


def _resource_target(target: Spec, path: str) -> Problems:
    yield from _target(target, path)
    has_raw, has_utilization = "averageValue" in target, "averageUtilization" in target
    if not has_raw and not has_utilization:
        yield required(f"{path}.averageUtilization", _RAW_OR_UTILIZATION)
    if has_raw and has_utilization:
        text = "may not set both a target raw value and a target utilization"
        yield forbidden(f"{path}.averageValue", text)


def _target(target: Spec, path: str) -> Problems:
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


def _rules(rules: Spec, path: str) -> Problems:
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
        yield from _policy(policy, f"{path}.policies[{index}]")


def _policy(policy: Spec, path: str) -> Problems:
    if policy["type"] not in ("Percent", "Pods"):
        yield unsupported(f"{path}.type", policy["type"], ("Percent", "Pods"))
    for name in ("value", "periodSeconds"):
        if policy[name] <= 0:
            yield invalid(f"{path}.{name}", policy[name], "must be greater than zero")
    if policy["periodSeconds"] > 1800:
        yield invalid(f"{path}.periodSeconds", policy["periodSeconds"], "must be less than or equal to 1800")


def autoscaler_status(new: Spec, _old: Spec) -> Problems:
    for name in ("currentReplicas", "desiredReplicas"):
        yield from not_negative(new["status"].get(name), f"status.{name}")


def disruption_budget(new: Spec) -> Problems:
    spec = new["spec"]
    both = [name for name in ("minAvailable", "maxUnavailable") if name in spec]
    if len(both) == 2:
        shown = {
            "MinAvailable": spec["minAvailable"],
            "Selector": spec.get("selector"),
            "MaxUnavailable": spec["maxUnavailable"],
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        yield invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for name in both:
        value, path = spec[name], f"spec.{name}"
        yield from int_or_percent(value, path)
        if isinstance(value, str) and re.fullmatch("[0-9]+%", value) and int(value[:-1]) > 100:
            yield invalid(path, value, "must not be greater than 100%")
    yield from label_selector(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in ("AlwaysAllow", "IfHealthyBudget"):
        yield unsupported("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))


def disruption_budget_status(new: Spec, _old: Spec) -> Problems:
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        yield from not_negative(new["status"].get(name), f"status.{name}")
