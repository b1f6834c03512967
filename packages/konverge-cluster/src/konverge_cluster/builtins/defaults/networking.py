"""Defaults of services, endpoints, network policies and ingress classes."""

from __future__ import annotations

from typing import Any, Final

__all__ = [
    "accepts_external_traffic",
    "default_endpoint_slice",
    "default_endpoints",
    "default_ingress_class",
    "default_network_policy",
    "default_service",
]

_AFFINITY_SECONDS: Final = 3 * 60 * 60


def accepts_external_traffic(spec: dict[str, Any]) -> bool:
    """Report whether a service accepts traffic from outside the cluster."""
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def default_service(service: dict[str, Any]) -> None:
    spec = service["spec"]
    _default_affinity(spec)
    kind = spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        if port["targetPort"] in (0, ""):
            port["targetPort"] = port["port"]
    if accepts_external_traffic(spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for ingress in service["status"]["loadBalancer"].get("ingress", ()):
            if ingress.get("ip"):
                ingress.setdefault("ipMode", "VIP")


def _default_affinity(spec: dict[str, Any]) -> None:
    affinity = spec.setdefault("sessionAffinity", "None")
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        timeout = spec.get("sessionAffinityConfig", {}).get("clientIP", {}).get("timeoutSeconds")
        seconds = _AFFINITY_SECONDS if timeout is None else timeout
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": seconds}}


def default_endpoints(endpoints: dict[str, Any]) -> None:
    for subset in endpoints.get("subsets", ()):
        for port in subset.get("ports", ()):
            port.setdefault("protocol", "TCP")


def default_endpoint_slice(endpoint_slice: dict[str, Any]) -> None:
    for port in endpoint_slice["ports"] or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def default_network_policy(policy: dict[str, Any]) -> None:
    spec = policy["spec"]
    for rule in (*spec.get("ingress", ()), *spec.get("egress", ())):
        for port in rule.get("ports", ()):
            port.setdefault("protocol", "TCP")
    if "policyTypes" not in spec:
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def default_ingress_class(ingress_class: dict[str, Any]) -> None:
    parameters = ingress_class["spec"].get("parameters")
    if parameters is not None and parameters["scope"] is None:
        parameters["scope"] = "Cluster"
