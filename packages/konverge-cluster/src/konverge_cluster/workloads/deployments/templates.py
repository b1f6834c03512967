"""Pod templates of Deployments: when two are the same, and the hash that names a ReplicaSet after its template.

The hash is stable from run to run and differs when a template does. It is not the one that another control plane
computes: nothing may rely on its value, only on its being the same in name, label and selector.
"""

from __future__ import annotations

import copy
import hashlib
import json
from typing import Final

from konverge.k8s.core.v1 import PodTemplateSpec
from konverge.objects import ObjectMeta, to_wire
from konverge.objects.names import GENERATED_NAME_ALPHABET, MAX_SUBDOMAIN_LENGTH

__all__ = ["HASH", "labelled", "same_template", "set_name", "template_hash"]

HASH: Final = "pod-template-hash"


def same_template(one: PodTemplateSpec, other: PodTemplateSpec) -> bool:
    """Tell whether two templates make the same pods; the label with the hash does not count."""
    return one.spec == other.spec and _shared(one) == _shared(other)


def template_hash(template: PodTemplateSpec, collisions: int | None) -> str:
    """Give the hash of a template; `collisions` is how often another template had the same one."""
    text = json.dumps([to_wire(template), collisions], sort_keys=True, separators=(",", ":"))
    number = int.from_bytes(hashlib.blake2s(text.encode(), digest_size=4).digest(), "big")
    return "".join(GENERATED_NAME_ALPHABET[ord(digit) % len(GENERATED_NAME_ALPHABET)] for digit in f"{number:010}")


def set_name(deployment: str, hash_: str) -> str:
    """Name a ReplicaSet after its Deployment and template, cut to what a name may be long."""
    return f"{deployment[: MAX_SUBDOMAIN_LENGTH - 1 - len(hash_)]}-{hash_}"


def labelled(template: PodTemplateSpec, hash_: str) -> PodTemplateSpec:
    """Give a copy of a template whose pods carry the hash."""
    metadata = copy.copy(template.metadata or ObjectMeta())
    metadata.labels = {**metadata.labels, HASH: hash_}
    return PodTemplateSpec(metadata=metadata, spec=template.spec)


def _shared(template: PodTemplateSpec) -> ObjectMeta:
    metadata = copy.copy(template.metadata or ObjectMeta())
    metadata.labels = {name: value for name, value in metadata.labels.items() if name != HASH}
    return metadata
