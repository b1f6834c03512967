"""Pod templates of Deployments: their comparison, and the hash that names a ReplicaSet after its template."""

from __future__ import annotations

import copy
from typing import Final

from konverge.k8s.core.v1 import PodTemplateSpec
from konverge.objects import ObjectMeta, to_wire
from konverge.objects.names import MAX_SUBDOMAIN_LENGTH
from konverge_cluster.workloads.pods.hashes import name_hash

__all__ = ["HASH", "replica_set_name", "same_template", "template_hash", "with_hash_label"]

HASH: Final = "pod-template-hash"


def same_template(one: PodTemplateSpec, other: PodTemplateSpec) -> bool:
    """Report whether two templates produce the same pods; the hash label is ignored."""
    return one.spec == other.spec and _metadata_without_hash(one) == _metadata_without_hash(other)


def template_hash(template: PodTemplateSpec, collisions: int | None) -> str:
    """Return the hash of a template; `collisions` is the number of collisions with other templates so far."""
    return name_hash([to_wire(template), collisions])


def replica_set_name(deployment: str, hash_: str) -> str:
    """Return the name of a ReplicaSet: Deployment and hash, truncated to the maximum length."""
    return f"{deployment[: MAX_SUBDOMAIN_LENGTH - 1 - len(hash_)]}-{hash_}"


def with_hash_label(template: PodTemplateSpec, hash_: str) -> PodTemplateSpec:
    """Return a copy of a template with the hash label."""
    metadata = copy.copy(template.metadata or ObjectMeta())
    metadata.labels = {**metadata.labels, HASH: hash_}
    return PodTemplateSpec(metadata=metadata, spec=template.spec)


def _metadata_without_hash(template: PodTemplateSpec) -> ObjectMeta:
    metadata = copy.copy(template.metadata or ObjectMeta())
    metadata.labels = {name: value for name, value in metadata.labels.items() if name != HASH}
    return metadata
