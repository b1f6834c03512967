"""Strategies of HorizontalPodAutoscalers: stored as v2; v1 has the CPU target, and annotations for the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from konverge.objects.kinds import Kind
from konverge_cluster.api.field_errors import FieldError
from konverge_cluster.api.strategy import Document
from konverge_cluster.builtins.defaults import autoscaling
from konverge_cluster.builtins.rows.policies import autoscaler_cells
from konverge_cluster.builtins.schemas import LazyTopologies
from konverge_cluster.builtins.strategy import BuiltinStrategy
from konverge_cluster.builtins.validation import autoscaling as rules

__all__ = ["HorizontalPodAutoscalerStrategy", "HorizontalPodAutoscalerV1Strategy"]

_PLURAL: Final = "horizontalpodautoscalers"
_VERSIONS: Final = tuple(Kind("autoscaling", v, "HorizontalPodAutoscaler", _PLURAL) for v in ("v1", "v2"))
_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
# Annotations of v1 for fields that only v2 has: annotation -> (section, field).
_ANNOTATED_FIELDS: Final = {
    "metrics": ("spec", "metrics"),
    "behavior": ("spec", "behavior"),
    "current-metrics": ("status", "currentMetrics"),
    "conditions": ("status", "conditions"),
}


class HorizontalPodAutoscalerStrategy(BuiltinStrategy):
    """HorizontalPodAutoscalers of autoscaling/v2."""

    set_defaults = staticmethod(autoscaling.default_autoscaler)
    encoding_version = "autoscaling/v2"
    check = staticmethod(rules.validate_autoscaler)
    check_status = staticmethod(rules.validate_autoscaler_status)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.topologies = LazyTopologies(_VERSIONS)

    def convert(self, document: Document, api_version: str) -> Document:
        converted = _to_v1(document) if api_version == "autoscaling/v1" else dict(document)
        return {**converted, "apiVersion": api_version}


class HorizontalPodAutoscalerV1Strategy(BuiltinStrategy):
    """HorizontalPodAutoscalers of autoscaling/v1, validated as v2."""

    set_defaults = staticmethod(autoscaling.default_autoscaler_v1)
    encoding_version = "autoscaling/v1"
    check_status = staticmethod(rules.validate_autoscaler_status)

    @staticmethod
    def check(new: Document) -> Iterable[FieldError]:
        return rules.validate_autoscaler(_to_v2(new))

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.topologies = LazyTopologies(_VERSIONS)

    def cells(self, document: Document, now: float) -> list[Any]:
        return autoscaler_cells(_to_v2(document), now)

    async def from_storage(self, stored: Sequence[tuple[Document, object]]) -> list[Document]:
        return [_to_v1(document) for document, _ in stored]

    async def to_storage(self, document: Document) -> tuple[Document, object]:
        return _to_v2(document), HorizontalPodAutoscalerStrategy.encoding_version

    def convert(self, document: Document, api_version: str) -> Document:
        converted = _to_v2(document) if api_version == "autoscaling/v2" else dict(document)
        return {**converted, "apiVersion": api_version}


def _is_cpu_target(metric: Document) -> bool:
    resource = metric.get("resource", {})
    return metric.get("type") == "Resource" and resource.get("name") == "cpu"


def _to_v1(document: Document) -> Document:
    spec, status = dict(document["spec"]), dict(document["status"])
    annotations = dict(document["metadata"].get("annotations", {}))
    metrics = spec.pop("metrics", [])
    for metric in metrics:
        target = metric["resource"]["target"].get("averageUtilization") if _is_cpu_target(metric) else None
        if target is not None:
            spec["targetCPUUtilizationPercentage"] = target
            metrics = [each for each in metrics if each is not metric]
            break
    current = [metric for metric in status.get("currentMetrics") or () if _is_cpu_target(metric)]
    if current and "averageUtilization" in current[-1]["resource"].get("current", {}):
        status["currentCPUUtilizationPercentage"] = current[-1]["resource"]["current"]["averageUtilization"]
    parts: Document = {"spec": spec | {"metrics": metrics}, "status": {"currentReplicas": 0} | status}
    for name, (section, field) in _ANNOTATED_FIELDS.items():
        value = parts[section].pop(field, None)
        if value:
            annotations[_PREFIX + name] = msgspec.json.encode(value).decode()
    return _with_annotations(document, parts, annotations)


def _to_v2(document: Document) -> Document:
    spec, status = dict(document["spec"]), dict(document["status"])
    annotations = dict(document["metadata"].get("annotations", {}))
    parts: Document = {"spec": spec, "status": status}
    for name, (section, field) in _ANNOTATED_FIELDS.items():
        value = _decode_annotation(annotations.pop(_PREFIX + name, ""))
        if value:
            parts[section][field] = value
    percentage = spec.pop("targetCPUUtilizationPercentage", None)
    if percentage is not None:
        target = {"type": "Utilization", "averageUtilization": percentage}
        metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
        spec["metrics"] = [*spec.get("metrics", ()), metric]
    percentage = status.pop("currentCPUUtilizationPercentage", None)
    if "currentMetrics" not in status:
        resource = {"name": "cpu", "current": {"averageUtilization": percentage}}
        status["currentMetrics"] = None if percentage is None else [{"type": "Resource", "resource": resource}]
    # v2 omits a zero that v1 prints.
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)
    return _with_annotations(document, parts, annotations)


def _decode_annotation(text: str) -> Any:
    try:
        return msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        return None


def _with_annotations(document: Document, parts: Document, annotations: Document) -> Document:
    metadata = dict(document["metadata"])
    if annotations:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    return {**document, "metadata": metadata, **parts}
