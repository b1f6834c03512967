"""Volumes in scheduling: reads the claims of a pod, starts their binding on the selected node, and waits for it.

A pod is bound to its node only when all its claims are. Until then the node is assumed, so that its resources stay
reserved. The decision is stored in the claims and volumes, so that it survives a restart of the scheduler.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from konverge.cache import Event
from konverge.k8s.core.v1 import PersistentVolume, PersistentVolumeClaim, Pod
from konverge.k8s.storage.v1 import StorageClass
from konverge.objects import Key, Unstructured
from konverge.reconcile import Context
from konverge_cluster.clock import Clock
from konverge_cluster.nodes.scheduling.snapshot import NodeInfo
from konverge_cluster.nodes.scheduling.volumes import PodVolumes, VolumeBindings
from konverge_cluster.volumes.annotations import SELECTED_NODE
from konverge_cluster.volumes.bindings import UNBOUND, VOLUMES_BY_CLAIM, claim_of_volume, set_claim_ref
from konverge_cluster.volumes.matching import class_of, is_fully_bound, waits_for_consumer
from konverge_cluster.volumes.pod_claims import PODS_BY_CLAIM, PodClaim, is_created_for, pod_claims

__all__ = ["BIND_TIMEOUT", "VolumeBinder"]

BIND_TIMEOUT: Final = 600.0
_TERMINAL_PHASES: Final = ("Succeeded", "Failed")


class _PodSpec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815


class _Pod(msgspec.Struct):
    spec: _PodSpec


@dataclass(frozen=True)
class _PendingBinding:
    """A node whose volumes are being bound for a pod, and until when."""

    node: str
    deadline: float


class VolumeBinder:
    """Binds the claims of pods on their nodes.

    `pod_changed`, `claim_changed`, `volume_changed` and `class_changed` are mappers: they return the pods that may be
    scheduled now.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._claims_of: dict[Key, frozenset[Key]] = {}  # of pods without a node
        self._pods_of: defaultdict[Key, set[Key]] = defaultdict(set)  # by claim
        self._assumed: dict[str, _PendingBinding] = {}

    def pod_changed(self, event: Event) -> Iterable[Key]:
        """Forget a pod that is gone or has a node."""
        known = event.key in self._claims_of
        if known and (event.new is None or event.new.read(_Pod).spec.nodeName):
            self.forget(event.entry.uid, event.key)
        return ()

    def claim_changed(self, event: Event) -> Iterable[Key]:
        """Map a claim to the pods that wait for it."""
        return sorted(self._pods_of.get(event.key, ()))

    def volume_changed(self, event: Event) -> Iterable[Key]:
        """Map a volume to the pods that wait for its claim, or to all if it is not bound."""
        found = claim_of_volume(event.entry)
        return sorted(self._pods_of.get(found.key, ())) if found.uid else list(self._claims_of)

    def class_changed(self, _: Event) -> Iterable[Key]:
        """Map a class to all pods that wait for claims."""
        return list(self._claims_of)

    def forget(self, uid: str, key: Key) -> None:
        """Forget a pod that is bound or gone."""
        for claim in self._claims_of.pop(key, ()):
            self._pods_of[claim].discard(key)
            if not self._pods_of[claim]:
                del self._pods_of[claim]
        self._assumed.pop(uid, None)

    def _remember(self, pod: Key, claims: Iterable[Key]) -> None:
        self._claims_of[pod] = frozenset(claims)
        for claim in self._claims_of[pod]:
            self._pods_of[claim].add(pod)

    # Reading

    async def read(self, pod: Unstructured, ctx: Context) -> PodVolumes | None:
        """Return the volumes of a pod, None for a pod without claims."""
        named = list(pod_claims(pod.name, pod["spec"].get("volumes") or ()))
        if not named:
            return None
        self._remember(pod.key, [Key(pod.namespace, one.name) for one in named])
        claims: list[PersistentVolumeClaim] = []
        for one in named:
            claim = await ctx.get(PersistentVolumeClaim, Key(pod.namespace, one.name))
            problem = _problem(one, claim, pod)
            if claim is None or problem:
                return PodVolumes(rejection=problem)
            claims.append(claim)
        return await self._read_volumes(pod, claims, ctx)

    async def _read_volumes(self, pod: Unstructured, claims: list[PersistentVolumeClaim], ctx: Context) -> PodVolumes:
        unbound = [one for one in claims if not is_fully_bound(one)]
        classes = await _classes_of(unbound, ctx)
        if any(one.spec.volume_name or not waits_for_consumer(classes.get(class_of(one))) for one in unbound):
            return PodVolumes(rejection="pod has unbound immediate PersistentVolumeClaims")
        bound = [await ctx.get(PersistentVolume, one.spec.volume_name or "") for one in claims if is_fully_bound(one)]
        candidates = ctx.find(PersistentVolume, VOLUMES_BY_CLAIM, UNBOUND) if unbound else []
        for one in unbound:
            candidates += ctx.find(PersistentVolume, VOLUMES_BY_CLAIM, one.key)
        exclusive = [one for one in claims if "ReadWriteOncePod" in one.spec.access_modes]
        in_use = any(_is_in_use(one, pod, ctx) for one in exclusive)
        return PodVolumes("", in_use, bound, unbound, candidates, classes)

    # Binding

    def selected_node(self, pod: Unstructured) -> str:
        """Return the node on which the claims of a pod are being bound, "" for none."""
        assumed = self._assumed.get(pod.uid)
        return assumed.node if assumed is not None else ""

    def cancel(self, pod: Unstructured) -> None:
        """Drop the node on which the claims of a pod were being bound."""
        self._assumed.pop(pod.uid, None)

    def has_timed_out(self, pod: Unstructured) -> bool:
        """Report whether the binding of the claims of a pod takes too long."""
        assumed = self._assumed.get(pod.uid)
        return assumed is not None and self._clock() >= assumed.deadline

    async def start(self, pod: Unstructured, node: NodeInfo, volumes: PodVolumes, ctx: Context) -> bool:
        """Start the binding of the claims of a pod on a node; report whether all of them are bound already.

        Raises: Conflict when a claim or volume changed meanwhile.
        """
        pending = volumes.on_node(node)
        if not (pending.bindings or pending.to_create):
            return True
        if pod.uid not in self._assumed:
            self._assumed[pod.uid] = _PendingBinding(node.name, self._clock() + BIND_TIMEOUT)
        await _write(pending, node.name, ctx)
        return False


