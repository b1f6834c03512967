"""Names and labels that the parts of an EcommerceApp share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from konverge.k8s.core.v1 import Service
from konverge.objects import Kind, Resource, Unstructured
from konverge_operators.ecommerce.api import EcommerceApp
from konverge_operators.manifests import Json, child, labels, pod_spec, selector

__all__ = ["DATABASE_CLIENT", "IMAGE_UPDATED", "LAST_RESTART", "OPERATOR", "Part", "secret_variable"]

T = TypeVar("T", bound=Resource)

OPERATOR = "ecommerce-operator"
DATABASE_CLIENT = "ecommerce.io/database-client"
"""The label of pods that may reach the database."""
IMAGE_UPDATED = "ecommerce.io/image-updated"
"""The annotation that requests a rolling restart."""
LAST_RESTART = "ecommerce.io/restarted-at"
"""The annotation of the pod templates with the time of the last rolling restart."""


@dataclass(frozen=True)
class Part:
    """One part of an application, whose objects are named and labelled after it.

    `component` is the component that it belongs to, when that has another name.
    """

    app: EcommerceApp
    part: str
    component: str = ""

    @property
    def name(self) -> str:
        return f"{self.app.name}-{self.part}"

    @property
    def selector(self) -> dict[str, str]:
        """The labels that select its pods."""
        return selector(self.app.name, self.part)

    @property
    def labels(self) -> dict[str, str]:
        return labels(self.app.name, self.component or self.part, operator=OPERATOR)

    def child(self, kind: type[T], name: str = "", annotations: dict[str, str] | None = None, **fields: Any) -> T:
        """Return an object of a kind, under the name of the part unless another one is passed."""
        return child(kind, name or self.name, self.labels, annotations, **fields)

    def unstructured(self, kind: Kind, spec: Json, name: str = "") -> Unstructured:
        """Return an object of a kind that has no class here."""
        metadata = {"name": name or self.name, "labels": self.labels}
        return Unstructured(apiVersion=kind.api_version, kind=kind.kind, metadata=metadata, spec=spec)

    def template(
        self, container: Json, *, clients: bool = False, annotations: dict[str, str] | None = None, **fields: Any
    ) -> Json:
        """Return a template for restricted pods with one container; with `clients` they may reach the database."""
        all_labels = {**self.labels, **self.selector, **({DATABASE_CLIENT: "true"} if clients else {})}
        metadata = {"labels": all_labels, **({"annotations": annotations} if annotations else {})}
        return {"metadata": metadata, "spec": pod_spec(container, self.selector, **fields)}

    def service(self, port: int, port_name: str = "http", annotations: dict[str, str] | None = None) -> Service:
        """Return the Service of its pods."""
        ports = [{"name": port_name, "port": port, "targetPort": port_name}]
        return self.child(Service, annotations=annotations, spec={"selector": self.selector, "ports": ports})


def secret_variable(name: str, secret: str, key: str) -> Json:
    """Return an environment variable with a value of a Secret."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
