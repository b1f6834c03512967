"""Parts of the manifests that the operators share: labels, and pods that pass Pod Security *restricted*."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

from konverge.objects import Resource, from_wire, kind_of

__all__ = ["Json", "child", "disruption_budget", "labels", "network_policy", "pod_spec", "selector"]

T = TypeVar("T", bound=Resource)

Json: TypeAlias = dict[str, Any]

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
