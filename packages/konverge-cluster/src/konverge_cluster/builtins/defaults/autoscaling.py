"""Defaults of HorizontalPodAutoscalers, in both versions."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["default_autoscaler", "default_autoscaler_v1"]

_OTHER_METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"


def default_autoscaler(autoscaler: dict[str, Any]) -> None:
    spec = autoscaler["spec"]
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if "behavior" in spec:
        behavior = spec["behavior"]
        behavior["scaleUp"] = _up_rules() | behavior.get("scaleUp", {})
        behavior["scaleDown"] = _down_rules() | behavior.get("scaleDown", {})


def _up_rules() -> dict[str, Any]:
    policies = [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ]
    return {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": policies}


def _down_rules() -> dict[str, Any]:
    return {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def default_autoscaler_v1(autoscaler: dict[str, Any]) -> None:
    """Default an autoscaling/v1 object. It has a CPU target; other metrics are in an annotation."""
    autoscaler["spec"].setdefault("minReplicas", 1)
    if _OTHER_METRICS not in autoscaler["metadata"].get("annotations", ()):
        autoscaler["spec"].setdefault("targetCPUUtilizationPercentage", 80)
