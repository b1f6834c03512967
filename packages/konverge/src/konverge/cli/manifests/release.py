"""A release: an operator with its namespace, image and replicas, and the files to install it.

base/            objects for every cluster: kubectl apply -k base
crds/            CRDs, if the operator is limited to namespaces: all its installations share them. Otherwise in base/
monitoring/      a ServiceMonitor, alert rules and dashboards, for clusters with the Prometheus operator
Dockerfile       an image of the operator
sbom.cdx.json    what the image contains
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from konverge.cli.manifests.requirements import Requirements
from konverge.manager import Operator
from konverge.objects import AnyObject, Unstructured
from konverge.objects.names import dns_label_errors
from konverge.schema import to_yaml
from konverge.webhooks import Address, configurations_for

__all__ = ["Release", "default_installation", "files_of"]

_MAX_NAME = 63 - len("-webhooks")


@dataclass(frozen=True, kw_only=True)
class Release:
    """An operator and how to install it.

    `target` is the argument of `konverge run` in the container. `namespaces` limits the operator to these namespaces,
    with Roles instead of a ClusterRole. `installation` is the name of its objects, so that two installations share none
    but the CRDs. `apiserver_cidrs` are the addresses of API servers: with them, the webhooks have no other clients.
    `requirement` is the distribution to install the operator from, if any.

    Raises: ValueError for names that Kubernetes or a container runtime would reject.
    """

    operator: Operator
    target: str
    namespace: str
    image: str
    replicas: int = 2
    namespaces: tuple[str, ...] = ()
    installation: str = ""
    apiserver_cidrs: tuple[str, ...] = ()
    insecure_metrics: bool = False
    requirement: str = ""
    requirements: Requirements | None = None
    base_image: str = ""

    def __post_init__(self) -> None:
        if len(self.name) > _MAX_NAME:
            raise ValueError(
                f"the {'installation' if self.installation else 'operator'}'s name has {len(self.name)} characters,"
                f" at most {_MAX_NAME} are allowed:"
                f" its objects have names such as {self.name}-webhooks"
            )
        if dns_label_errors(self.name):
            raise ValueError(f"{self.name!r} is not a valid name of an installation")
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
        """Name of the objects of the release."""
        return self.installation or default_installation(self.operator.name, self.namespaces)

    @property
    def shared_labels(self) -> dict[str, str]:
        """Labels of objects that installations share: the same for all of them."""
        return {"app.kubernetes.io/name": self.operator.name, "app.kubernetes.io/managed-by": "konverge"}

    @property
    def labels(self) -> dict[str, str]:
        """Labels of all other objects of the release."""
        return {**self.shared_labels, "app.kubernetes.io/instance": self.name}

    @property
    def selector(self) -> dict[str, str]:
        """Labels that select the pods of the release."""
        return {"app.kubernetes.io/name": self.operator.name, "app.kubernetes.io/instance": self.name}

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
        """Return the CRDs of the operator's kinds. Apart from conversion they are the same in all installations."""
        crds = self.operator.crds(self.address if self.operator.webhooks else None)
        for crd in crds:
            crd.metadata["labels"] = {**self.shared_labels, **crd.metadata.get("labels", {})}
        return crds

    def webhook_configurations(self) -> list[AnyObject]:
        """Return the webhook configurations, with the labels of the release."""
        configurations = configurations_for(self.operator.webhooks, self.address, name=self.name, only=self.namespaces)
        for configuration in configurations:
            configuration.metadata.labels = self.labels
        return list(configurations)


def default_installation(operator: str, namespaces: Iterable[str]) -> str:
    """Return the default name of an installation: different for different operators and namespaces."""
    names = sorted(set(namespaces))
    plain = "-".join((operator, *names))
    if not names or (len(names) == 1 and len(plain) <= _MAX_NAME):
        return plain
    # With a digest: the names of two namespaces joined are no unique name, and a name that is cut off is none either.
    digest = hashlib.sha256("/".join((operator, *names)).encode()).hexdigest()[:8]
    return f"{plain[: _MAX_NAME - 9].rstrip('-')}-{digest}"


def files_of(release: Release) -> dict[str, str]:
    """Return the files of a release, by path."""
    # Imported here because these modules need the class above.
    from konverge.cli.manifests.container import dockerfile
    from konverge.cli.manifests.monitoring import monitoring_files
    from konverge.cli.manifests.sbom import sbom

    files = _folder("base", _base(release))
    if release.namespaces and release.operator.kinds:
        files |= _folder("crds", {"crds.yaml": release.crds()})
    installed, samples = monitoring_files(release)
    files |= {f"monitoring/{name}": text for name, text in {**installed, **samples}.items()}
    files["monitoring/kustomization.yaml"] = _kustomization(list(installed))
    files["Dockerfile"] = dockerfile(release)
    files["sbom.cdx.json"] = sbom(release)
    return files


def _base(release: Release) -> dict[str, Iterable[AnyObject]]:
    from konverge.cli.manifests.network import network_policy
    from konverge.cli.manifests.rbac import rbac_objects
    from konverge.cli.manifests.workload import namespace_of, workload_of

    return {
        "namespace.yaml": [namespace_of(release)],
        "crds.yaml": [] if release.namespaces else release.crds(),
        "rbac.yaml": rbac_objects(release),
        "operator.yaml": workload_of(release),
        "network.yaml": [network_policy(release)],
        "webhooks.yaml": release.webhook_configurations() if release.operator.webhooks else [],
    }


def _folder(name: str, objects: dict[str, Iterable[AnyObject]]) -> dict[str, str]:
    """Return the files of a folder, with the kustomization that lists them; files without objects are left out."""
    files = {file: to_yaml(*found) for file, found in objects.items() if found}
    files["kustomization.yaml"] = _kustomization(list(files))
    return {f"{name}/{file}": text for file, text in files.items()}


def _kustomization(resources: list[str]) -> str:
    return to_yaml(
        Unstructured(apiVersion="kustomize.config.k8s.io/v1beta1", kind="Kustomization", resources=resources)
    )
