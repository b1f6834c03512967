"""The children of a WebApp: functions that build each of them from the object."""

from __future__ import annotations

from konverge import ObjectMeta
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec
from konverge.k8s.autoscaling.v2 import (
    CrossVersionObjectReference,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    MetricSpec,
    MetricTarget,
    ResourceMetricSource,
)
from konverge.k8s.core.v1 import (
    Container,
    ContainerPort,
    EnvVar,
    PodSpec,
    PodTemplateSpec,
    ResourceRequirements,
    Service,
    ServicePort,
    ServiceSpec,
)
from konverge.k8s.meta.v1 import LabelSelector
from konverge.k8s.networking.v1 import (
    HTTPIngressPath,
    HTTPIngressRuleValue,
    Ingress,
    IngressBackend,
    IngressRule,
    IngressServiceBackend,
    IngressSpec,
    ServiceBackendPort,
)
from konverge_operators.webapp.api import Autoscaling, IngressOptions, Resources, WebApp

__all__ = [
    "CONTAINER",
    "KINDS",
    "autoscaler_for",
    "deployment_for",
    "ingress_for",
    "initial_replicas",
    "labels_of",
    "selector_of",
    "service_for",
]

CONTAINER = "web"
_PORT = "http"

KINDS = (Ingress, HorizontalPodAutoscaler, Service, Deployment)
"""The kinds of the children, in the order in which `finalize` deletes them: senders of requests first."""


def labels_of(app: WebApp) -> dict[str, str]:
    """Return the labels of all children of an application."""
    return {
        "app.kubernetes.io/name": "webapp",
        "app.kubernetes.io/instance": app.name,
        "app.kubernetes.io/managed-by": "webapp-operator",
    }


def selector_of(app: WebApp) -> dict[str, str]:
    """Return the labels that select the pods. They never change: the selector of a Deployment is immutable."""
    return {"app.kubernetes.io/name": "webapp", "app.kubernetes.io/instance": app.name}


def initial_replicas(app: WebApp, scaling: Autoscaling) -> int:
    """Return the replicas of a new Deployment under autoscaling: as many as before, within the bounds."""
    start = app.status.replicas or app.spec.replicas
    return max(scaling.min_replicas, min(start, scaling.max_replicas))


def deployment_for(app: WebApp, *, image: str, replicas: int | None) -> Deployment:
    """Return the Deployment; with `replicas` None it does not set the field, which then belongs to the autoscaler."""
    pod = PodTemplateSpec(metadata=ObjectMeta(labels=labels_of(app)), spec=PodSpec(containers=[_container(app, image)]))
    return Deployment(
        metadata=_metadata(app),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels=selector_of(app)),
            template=pod,
            progress_deadline_seconds=app.spec.progress_deadline_seconds,
        ),
    )


def service_for(app: WebApp) -> Service:
    """Return the Service of the pods."""
    port = ServicePort(name=_PORT, port=app.spec.port, target_port=_PORT)
    return Service(metadata=_metadata(app), spec=ServiceSpec(selector=selector_of(app), ports=[port]))


def ingress_for(app: WebApp, options: IngressOptions) -> Ingress:
    """Return the Ingress that routes requests to the Service."""
    service = IngressServiceBackend(name=app.name, port=ServiceBackendPort(name=_PORT))
    path = HTTPIngressPath(path=options.path, path_type="Prefix", backend=IngressBackend(service=service))
    rule = IngressRule(host=options.host, http=HTTPIngressRuleValue(paths=[path]))
    return Ingress(metadata=_metadata(app), spec=IngressSpec(ingress_class_name=options.class_name, rules=[rule]))


def autoscaler_for(app: WebApp, scaling: Autoscaling) -> HorizontalPodAutoscaler:
    """Return the autoscaler of the Deployment."""
    target = MetricTarget(type="Utilization", average_utilization=scaling.cpu_percent)
    return HorizontalPodAutoscaler(
        metadata=_metadata(app),
        spec=HorizontalPodAutoscalerSpec(
            scale_target_ref=CrossVersionObjectReference(api_version="apps/v1", kind="Deployment", name=app.name),
            min_replicas=scaling.min_replicas,
            max_replicas=scaling.max_replicas,
            metrics=[MetricSpec(type="Resource", resource=ResourceMetricSource(name="cpu", target=target))],
        ),
    )


def _metadata(app: WebApp) -> ObjectMeta:
    return ObjectMeta(name=app.name, namespace=app.namespace, labels=labels_of(app))


def _container(app: WebApp, image: str) -> Container:
    spec = app.spec.resources or Resources()
    # Users may write quantities as numbers; the children have strings.
    resources = ResourceRequirements(requests=_strings(spec.requests), limits=_strings(spec.limits))
    return Container(
        name=CONTAINER,
        image=image,
        ports=[ContainerPort(name=_PORT, container_port=app.spec.port)],
        env=[EnvVar(name=name, value=value) for name, value in sorted(app.spec.env.items())],
        resources=resources if app.spec.resources is not None else None,
    )


def _strings(quantities: dict[str, str]) -> dict[str, str]:
    return {name: str(quantity) for name, quantity in quantities.items()}
