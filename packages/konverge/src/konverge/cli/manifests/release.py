"""A release: an operator, and where and as what it shall run; and the files that say so.

base/         what every cluster takes: kubectl apply -k base
monitoring/   a ServiceMonitor, for clusters with the Prometheus operator
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

_LONGEST_NAME = 63 - len("-webhooks")


@dataclass(frozen=True, kw_only=True)
class Release:
    """An operator on its way into a cluster.

    `target` is what `konverge run` is told in the container; `namespaces` limits it to these, by Roles there instead of
    a ClusterRole; `requirement` names the distribution that the operator is installed from, if there is one.

    Raises: ValueError for names that no cluster, or no container runtime, takes.
    """

    operator: Operator
    target: str
    namespace: str
    image: str
    replicas: int = 2
    namespaces: tuple[str, ...] = ()
    requirement: str = ""

    def __post_init__(self) -> None:
        if len(self.name) > _LONGEST_NAME:
            raise ValueError(
                f"the operator's name has {len(self.name)} characters, and may have {_LONGEST_NAME}:"
                f" what is made for it is called {self.name}-webhooks and the like"
            )
        for namespace in (self.namespace, *self.namespaces):
            if dns_label_errors(namespace):
                raise ValueError(f"{namespace!r} is no name of a namespace")
        for what, text in (("image", self.image), ("target", self.target)):
            if not text or not text.isprintable():
                raise ValueError(f"{text!r} is no {what} that can be written to a file")
        if self.replicas < 1:
            raise ValueError(f"replicas is 1 or more, got {self.replicas}")

    @property
    def name(self) -> str:
        return self.operator.name

    @property
    def labels(self) -> dict[str, str]:
        """What everything of it is labelled with."""
        return {"app.kubernetes.io/name": self.name, "app.kubernetes.io/managed-by": "konverge"}

    @property
    def address(self) -> Address:
        """Where the API server finds its webhooks."""
        return Address(service=f"{self.name}-webhooks", namespace=self.namespace)

    def made(self, kind: str, name: str, *, api: str = "v1", cluster: bool = False, **parts: Any) -> Unstructured:
        """Make an object of this release."""
        metadata: dict[str, Any] = {"name": name, "labels": self.labels}
        if not cluster:
            metadata["namespace"] = self.namespace
        return Unstructured(apiVersion=api, kind=kind, metadata=metadata, **parts)

    def crds(self) -> list[Unstructured]:
        """Give the CRDs of its kinds."""
        made = self.operator.crds(self.address if self.operator.webhooks else None)
        for crd in made:
            crd.metadata["labels"] = {**self.labels, **crd.metadata.get("labels", {})}
        return made

    def webhook_configurations(self) -> list[AnyObject]:
        """Give what tells the API server of its webhooks; who made it is labelled as everything else of it."""
        made = configurations_for(self.operator.webhooks, self.address, name=self.name)
        for one in made:
            one.metadata.labels = self.labels
        return list(made)


def files_of(release: Release) -> dict[str, str]:
    """Give the files of a release, by path."""
    # Below, since they need the Release above.
    from konverge.cli.manifests.access import access_of
    from konverge.cli.manifests.container import dockerfile
    from konverge.cli.manifests.workload import monitor_of, namespace_of, workload_of

    base: dict[str, Iterable[AnyObject]] = {
        "namespace.yaml": [namespace_of(release)],
        "crds.yaml": release.crds(),
        "rbac.yaml": access_of(release),
        "operator.yaml": workload_of(release),
    }
    if release.operator.webhooks:
        base["webhooks.yaml"] = release.webhook_configurations()
    base = {name: objects for name, objects in base.items() if objects}
    files = {f"base/{name}": to_yaml(*objects) for name, objects in base.items()}
    files["base/kustomization.yaml"] = _kustomization(list(base))
    files["monitoring/servicemonitor.yaml"] = to_yaml(monitor_of(release))
    files["monitoring/kustomization.yaml"] = _kustomization(["servicemonitor.yaml"])
    files["Dockerfile"] = dockerfile(release)
    return files


def _kustomization(resources: list[str]) -> str:
    return to_yaml(
        Unstructured(apiVersion="kustomize.config.k8s.io/v1beta1", kind="Kustomization", resources=resources)
    )
