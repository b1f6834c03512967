"""Names and labels that the parts of an EcommerceApp share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Service
from konverge.objects import Resource
from konverge_operators.ecommerce.api import EcommerceApp
from konverge_operators.manifests import Json, child, deployment_spec, labels, pod_spec, selector, service_spec

__all__ = ["DATABASE_CLIENT", "IMAGE_UPDATED", "LAST_RESTART", "OPERATOR", "Part"]

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

    def template(
        self, container: Json, *, clients: bool = False, annotations: dict[str, str] | None = None, **fields: Any
    ) -> Json:
        """Return a template for restricted pods with one container; with `clients` they may reach the database."""
        all_labels = {**self.labels, **self.selector, **({DATABASE_CLIENT: "true"} if clients else {})}
        metadata = {"labels": all_labels, **({"annotations": annotations} if annotations else {})}
        return {"metadata": metadata, "spec": pod_spec(container, self.selector, **fields)}

    def deployment(self, template: Json, replicas: int | None = None) -> Deployment:
        """Return a Deployment that starts a new pod before it stops an old one."""
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
        deadline = self.app.spec.progress_deadline_seconds
        spec = deployment_spec(self.selector, template, progress_deadline=deadline, strategy=strategy)
        return self.child(Deployment, spec={**spec, "replicas": replicas} if replicas is not None else spec)

    def service(self, port: int, port_name: str = "http", annotations: dict[str, str] | None = None) -> Service:
        """Return the Service of its pods."""
        return self.child(Service, annotations=annotations, spec=service_spec(self.selector, port, port_name))
