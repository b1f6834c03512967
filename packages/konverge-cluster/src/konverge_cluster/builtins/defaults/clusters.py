"""Defaults of namespaces, nodes, limit ranges and quotas."""

from __future__ import annotations

from typing import Any, Final

from konverge_cluster.builtins.defaults.resources import round_resources

__all__ = ["NAME_LABEL", "default_limit_range", "default_namespace", "default_node", "default_resource_quota"]

NAME_LABEL: Final = "kubernetes.io/metadata.name"


def default_namespace(namespace: dict[str, Any]) -> None:
    metadata = namespace["metadata"]
    if metadata.get("name"):
        metadata.setdefault("labels", {})[NAME_LABEL] = metadata["name"]
    namespace["status"].setdefault("phase", "Active")


def default_node(node: dict[str, Any]) -> None:
    spec, status = node["spec"], node["status"]
    # podCIDR is the first of podCIDRs; setting one of them sets both.
    ranges = spec.get("podCIDRs") or ([spec["podCIDR"]] if spec.get("podCIDR") else [])
    if ranges:
        spec["podCIDR"], spec["podCIDRs"] = ranges[0], ranges
    if "capacity" in status and "allocatable" not in status:
        status["allocatable"] = dict(status["capacity"])
    round_resources(status.get("capacity"), status.get("allocatable"))


def default_limit_range(limits: dict[str, Any]) -> None:
    for item in limits["spec"]["limits"] or ():
        if item["type"] == "Container":
            _default_container_limits(item)
        names = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
        round_resources(*(item.get(name) for name in names))


def _default_container_limits(item: dict[str, Any]) -> None:
    default = {**item.get("max", {}), **item.get("default", {})}
    request = {**item.get("min", {}), **default, **item.get("defaultRequest", {})}
    if default:
        item["default"] = default
    if request:
        item["defaultRequest"] = request


def default_resource_quota(quota: dict[str, Any]) -> None:
    round_resources(quota["spec"].get("hard"), quota["status"].get("hard"), quota["status"].get("used"))
