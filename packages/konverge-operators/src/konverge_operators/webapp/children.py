"""What a WebApp consists of, as functions from the object to its children."""

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
from konverge_operators.webapp.api import Autoscaling, Exposure, Resources, WebApp

__all__ = [
    "CONTAINER",
    "KINDS",
    "autoscaler_for",
    "deployment_for",
    "first_replicas",
    "ingress_for",
    "labels_of",
    "selector_of",
    "service_for",
]

CONTAINER = "web"
_PORT = "http"

KINDS = (Ingress, HorizontalPodAutoscaler, Service, Deployment)
"""What it may consist of, in the order in which it is taken apart: who sends requests first."""


def labels_of(app: WebApp) -> dict[str, str]:
    """Give the labels that tie an application's parts together."""
    return {
        "app.kubernetes.io/name": "webapp",
        "app.kubernetes.io/instance": app.name,
        "app.kubernetes.io/managed-by": "webapp-operator",
    }


def selector_of(app: WebApp) -> dict[str, str]:
    """Give the labels that its pods are found by; a Deployment never changes them."""
    return {"app.kubernetes.io/name": "webapp", "app.kubernetes.io/instance": app.name}


def first_replicas(app: WebApp, scaling: Autoscaling) -> int:
    """Give how many copies a new Deployment starts with under autoscaling: as many as there were, within bounds."""
    start = app.status.replicas or app.spec.replicas
    return max(scaling.min_replicas, min(start, scaling.max_replicas))


def deployment_for(app: WebApp, *, image: str, replicas: int | None) -> Deployment:
    """Give the Deployment that runs it; without replicas their number is somebody else's matter."""
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
    """Give the Service in front of it."""
    port = ServicePort(name=_PORT, port=app.spec.port, target_port=_PORT)
    return Service(metadata=_metadata(app), spec=ServiceSpec(selector=selector_of(app), ports=[port]))


def ingress_for(app: WebApp, exposure: Exposure) -> Ingress:
    """Give the Ingress that leads to the Service."""
    service = IngressServiceBackend(name=app.name, port=ServiceBackendPort(name=_PORT))
    path = HTTPIngressPath(path=exposure.path, path_type="Prefix", backend=IngressBackend(service=service))
    rule = IngressRule(host=exposure.host, http=HTTPIngressRuleValue(paths=[path]))
    return Ingress(metadata=_metadata(app), spec=IngressSpec(ingress_class_name=exposure.class_name, rules=[rule]))


def autoscaler_for(app: WebApp, scaling: Autoscaling) -> HorizontalPodAutoscaler:
    """Give the autoscaler of the Deployment."""
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
    wanted = app.spec.resources or Resources()
    # Quantities may be written as numbers; in children they are texts.
    resources = ResourceRequirements(requests=_texts(wanted.requests), limits=_texts(wanted.limits))
    return Container(
        name=CONTAINER,
        image=image,
        ports=[ContainerPort(name=_PORT, container_port=app.spec.port)],
        env=[EnvVar(name=name, value=value) for name, value in sorted(app.spec.env.items())],
        resources=resources if app.spec.resources is not None else None,
    )


def _texts(amounts: dict[str, str]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}
