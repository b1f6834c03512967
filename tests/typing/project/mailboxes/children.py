"""The children of a mailbox."""

from __future__ import annotations

from konverge import ObjectMeta
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec
from konverge.k8s.core.v1 import ConfigMap, Container, ContainerPort, PodSpec, PodTemplateSpec
from konverge.k8s.meta.v1 import LabelSelector
from konverge.objects import replace
from mailboxes.api import Mailbox


def deployment_for(mailbox: Mailbox) -> Deployment:
    labels = {"mailbox": mailbox.name}
    container = Container(name="server", image=mailbox.spec.image, ports=[ContainerPort(container_port=143)])
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container]))
    return Deployment(
        metadata=ObjectMeta(name=mailbox.name, namespace=mailbox.namespace),
        spec=DeploymentSpec(
            replicas=mailbox.spec.replicas,
            selector=LabelSelector(match_labels=labels),
            template=template,
        ),
    )


def config_for(mailbox: Mailbox) -> ConfigMap:
    enabled = [alias.address for alias in mailbox.spec.aliases if alias.enabled]
    return ConfigMap(metadata=ObjectMeta(name=mailbox.name), data={"aliases": "\n".join(enabled)})


def scaled(mailbox: Mailbox, replicas: int) -> Mailbox:
    return replace(mailbox, spec=replace(mailbox.spec, replicas=replicas))
