"""The children of a WebApp: functions that build each of them from the object."""

from __future__ import annotations

from typing import Any

from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.autoscaling.v2 import HorizontalPodAutoscaler
from konverge.k8s.core.v1 import Service
from konverge.k8s.networking.v1 import Ingress
from konverge.k8s.policy.v1 import PodDisruptionBudget
from konverge.objects import Unstructured, to_wire
from konverge_operators.autoscaling import autoscaler_spec
from konverge_operators.manifests import (
    HTTP_ROUTE,
    POD_MONITOR,
    Json,
    child,
    deployment_spec,
    disruption_budget,
    ingress_spec,
    pod_spec,
    route_spec,
    service_spec,
    unstructured,
)
from konverge_operators.webapp.api import Autoscaling, IngressOptions, Monitoring, Probe, Resources, WebApp

__all__ = [
    "CONTAINER",
    "KINDS",
    "autoscaler_for",
    "budget_for",
    "deployment_for",
    "http_route_for",
    "ingress_for",
    "labels_of",
    "pod_monitor_for",
    "selector_of",
    "service_for",
]

CONTAINER = "web"
_PORT = "http"
_DRAIN_SECONDS = 5  # until no Service sends requests to a pod that is being deleted

KINDS = (Ingress, HorizontalPodAutoscaler, Service, PodDisruptionBudget, Deployment)
"""The kinds of children that every server has, in the order in which they are deleted: senders of requests first."""


def labels_of(app: WebApp) -> dict[str, str]:
    """Return the labels of all children of an application."""
    return {**selector_of(app), "app.kubernetes.io/managed-by": "webapp-operator"}


def selector_of(app: WebApp) -> dict[str, str]:
    """Return the labels that select the pods. They never change: the selector of a Deployment is immutable."""
    return {"app.kubernetes.io/name": "webapp", "app.kubernetes.io/instance": app.name}


def deployment_for(
    app: WebApp, *, image: str, replicas: int | None, annotations: dict[str, str] | None = None
) -> Deployment:
    """Return the Deployment; with `replicas` None it does not set the field, which then belongs to the autoscaler.

    `annotations` are those of the pods.
    """
    metadata: Json = {"labels": labels_of(app), **({"annotations": annotations} if annotations else {})}
    template: Json = {"metadata": metadata, "spec": _pods(app, image)}
    spec = deployment_spec(
        selector_of(app), template, progress_deadline=app.spec.progress_deadline_seconds, strategy=_strategy(app)
    )
    if replicas is not None:
        spec["replicas"] = replicas
    return child(Deployment, app.name, labels_of(app), spec=spec)


def service_for(app: WebApp, annotations: dict[str, str] | None = None) -> Service:
    """Return the Service of the pods."""
    spec = service_spec(selector_of(app), app.spec.port)
    return child(Service, app.name, labels_of(app), annotations, spec=spec)


def budget_for(app: WebApp) -> PodDisruptionBudget:
    """Return the budget that lets one pod at a time be evicted."""
    return child(PodDisruptionBudget, app.name, labels_of(app), spec=disruption_budget(selector_of(app)))


def autoscaler_for(app: WebApp, scaling: Autoscaling) -> HorizontalPodAutoscaler:
    """Return the autoscaler of the Deployment."""
    return child(HorizontalPodAutoscaler, app.name, labels_of(app), spec=autoscaler_spec(app.name, scaling))


def ingress_for(app: WebApp, options: IngressOptions) -> Ingress:
    """Return the Ingress that routes requests to the Service."""
    tls = options.tls
    spec = ingress_spec(
        app.name,
        host=options.host,
        path=options.path,
        class_name=options.class_name,
        tls_secret=None if tls is None else tls.secret_name or f"{app.name}-tls",
    )
    return child(Ingress, app.name, labels_of(app), options.annotations, spec=spec)


def http_route_for(app: WebApp, options: IngressOptions) -> Unstructured:
    """Return the HTTPRoute that attaches the Service to a Gateway."""
    spec = route_spec(to_wire(options.gateway), app.name, app.spec.port, host=options.host, path=options.path)
    return unstructured(HTTP_ROUTE, app.name, labels_of(app), spec, options.annotations)


def pod_monitor_for(app: WebApp, monitoring: Monitoring) -> Unstructured:
    """Return the PodMonitor of the pods."""
    endpoint = {"port": _PORT, "path": monitoring.path, "interval": monitoring.interval}
    spec = {"selector": {"matchLabels": selector_of(app)}, "podMetricsEndpoints": [endpoint]}
    return unstructured(POD_MONITOR, app.name, labels_of(app), spec)


# Pods


def _pods(app: WebApp, image: str) -> Json:
    spec, scheduling = app.spec, app.spec.scheduling
    security, container = spec.security, _container(app, image)
    pods = pod_spec(container, selector_of(app), user=security.run_as_user)
    pods["automountServiceAccountToken"] = spec.automount_service_account_token
    pods["topologySpreadConstraints"][0]["topologyKey"] = scheduling.spread_by
    pods["containers"][0]["securityContext"]["readOnlyRootFilesystem"] = security.read_only_root_filesystem
    if not security.restricted:
        pods["securityContext"], pods["containers"] = {}, [container]
        del pods["volumes"]
    optional: Json = {
        "imagePullSecrets": [{"name": one.name} for one in spec.image_pull_secrets],
        "serviceAccountName": spec.service_account_name,
        "nodeSelector": dict(scheduling.node_selector),
        "tolerations": [to_wire(one) for one in scheduling.tolerations],
        "priorityClassName": scheduling.priority_class_name,
    }
    return {**pods, **{name: value for name, value in optional.items() if value}}


def _container(app: WebApp, image: str) -> Json:
    spec, probes = app.spec, app.spec.probes
    container: Json = {
        "name": CONTAINER,
        "image": image,
        "ports": [{"name": _PORT, "containerPort": spec.port}],
        "readinessProbe": _probe(probes.readiness),
        "lifecycle": {"preStop": {"sleep": {"seconds": _DRAIN_SECONDS}}},
    }
    if spec.env:
        container["env"] = [{"name": name, "value": value} for name, value in sorted(spec.env.items())]
    if spec.env_from:
        container["envFrom"] = [to_wire(one) for one in spec.env_from]
    if spec.resources is not None:
        container["resources"] = _resources(spec.resources)
    for name, probe in (("livenessProbe", probes.liveness), ("startupProbe", probes.startup)):
        if probe is not None:
            container[name] = _probe(probe)
    return container


def _probe(probe: Probe) -> Json:
    port: Any = probe.port or _PORT
    action: Json = {"tcpSocket": {"port": port}}
    if probe.path is not None:
        action = {"httpGet": {"path": probe.path, "port": port}}
    if probe.initial_delay_seconds:
        action["initialDelaySeconds"] = probe.initial_delay_seconds
    return {
        **action,
        "periodSeconds": probe.period_seconds,
        "timeoutSeconds": probe.timeout_seconds,
        "failureThreshold": probe.failure_threshold,
    }


def _resources(resources: Resources) -> Json:
    """Return the resources; users may write quantities as numbers, the children have strings."""
    parts = {"requests": resources.requests, "limits": resources.limits}
    return {part: {name: str(value) for name, value in values.items()} for part, values in parts.items() if values}


def _strategy(app: WebApp) -> Json:
    strategy = app.spec.strategy
    if strategy.type == "Recreate":
        return {"type": "Recreate"}
    limits = {"maxUnavailable": strategy.max_unavailable, "maxSurge": strategy.max_surge}
    return {"type": "RollingUpdate", "rollingUpdate": limits}
