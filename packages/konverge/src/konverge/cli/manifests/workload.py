"""The operator as a workload: hardened so that the restricted pod security level takes it."""

from __future__ import annotations

from typing import Any

from konverge.cli.manifests.release import Release
from konverge.objects import AnyObject, Unstructured

__all__ = ["monitor_of", "namespace_of", "workload_of"]

_METRICS = 8080
_WEBHOOKS = 9443
_USER = 65532
_GRACE = 20


def namespace_of(release: Release) -> AnyObject:
    """Give the namespace that it lives in, where only restricted pods may run."""
    made = release.made("Namespace", release.namespace, cluster=True)
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    made.metadata["labels"] = {**release.labels, **levels}
    return made


def workload_of(release: Release) -> list[AnyObject]:
    """Give the Deployment, the Services in front of it, and its disruption budget."""
    selector = {"app.kubernetes.io/name": release.name}
    # One that is not healthy guards nothing, and must not keep a node from being drained.
    budget = {"minAvailable": 1, "selector": {"matchLabels": selector}, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    objects: list[AnyObject] = [
        _deployment(release, selector),
        release.made(
            "Service",
            f"{release.name}-metrics",
            spec={"selector": selector, "ports": [{"name": "metrics", "port": _METRICS, "targetPort": "metrics"}]},
        ),
    ]
    if release.replicas > 1:
        objects.append(release.made("PodDisruptionBudget", release.name, api="policy/v1", spec=budget))
    if release.operator.webhooks:
        # Its own start may need its webhooks: they are found before it is ready.
        spec = {
            "selector": selector,
            "publishNotReadyAddresses": True,
            "ports": [{"name": "webhooks", "port": 443, "targetPort": "webhooks"}],
        }
        objects.append(release.made("Service", f"{release.name}-webhooks", spec=spec))
    return objects


def monitor_of(release: Release) -> AnyObject:
    """Give a ServiceMonitor for the Prometheus operator."""
    return release.made(
        "ServiceMonitor",
        release.name,
        api="monitoring.coreos.com/v1",
        spec={
            "selector": {"matchLabels": {"app.kubernetes.io/name": release.name}},
            "endpoints": [{"port": "metrics", "path": "/metrics", "interval": "30s"}],
        },
    )


def _deployment(release: Release, selector: dict[str, str]) -> Unstructured:
    pod = {
        "serviceAccountName": release.name,
        "automountServiceAccountToken": True,
        # Else a Service called konverge-metrics, of whomever, would set KONVERGE_METRICS_PORT.
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _GRACE + 10,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [_apart(selector)],
        "containers": [_container(release)],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}],
    }
    return release.made(
        "Deployment",
        release.name,
        api="apps/v1",
        spec={
            "replicas": release.replicas,
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": release.labels}, "spec": pod},
        },
    )


def _apart(selector: dict[str, str]) -> dict[str, Any]:
    """Replicas on different nodes where there are some: a node that goes takes one of them with it."""
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector},
    }


def _container(release: Release) -> dict[str, Any]:
    ports = [{"name": "metrics", "containerPort": _METRICS}]
    if release.operator.webhooks:
        ports.append({"name": "webhooks", "containerPort": _WEBHOOKS})
    return {
        "name": "operator",
        "image": release.image,
        "args": _arguments(release),
        "env": [_from_pod("POD_NAME", "metadata.name"), _from_pod("POD_NAMESPACE", "metadata.namespace")],
        "ports": ports,
        "livenessProbe": _probe("/healthz", initialDelaySeconds=10, periodSeconds=10, timeoutSeconds=5),
        "readinessProbe": _probe("/readyz", periodSeconds=5, timeoutSeconds=5),
        "resources": {"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }


def _arguments(release: Release) -> list[str]:
    arguments = ["run", release.target, "--leader-elect", f"--metrics-port={_METRICS}", f"--grace={_GRACE}"]
    arguments.append("--log-format=json")
    arguments += [f"--namespace={namespace}" for namespace in release.namespaces]
    if release.operator.webhooks:
        arguments.append(f"--webhook-port={_WEBHOOKS}")
    return arguments


def _from_pod(name: str, path: str) -> dict[str, Any]:
    # With its version: where the server fills it in, a server-side apply after a plain one is a conflict.
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def _probe(path: str, **times: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "metrics"}, **times}
