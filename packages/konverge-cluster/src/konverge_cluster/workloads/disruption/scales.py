"""The number of pods that a budget expects: the desired replicas of the controllers of its pods, each counted once."""

from __future__ import annotations

from collections.abc import Sequence

from konverge.client import Client
from konverge.errors import KonvergeError, NotFound, UnknownKind
from konverge.k8s.apps.v1 import Deployment, ReplicaSet
from konverge.k8s.core.v1 import Pod
from konverge.objects import Key, Kind, OwnerReference
from konverge_cluster.workloads.disruption.budgets import Scale
from konverge_cluster.workloads.pods.claims import controller_of

__all__ = ["ScaleError", "expected_scale"]


class ScaleError(KonvergeError):
    """The desired number of pods is not known: their controller is missing, or has no scale subresource."""


async def expected_scale(pods: Sequence[Pod], client: Client) -> Scale:
    """Return the sum of the desired replicas of all controllers of these pods.

    Raises: ScaleError when a pod has a controller without a scale.
    """
    replicas: dict[str, int] = {}
    unmanaged = []
    for pod in pods:
        reference = controller_of(pod)
        if reference is None:
            unmanaged.append(pod.name)
        elif reference.uid not in replicas:
            count = await _replicas(reference, pod.namespace, client)
            if count is None:
                raise ScaleError(f'found no controllers for pod "{pod.name}"')
            replicas[reference.uid] = count
    return Scale(sum(replicas.values()), unmanaged)


async def _replicas(reference: OwnerReference, namespace: str, client: Client) -> int | None:
    """Return the desired replicas of a controller, None if it is gone."""
    key = Key(namespace, reference.name)
    try:
        if reference.api_version == "apps/v1" and reference.kind == "ReplicaSet":
            return await _replica_set(reference, key, client)
        kind = await _scalable(reference, client)
        return await client.get_scale(kind, key)
    except NotFound:
        return None


async def _replica_set(reference: OwnerReference, key: Key, client: Client) -> int | None:
    """Return the replicas of the Deployment that controls a ReplicaSet, or of the ReplicaSet itself."""
    replica_set = await client.get(ReplicaSet, key)
    if replica_set.uid != reference.uid:
        return None
    owner = controller_of(replica_set)
    if owner is None or owner.kind != "Deployment":
        return replica_set.spec.replicas
    deployment = await client.get(Deployment, Key(key.namespace, owner.name))
    return deployment.spec.replicas if deployment.uid == owner.uid else None


async def _scalable(reference: OwnerReference, client: Client) -> Kind:
    try:
        kind = await client.discovery.kind(reference.api_version, reference.kind)
    except UnknownKind:
        text = f'no matches for kind "{reference.kind}" in version "{reference.api_version}"'
        raise ScaleError(text) from None
    for resource in await client.discovery.resources():
        if resource.kind == kind and "scale" not in resource.subresources:
            raise ScaleError(f"{kind.plural}.{kind.group} does not implement the scale subresource")
    return kind
