"""The claims that a pod uses: those that its volumes name, and those that are created for its ephemeral volumes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from konverge.cache import Entry, Event
from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod
from konverge.objects import Key, to_wire

__all__ = ["PODS_BY_CLAIM", "PodClaim", "claims_of_pod", "is_created_for", "pod_claims", "to_claims", "uses_claim"]

PODS_BY_CLAIM: Final = "pods-by-claim"
"""The name of the index of pods by the keys of their claims, as `claims_of_pod` returns them."""

_MARKS: Final = (b'"persistentVolumeClaim"', b'"ephemeral"')


@dataclass(frozen=True)
class PodClaim:
    """One claim of a pod; `ephemeral` if the claim is created for the pod."""

    name: str
    volume: str
    ephemeral: bool


class _PodSpec(msgspec.Struct):
    volumes: list[dict[str, Any]] | None = None


class _Pod(msgspec.Struct):
    spec: _PodSpec


def pod_claims(pod: str, volumes: Iterable[Mapping[str, Any]]) -> Iterator[PodClaim]:
    """Yield the claims of a pod in the order of its volumes."""
    for volume in volumes:
        if volume.get("persistentVolumeClaim"):
            yield PodClaim(volume["persistentVolumeClaim"]["claimName"], volume["name"], ephemeral=False)
        elif volume.get("ephemeral"):
            yield PodClaim(f"{pod}-{volume['name']}", volume["name"], ephemeral=True)


def is_created_for(claim: PersistentVolumeClaim, pod_uid: str) -> bool:
    """Report whether a claim was created for the ephemeral volume of a pod."""
    return any(one.uid == pod_uid and one.controller for one in claim.metadata.owner_references)


def uses_claim(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Report whether a pod may use a claim on its node. A pod without a node cannot start with a claim in deletion."""
    if not pod.spec.node_name:
        return False
    found = [one for one in pod_claims(pod.name, to_wire(pod.spec).get("volumes") or ()) if one.name == claim.name]
    return any(not one.ephemeral or (not _is_shut_down(pod) and is_created_for(claim, pod.uid)) for one in found)


def _is_shut_down(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None and pod.metadata.deletion_grace_period_seconds == 0


def claims_of_pod(entry: Entry) -> Iterable[Key]:
    """Return the keys of the claims of a cached pod; a search in the bytes is cheaper than decoding all pods."""
    if not any(mark in entry.json for mark in _MARKS):
        return ()
    volumes = entry.read(_Pod).spec.volumes or ()
    names = {one.name for one in pod_claims(entry.key.name, volumes)}
    return [Key(entry.key.namespace, name) for name in sorted(names)]


def to_claims(event: Event) -> Iterable[Key]:
    """Map a pod to its claims."""
    return claims_of_pod(event.entry)
