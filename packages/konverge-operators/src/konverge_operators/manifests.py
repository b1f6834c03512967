"""Parts of the manifests that the operators share: labels, and pods that pass Pod Security *restricted*."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

from konverge.objects import Kind, Resource, Unstructured, from_wire, kind_of

__all__ = [
    "HTTP_ROUTE",
    "POD_MONITOR",
    "Json",
    "child",
    "deployment_spec",
    "disruption_budget",
    "http_container",
    "ingress_spec",
    "labels",
    "network_policy",
    "pod_spec",
    "route_spec",
    "scrape_annotations",
    "secret_variable",
    "selector",
    "service_spec",
    "unstructured",
]

T = TypeVar("T", bound=Resource)

Json: TypeAlias = dict[str, Any]

HTTP_ROUTE = Kind("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes")
POD_MONITOR = Kind("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors")

_NON_ROOT = 65532  # the user that distroless images call nonroot


def selector(application: str, component: str) -> dict[str, str]:
    """Return the labels that select the pods of a component. They never change: selectors are immutable."""
    return {"app.kubernetes.io/instance": application, "app.kubernetes.io/component": component}


def labels(application: str, component: str, *, operator: str) -> dict[str, str]:
    """Return the labels of the children of a component."""
    name = operator.removesuffix("-operator")
    managed = {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": operator}
    return {**managed, **selector(application, component)}


def child(
    kind: type[T], name: str, labels: dict[str, str], annotations: dict[str, str] | None = None, **fields: Any
) -> T:
    """Return a child of a kind; `fields` are those beside the metadata, with wire names."""
    metadata = {"name": name, "labels": labels, **({"annotations": annotations} if annotations else {})}
    identity = kind_of(kind)
    return from_wire(kind, {"apiVersion": identity.api_version, "kind": identity.kind, "metadata": metadata, **fields})


def unstructured(
    kind: Kind, name: str, labels: dict[str, str], spec: Json, annotations: dict[str, str] | None = None
) -> Unstructured:
    """Return a child of a kind that has no class here."""
    metadata = {"name": name, "labels": labels, **({"annotations": annotations} if annotations else {})}
    return Unstructured(apiVersion=kind.api_version, kind=kind.kind, metadata=metadata, spec=spec)


def deployment_spec(selected: dict[str, str], template: Json, *, progress_deadline: int, strategy: Json) -> Json:
    """Return the spec of a Deployment that is never paused, without replicas."""
    return {
        "paused": False,
        "progressDeadlineSeconds": progress_deadline,
        "strategy": strategy,
        "selector": {"matchLabels": selected},
        "template": template,
    }


def service_spec(selected: dict[str, str], port: int, name: str = "http") -> Json:
    """Return the spec of a Service for the port of this name of the selected pods."""
    return {"selector": selected, "ports": [{"name": name, "port": port, "targetPort": name}]}


def secret_variable(name: str, secret: str, key: str) -> Json:
    """Return an environment variable with a value of a Secret."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def scrape_annotations(port: int, path: str) -> dict[str, str]:
    """Return the annotations of a Service for a Prometheus without its operator."""
    values = {"scrape": "true", "port": str(port), "path": path}
    return {f"prometheus.io/{name}": value for name, value in values.items()}


def ingress_spec(
    service: str, *, host: str | None, path: str = "/", class_name: str | None = None, tls_secret: str | None = None
) -> Json:
    """Return the spec of an Ingress that routes the requests of a host, or of all, to the port http of a Service."""
    backend = {"service": {"name": service, "port": {"name": "http"}}}
    rule: Json = {"http": {"paths": [{"path": path, "pathType": "Prefix", "backend": backend}]}}
    tls: Json = {"secretName": tls_secret}
    if host is not None:
        rule["host"], tls["hosts"] = host, [host]
    spec: Json = {"rules": [rule], "ingressClassName": class_name, "tls": [tls] if tls_secret is not None else None}
    return {name: value for name, value in spec.items() if value is not None}


def route_spec(gateway: Json, service: str, port: int, *, host: str | None, path: str = "/") -> Json:
    """Return the spec of an HTTPRoute that attaches a Service to a Gateway."""
    matches = [{"path": {"type": "PathPrefix", "value": path}}]
    rules = [{"matches": matches, "backendRefs": [{"name": service, "port": port}]}]
    return {"parentRefs": [gateway], "rules": rules, **({"hostnames": [host]} if host is not None else {})}


def http_container(name: str, image: str, *, port: int, env: list[Json], resources: Json) -> Json:
    """Return a container that serves HTTP at the port that its variable PORT names; probes only connect to it."""
    probe = {"tcpSocket": {"port": "http"}}
    return {
        "name": name,
        "image": image,
        "ports": [{"name": "http", "containerPort": port}],
        "env": [*env, {"name": "PORT", "value": str(port)}],
        "resources": resources,
        "startupProbe": {**probe, "periodSeconds": 1, "failureThreshold": 300},
        "readinessProbe": probe,
        "livenessProbe": {**probe, "failureThreshold": 6},
        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},  # until no Service sends requests any more
    }


def pod_spec(container: Json, spread_by: dict[str, str], *, user: int = _NON_ROOT, **fields: Any) -> Json:
    """Return a pod with one container: not root, no capabilities, a read-only root, no token, spread over nodes."""
    restricted = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": spread_by},
    }
    mounts = [*container.get("volumeMounts", ()), {"name": "tmp", "mountPath": "/tmp"}]
    identity = {"runAsNonRoot": True, "runAsUser": user, "fsGroup": user, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "automountServiceAccountToken": False,
        "securityContext": identity,
        "containers": [{**container, "securityContext": restricted, "volumeMounts": mounts}],
        "topologySpreadConstraints": [spread],
        **fields,
        "volumes": [*fields.get("volumes", ()), {"name": "tmp", "emptyDir": {}}],
    }


def disruption_budget(selected: dict[str, str]) -> Json:
    """Return the spec of a budget that lets one pod at a time be evicted."""
    return {"maxUnavailable": 1, "selector": {"matchLabels": selected}}


def network_policy(selected: dict[str, str], *, allowed: dict[str, str], port: int) -> Json:
    """Return the spec of a policy by which only the allowed pods of the namespace reach a port of the selected ones."""
    return {
        "podSelector": {"matchLabels": selected},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {"matchLabels": allowed}}], "ports": [{"port": port}]}],
    }
