"""Defaults of pods and of the pod templates in workloads."""

from __future__ import annotations

from typing import Any, Final

from konverge_cluster.builtins.defaults.images import pull_policy
from konverge_cluster.builtins.defaults.resources import (
    default_requests,
    is_overcommit_allowed,
    is_pod_level,
    max_amounts,
    round_resources,
    sum_amounts,
)
from konverge_cluster.builtins.defaults.volumes import default_volume

__all__ = ["default_pod", "default_pod_spec"]

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")


def default_pod(pod: dict[str, Any]) -> None:
    """Default a pod. Unlike a template, it gets requests from limits, and host ports if it uses the host network."""
    spec = pod["spec"]
    for container in (*(spec["containers"] or ()), *spec.get("initContainers", ())):
        default_requests(container)
    if "resources" in spec:
        _default_pod_resources(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for container in (*(spec["containers"] or ()), *spec.get("initContainers", ())):
            for port in container.get("ports", ()):
                port.setdefault("hostPort", port["containerPort"])
    default_pod_spec(spec)


def default_pod_spec(spec: dict[str, Any]) -> None:
    """Default the spec of a pod or of a pod template."""
    # A feature that a 1.36 server disables by default.
    spec.pop("schedulingGroup", None)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    _default_service_account(spec)
    for volume in spec.get("volumes", ()):
        default_volume(volume)
    for name in _CONTAINER_LISTS:
        for container in spec.get(name) or ():
            _default_container(container)
    round_resources(spec.get("overhead"))
    if "resources" in spec:
        round_resources(spec["resources"].get("limits"), spec["resources"].get("requests"))


def _default_service_account(spec: dict[str, Any]) -> None:
    """Set both fields of the service account, the old one and the new one, to the same name."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def _default_container(container: dict[str, Any]) -> None:
    container.setdefault("imagePullPolicy", pull_policy(container.get("image", "")))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
    for variable in container.get("env", ()):
        source = variable.get("valueFrom", {})
        if "fieldRef" in source:
            source["fieldRef"].setdefault("apiVersion", "v1")
        if "fileKeyRef" in source:
            source["fileKeyRef"].setdefault("optional", False)
    resources = container["resources"]
    round_resources(resources.get("limits"), resources.get("requests"))
    for name in _PROBES:
        if name in container:
            _default_probe(container[name])
    if "lifecycle" in container:
        _default_lifecycle(container)


def _default_lifecycle(container: dict[str, Any]) -> None:
    lifecycle = container["lifecycle"]
    # A feature that a 1.36 server disables by default.
    if lifecycle.pop("stopSignal", None) and not lifecycle:
        del container["lifecycle"]
    for hook in lifecycle.values():
        if "httpGet" in hook:
            _default_http_get(hook["httpGet"])


def _default_probe(probe: dict[str, Any]) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    if "httpGet" in probe:
        _default_http_get(probe["httpGet"])
    if "grpc" in probe and probe["grpc"].get("service") is None:
        probe["grpc"]["service"] = ""


def _default_http_get(action: dict[str, Any]) -> None:
    action.setdefault("path", "/")
    action.setdefault("scheme", "HTTP")


def _default_pod_resources(spec: dict[str, Any]) -> None:
    resources = spec["resources"]
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    if limits or requests:
        huge_pages = {
            name: amount
            for name, amount in _total(spec, "limits").items()
            if name.startswith("hugepages-") and name not in requests
        }
        limits = resources["limits"] = {**huge_pages, **limits}
    if not limits:
        resources.pop("limits", None)
        return
    container_requests = {
        name: amount
        for name, amount in _total(spec, "requests").items()
        if is_pod_level(name) and is_overcommit_allowed(name)
    }
    capped = {name: amount for name, amount in limits.items() if is_pod_level(name)}
    requests = {**capped, **container_requests, **requests}
    if requests:
        resources["requests"] = requests


def _total(spec: dict[str, Any], kind: str) -> dict[str, str]:
    """Return the peak requests or limits of all containers: running together, or while an init container runs."""
    sidecars: dict[str, str] = {}
    peak: dict[str, str] = {}
    for container in spec.get("initContainers", ()):
        amounts = sum_amounts(sidecars, container["resources"].get(kind, {}))
        if container.get("restartPolicy") == "Always":
            sidecars = amounts
        else:
            peak = max_amounts(peak, amounts)
    total = sidecars
    for container in spec["containers"] or ():
        total = sum_amounts(total, container["resources"].get(kind, {}))
    return max_amounts(total, peak)
