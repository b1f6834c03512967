"""What a WebApp consists of, as functions from the object to its children."""

from __future__ import annotations

from operators.webapp.api import WebApp

from konverge import ObjectMeta
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec
from konverge.k8s.core.v1 import Container, ContainerPort, PodSpec, PodTemplateSpec, Service, ServicePort, ServiceSpec
from konverge.k8s.meta.v1 import LabelSelector


def labels_of(app: WebApp) -> dict[str, str]:
    """Give the labels that tie an application's parts together."""
    return {"app.kubernetes.io/name": app.name, "app.kubernetes.io/managed-by": "webapp-operator"}


def deployment_for(app: WebApp) -> Deployment:
    """Give the Deployment that runs it."""
    labels = labels_of(app)
    container = Container(
        name="web", image=app.spec.image, ports=[ContainerPort(name="http", container_port=app.spec.port)]
    )
    return Deployment(
        metadata=ObjectMeta(name=app.name, namespace=app.namespace, labels=labels),
        spec=DeploymentSpec(
            replicas=app.spec.replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container])),
        ),
    )


def service_for(app: WebApp) -> Service:
    """Give the Service in front of it."""
    return Service(
        metadata=ObjectMeta(name=app.name, namespace=app.namespace, labels=labels_of(app)),
        spec=ServiceSpec(
            selector=labels_of(app), ports=[ServicePort(name="http", port=app.spec.port, target_port="http")]
        ),
    )
