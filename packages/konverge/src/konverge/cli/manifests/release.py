"""A release: an operator with its namespace, image and replicas, and the files to install it.

base/         objects for every cluster: kubectl apply -k base
monitoring/   a ServiceMonitor, alert rules and dashboards, for clusters with the Prometheus operator
Dockerfile    an image of the operator
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from konverge.manager import Operator
from konverge.objects import AnyObject, Unstructured
from konverge.objects.names import dns_label_errors
from konverge.schema import to_yaml
from konverge.webhooks import Address, configurations_for

__all__ = ["Release", "files_of"]

_MAX_NAME = 63 - len("-webhooks")


@dataclass(frozen=True, kw_only=True)
class Release:
    """An operator and how to install it.

    `target` is the argument of `konverge run` in the container. `namespaces` limits the operator to these namespaces,
    with Roles instead of a ClusterRole. `requirement` is the distribution to install the operator from, if any.

    Raises: ValueError for names that Kubernetes or a container runtime would reject.
    """

    operator: Operator
    target: str
    namespace: str
    image: str
    replicas: int = 2
    namespaces: tuple[str, ...] = ()
    requirement: str = ""

    def __post_init__(self) -> None:
        if len(self.name) > _MAX_NAME:
            raise ValueError(
                f"the operator's name has {len(self.name)} characters, at most {_MAX_NAME} are allowed:"
                f" its objects have names such as {self.name}-webhooks"
            )
        for namespace in (self.namespace, *self.namespaces):
            if dns_label_errors(namespace):
                raise ValueError(f"{namespace!r} is not a valid namespace name")
        for what, text in (("image", self.image), ("target", self.target)):
            if not text or not text.isprintable():
                raise ValueError(f"{text!r} is not a valid {what}: it is empty or not printable")
        if self.replicas < 1:
            raise ValueError(f"replicas must be at least 1, got {self.replicas}")

    @property
    def name(self) -> str:
        return self.operator.name

    @property
    def labels(self) -> dict[str, str]:
        """Labels of all objects of the release."""
        return {"app.kubernetes.io/name": self.name, "app.kubernetes.io/managed-by": "konverge"}

    @property
    def address(self) -> Address:
        """Address of the webhooks."""
        return Address(service=f"{self.name}-webhooks", namespace=self.namespace)

    def new_object(self, kind: str, name: str, *, api: str = "v1", cluster: bool = False, **parts: Any) -> Unstructured:
        """Return a new object with the labels and the namespace of this release."""
        metadata: dict[str, Any] = {"name": name, "labels": self.labels}
        if not cluster:
            metadata["namespace"] = self.namespace
        return Unstructured(apiVersion=api, kind=kind, metadata=metadata, **parts)

    def crds(self) -> list[Unstructured]:
        """Return the CRDs of the operator's kinds, with the labels of the release."""
        crds = self.operator.crds(self.address if self.operator.webhooks else None)
        for crd in crds:
            crd.metadata["labels"] = {**self.labels, **crd.metadata.get("labels", {})}
        return crds

    def webhook_configurations(self) -> list[AnyObject]:
        """Return the webhook configurations, with the labels of the release."""
        configurations = configurations_for(self.operator.webhooks, self.address, name=self.name)
        for configuration in configurations:
            configuration.metadata.labels = self.labels
        return list(configurations)


def files_of(release: Release) -> dict[str, str]:
    """Return the files of a release, by path."""
    # Imported here because these modules need the class above.
    from konverge.cli.manifests.container import dockerfile
    from konverge.cli.manifests.monitoring import monitoring_files
    from konverge.cli.manifests.rbac import rbac_objects
    from konverge.cli.manifests.workload import namespace_of, workload_of

    base: dict[str, Iterable[AnyObject]] = {
        "namespace.yaml": [namespace_of(release)],
        "crds.yaml": release.crds(),
        "rbac.yaml": rbac_objects(release),
        "operator.yaml": workload_of(release),
    }
    if release.operator.webhooks:
        base["webhooks.yaml"] = release.webhook_configurations()
    base = {name: objects for name, objects in base.items() if objects}
    files = {f"base/{name}": to_yaml(*objects) for name, objects in base.items()}
    files["base/kustomization.yaml"] = _kustomization(list(base))
    installed, samples = monitoring_files(release)
    files |= {f"monitoring/{name}": text for name, text in {**installed, **samples}.items()}
    files["monitoring/kustomization.yaml"] = _kustomization(list(installed))
    files["Dockerfile"] = dockerfile(release)
    return files


def _kustomization(resources: list[str]) -> str:
    return to_yaml(
        Unstructured(apiVersion="kustomize.config.k8s.io/v1beta1", kind="Kustomization", resources=resources)
    )
