"""The workload objects of an operator, hardened to meet the restricted pod security standard."""

from __future__ import annotations

from typing import Any

from konverge.cli.manifests.release import Release
from konverge.objects import AnyObject, Unstructured

__all__ = ["METRICS_PORT", "PROBE_PORT", "WEBHOOK_PORT", "namespace_of", "workload_of"]

METRICS_PORT = 8443
PROBE_PORT = 8081
WEBHOOK_PORT = 9443
_USER = 65532
_GRACE = 20


def namespace_of(release: Release) -> AnyObject:
    """Return the namespace of the operator, which admits restricted pods only."""
    namespace = release.new_object("Namespace", release.namespace, cluster=True)
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    namespace.metadata["labels"] = {**release.shared_labels, **levels}
    return namespace


def workload_of(release: Release) -> list[AnyObject]:
    """Return the Deployment, its Services and its disruption budget."""
    selector = release.selector
    # An unhealthy pod provides nothing worth protecting, so it must not block draining its node.
    budget = {"minAvailable": 1, "selector": {"matchLabels": selector}, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    objects: list[AnyObject] = [
        _deployment(release, selector),
        release.new_object(
            "Service",
            f"{release.name}-metrics",
            spec={"selector": selector, "ports": [{"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"}]},
        ),
    ]
    if release.replicas > 1:
        objects.append(release.new_object("PodDisruptionBudget", release.name, api="policy/v1", spec=budget))
    if release.operator.webhooks:
        # The start of the operator may itself need the webhooks, so they must be reachable before the pod is ready.
        spec = {
            "selector": selector,
            "publishNotReadyAddresses": True,
            "ports": [{"name": "webhooks", "port": 443, "targetPort": "webhooks"}],
        }
        objects.append(release.new_object("Service", f"{release.name}-webhooks", spec=spec))
    return objects


def _deployment(release: Release, selector: dict[str, str]) -> Unstructured:
    pod = {
        "serviceAccountName": release.name,
        "automountServiceAccountToken": True,
        # Otherwise any Service named konverge-metrics in the namespace would set KONVERGEMETRICS_PORT.
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _GRACE + 10,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [_spread_constraint(selector)],
        "containers": [_container(release)],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}],
    }
    return release.new_object(
        "Deployment",
        release.name,
        api="apps/v1",
        spec={
            "replicas": release.replicas,
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": release.labels}, "spec": pod},
        },
    )


def _spread_constraint(selector: dict[str, str]) -> dict[str, Any]:
    """Return a constraint that spreads replicas over nodes if possible, so that losing a node loses one replica."""
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector},
    }


def _container(release: Release) -> dict[str, Any]:
    ports = [{"name": "metrics", "containerPort": METRICS_PORT}, {"name": "probes", "containerPort": PROBE_PORT}]
    if release.operator.webhooks:
        ports.append({"name": "webhooks", "containerPort": WEBHOOK_PORT})
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
    arguments = ["run", release.target, "--leader-elect", f"--metrics-port={METRICS_PORT}"]
    arguments += [f"--probe-port={PROBE_PORT}", f"--grace={_GRACE}", "--log-format=json"]
    if release.insecure_metrics:
        arguments.append("--insecure-metrics")
    if release.name != release.operator.name:
        arguments.append(f"--installation={release.name}")
    arguments += [f"--namespace={namespace}" for namespace in release.namespaces]
    if release.operator.webhooks:
        arguments.append(f"--webhook-port={WEBHOOK_PORT}")
    return arguments


def _from_pod(name: str, path: str) -> dict[str, Any]:
    # apiVersion is set because the server's default for it would make a server-side apply after a plain one conflict.
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def _probe(path: str, **seconds: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "probes"}, **seconds}
