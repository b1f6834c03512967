"""Short constructors of workload objects: pods in a state, replica sets, deployments, jobs, services."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from konverge.k8s.apps.v1 import Deployment, ReplicaSet, StatefulSet
from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import Pod, Service
from konverge.objects import from_wire

__all__ = ["NOW", "at", "deployment", "job", "pod", "replica_set", "service", "stateful_set"]

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def at(seconds: float) -> datetime:
    """Return the time `seconds` after NOW."""
    return NOW + timedelta(seconds=seconds)


def wire_time(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def metadata(name: str, **more: Any) -> dict[str, Any]:
    made = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": wire_time(at(-3600))}
    return {**made, **{key: value for key, value in more.items() if value is not None}}


def owned_by(owner: Any, *, controller: bool = True) -> list[dict[str, Any]]:
    reference = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    return [{**reference, "controller": controller, "blockOwnerDeletion": True}]


def pod(
    name: str,
    *,
    phase: str = "Running",
    ready: datetime | bool | None = None,
    node: str = "n1",
    deleting: datetime | None = None,
    spec: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **more: Any,
) -> Pod:
    """Return a pod; `ready` is since when it is ready, or whether."""
    since = ready if isinstance(ready, datetime) else at(-600)
    word = "True" if ready else "False"
    conditions = (
        [{"type": "Ready", "status": word, "lastTransitionTime": wire_time(since)}] if ready is not None else []
    )
    gone = {"deletionTimestamp": wire_time(deleting), "deletionGracePeriodSeconds": 30} if deleting else {}
    return from_wire(
        Pod,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata(name, labels=more.pop("labels", {"app": "web"}), **gone, **more),
            "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": node, **(spec or {})},
            "status": {"phase": phase, "conditions": conditions, **(status or {})},
        },
    )


def replica_set(
    name: str, size: int = 3, *, available: int | None = None, template: Any = None, **more: Any
) -> ReplicaSet:
    """Return a replica set whose status has observed its spec; `available` is all by default."""
    status = {"replicas": size, "observedGeneration": 1, "terminatingReplicas": 0, **more.pop("status", {})}
    status["availableReplicas"] = status["readyReplicas"] = size if available is None else available
    return from_wire(
        ReplicaSet,
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": metadata(name, generation=1, **more),
            "spec": {
                "replicas": size,
                "selector": {"matchLabels": {"app": "web"}},
                "template": template or TEMPLATE,
            },
            "status": status,
        },
    )


def deployment(replicas: int = 3, *, status: dict[str, Any] | None = None, **more: Any) -> Deployment:
    """Return a deployment called web; other arguments go into its spec, `annotations` into its metadata."""
    noted = more.pop("annotations", None)
    return from_wire(
        Deployment,
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata("web", generation=1, annotations=noted),
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "web"}},
                "template": TEMPLATE,
                "progressDeadlineSeconds": 600,
                "revisionHistoryLimit": 10,
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
                },
                **more,
            },
            "status": status or {},
        },
    )


def job(*, status: dict[str, Any] | None = None, deleting: datetime | None = None, **spec: Any) -> Job:
    """Return a job called work, of one completion by default."""
    gone = {"deletionTimestamp": wire_time(deleting)} if deleting else {}
    inside = {"containers": [{"name": "c"}], "restartPolicy": spec.pop("restartPolicy", "Never")}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": inside}
    whole = {"completions": 1, "parallelism": 1, "backoffLimit": 6, "suspend": False, **spec}
    return from_wire(
        Job,
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata("work", generation=1, **gone),
            "spec": {
                "template": template,
                "selector": {"matchLabels": {"app": "web"}},
                **{key: value for key, value in whole.items() if value is not None},
            },
            "status": status or {},
        },
    )


def service(*ports: dict[str, Any], labels: dict[str, str] | None = None, **spec: Any) -> Service:
    """Return a service called web."""
    offered = [{"protocol": "TCP", **port} for port in ports]
    whole = {"clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"], "selector": {"app": "web"}, "ports": offered, **spec}
    return from_wire(
        Service,
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata("web", labels=labels), "spec": whole},
    )


def stateful_set(replicas: int = 3, *, status: dict[str, Any] | None = None, **spec: Any) -> StatefulSet:
    """Return a stateful set called db, with the defaults of the server."""
    return from_wire(
        StatefulSet,
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": metadata("db", generation=1),
            "spec": {
                "replicas": replicas,
                "serviceName": "db",
                "selector": {"matchLabels": {"app": "web"}},
                "template": TEMPLATE,
                "podManagementPolicy": "OrderedReady",
                "revisionHistoryLimit": 10,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                **spec,
            },
            "status": status or {},
        },
    )
