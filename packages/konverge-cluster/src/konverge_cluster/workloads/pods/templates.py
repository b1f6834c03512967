"""Pods made from the template of a workload."""

from __future__ import annotations

from konverge.k8s.core.v1 import Pod, PodTemplateSpec
from konverge.objects import ObjectMeta, Resource
from konverge_cluster.workloads.pods.claims import owner_reference

__all__ = ["pod_of"]


def pod_of(template: PodTemplateSpec, owner: Resource, *, prefix: str = "") -> Pod:
    """Make a pod of a template, controlled by `owner`; the server completes its name. They share the spec."""
    shared = template.metadata or ObjectMeta()
    metadata = ObjectMeta(
        generate_name=prefix or f"{owner.name}-",
        namespace=owner.namespace,
        labels=dict(shared.labels),
        annotations=dict(shared.annotations),
        finalizers=list(shared.finalizers),
        owner_references=[owner_reference(owner)],
    )
    return Pod(metadata=metadata, spec=template.spec)
