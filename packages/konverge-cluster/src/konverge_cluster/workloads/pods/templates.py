"""Pods from the template of a workload."""

from __future__ import annotations

from konverge.k8s.core.v1 import Pod, PodTemplateSpec
from konverge.objects import ObjectMeta, Resource
from konverge_cluster.workloads.pods.claims import owner_reference

__all__ = ["new_pod"]


def new_pod(template: PodTemplateSpec, owner: Resource, *, prefix: str = "") -> Pod:
    """Return a new pod from a template, controlled by `owner`; the server completes its name. They share the spec."""
    template_metadata = template.metadata or ObjectMeta()
    metadata = ObjectMeta(
        generate_name=prefix or f"{owner.name}-",
        namespace=owner.namespace,
        labels=dict(template_metadata.labels),
        annotations=dict(template_metadata.annotations),
        finalizers=list(template_metadata.finalizers),
        owner_references=[owner_reference(owner)],
    )
    return Pod(metadata=metadata, spec=template.spec)