async def _write(pending: VolumeBindings, node: str, ctx: Context) -> None:
    client = ctx.client.using(field_manager="kube-scheduler")
    for volume, claim in pending.bindings:
        if set_claim_ref(volume, claim):
            await client.update(volume)
    for claim in pending.to_create:
        if claim.metadata.annotations.get(SELECTED_NODE) != node:
            claim.metadata.annotations[SELECTED_NODE] = node
            await client.update(claim)


async def _classes_of(claims: Iterable[PersistentVolumeClaim], ctx: Context) -> Mapping[str, StorageClass]:
    names = {class_of(one) for one in claims if class_of(one)}
    found = [await ctx.get(StorageClass, name) for name in sorted(names)]
    return {one.name: one for one in found if one is not None}


def _problem(named: PodClaim, claim: PersistentVolumeClaim | None, pod: Unstructured) -> str:
    """Return why a claim keeps a pod from being scheduled, "" if it does not."""
    if claim is None:
        if named.ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{named.name}"'
        return f'persistentvolumeclaim "{named.name}" not found'
    if claim.status.phase == "Lost":
        volume = claim.spec.volume_name or ""
        return f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{volume}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    if named.ephemeral and not is_created_for(claim, pod.uid):
        return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
    return ""


def _is_in_use(claim: PersistentVolumeClaim, pod: Unstructured, ctx: Context) -> bool:
    """Report whether another pod on a node uses a claim."""
    others: list[Any] = ctx.find(Pod, PODS_BY_CLAIM, claim.key, namespace=claim.namespace)
    return any(one.uid != pod.uid and one.spec.node_name and one.status.phase not in _TERMINAL_PHASES for one in others)
