"""Scenarios of claims and volumes: each records the state at some points, the same on every control plane.

The scenario is the scheduler and the kubelet. Provisioner and resizer are the simulated ones, on a real server too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from konverge.errors import ApiError
from volume_clusters import CLAIMS, VOLUMES, VolumeCluster

__all__ = ["SCENARIOS", "VolumeNotes"]

SIMULATED = "simulated.konverge.dev"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


class VolumeNotes:
    """The state at each recorded point of a scenario.

    `expected` is the expected state by point: until it is reached, the recording waits. On a real server
    the end of all changes is not known.
    """

    def __init__(self, cluster: VolumeCluster, expected: dict[str, Any] | None = None) -> None:
        self.cluster = cluster
        self.pages: dict[str, Any] = {}
        self._expected = expected or {}

    async def note(self, point: str) -> None:
        await self._keep(point, self.cluster.seen)

    async def note_events(self) -> None:
        await self._keep("events", self.cluster.event_messages)

    async def note_refused(self, point: str, request: Awaitable[None]) -> None:
        """Record the error of a request, without the difference that a real server appends to some."""
        self.pages[point] = "not refused"
        try:
            await request
        except ApiError as error:
            text = str(error).replace(self.cluster.namespace, "<ns>")
            self.pages[point] = text.split("\n")[0].removesuffix(", at .spec")

    async def _keep(self, point: str, look: Callable[[], Awaitable[Any]]) -> None:
        await self.cluster.settle()

        async def is_there() -> bool:
            self.pages[point] = await look()
            return point not in self._expected or bool(self.pages[point] == self._expected[point])

        with suppress(AssertionError):  # the state that was reached instead is recorded
            await self.cluster.until(is_there, point, limit=45)


Scenario = Callable[[VolumeCluster, VolumeNotes], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__] = function
    return function


def uses(claim: str) -> dict[str, Any]:
    return {"name": claim, "persistentVolumeClaim": {"claimName": claim}}


@scenario
async def claims_get_the_smallest_volume_that_fits(cluster: VolumeCluster, notes: VolumeNotes) -> None:
    await cluster.volume("small", "1Gi")
    await cluster.volume("middle", "5Gi", labels={"disk": "fast"})
    await cluster.volume("large", "10Gi")
    await cluster.volume("shared", "2Gi", accessModes=["ReadWriteOnce", "ReadWriteMany"])
    await cluster.volume("block", "2Gi", volumeMode="Block")
    await cluster.volume("gold", "2Gi", storageClassName="gold")
    await notes.note("available")
    await cluster.claim("a-two", "2Gi")  # the smallest of the volumes with fewest modes
    await cluster.claim("b-many", "2Gi", accessModes=["ReadWriteMany"])
    await cluster.settle()
    await cluster.claim("c-fast", "1Gi", selector={"matchLabels": {"disk": "fast"}})
    await cluster.claim("d-block", "1Gi", volumeMode="Block")
    await cluster.claim("e-gold", "1Gi", storageClassName="gold")
    await cluster.claim("f-huge", "1Ti")
    await notes.note("bound")
    await notes.note_events()


@scenario
async def volumes_and_claims_name_each_other(cluster: VolumeCluster, notes: VolumeNotes) -> None:
    await cluster.volume("one", "1Gi")
    await cluster.volume("reserved", "1Gi", claim="waited-for")
    await cluster.volume("gold", "1Gi", storageClassName="gold")
    await notes.note("reserved")
    await cluster.claim("a-one", volumeName="one")
    await cluster.settle()
    await cluster.claim("b-late", volumeName="one")
    await cluster.claim("c-absent", volumeName="absent")
    await cluster.claim("d-class", volumeName="gold")
    await cluster.claim("waited-for")
    await notes.note("bound")
    await cluster.volume("absent", "1Gi")
    await notes.note("appeared")
    await cluster.volume("e-small", "1Gi")
    await cluster.claim("e-small", "2Gi", volumeName="e-small")
    await cluster.volume("f-mode", "1Gi")
    await cluster.claim("f-mode", volumeName="f-mode", volumeMode="Block")
    await cluster.volume("g-modes", "1Gi")
    await cluster.claim("g-modes", volumeName="g-modes", accessModes=["ReadWriteMany"])
    await notes.note("mismatches")
    await notes.note_events()


@scenario
async def a_claim_waits_for_a_volume(cluster: VolumeCluster, notes: VolumeNotes) -> None:
    await cluster.claim("classless", storageClassName="")
    await cluster.claim("data")
    await notes.note("waiting")
    await notes.note_events()
    await cluster.volume("other", storageClassName="other")
    await cluster.volume("late", storageClassName="")
    await cluster.volume("data")
    await notes.note("bound")


@scenario
async def a_claim_waits_for_its_first_consumer(cluster: VolumeCluster, notes: VolumeNotes) -> None:
    await cluster.storage_class("local", volumeBindingMode="WaitForFirstConsumer")
    await cluster.volume("one", storageClassName="local")
    await cluster.claim("data", storageClassName="local")
    await notes.note("waiting")
    await cluster.pod("consumer", uses("data"))
    await cluster.until(lambda: _has_event(cluster, "WaitForPodScheduled"), "the event")
    claim = await cluster.get(CLAIMS, "data")
    reference = {"kind": "PersistentVolumeClaim", "namespace": cluster.namespace, "name": "data", "uid": claim.uid}
    await cluster.merge(VOLUMES, cluster.named("one"), {"spec": {"claimRef": reference}})  # as the scheduler does
    await notes.note("bound")
    await notes.note_events()


async def _has_event(cluster: VolumeCluster, reason: str) -> bool:
    return any(reason in one for one in await cluster.event_messages())


@scenario
async def a_selected_node_without_a_provisioner_fails(cluster: VolumeCluster, notes: VolumeNotes) -> None:
    await cluster.storage_class("local", volumeBindingMode="WaitForFirstConsumer")
    await cluster.claim("data", storageClassName="local", annotations={SELECTED_NODE: "n1"})
    await cluster.storage_class("now")
    await cluster.claim("now", storageClassName="now")
    await notes.note("failed")
    await notes.note_events()


@scenario
async def released_volumes_are_reclaimed(cluster: VolumeCluster, notes: VolumeNotes) -> None:
    delete = {"persistentVolumeReclaimPolicy": "Delete"}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}
    await cluster.volume("a-retain")
    await cluster.volume("b-delete", hostPath={"path": f"/tmp/{cluster.named('none')}"}, **delete)
    await cluster.volume("c-path", hostPath={"path": "/konverge/none"}, **delete)
    await cluster.volume("d-local", local={"path": "/none"}, nodeAffinity=affinity, **delete)
    await cluster.volume("e-driver", csi={"driver": "example.com", "volumeHandle": "v"}, **delete)
    names = ["a-retain", "b-delete", "c-path", "d-local", "e-driver"]
    for name in names:
        await cluster.claim(name, volumeName=name)
    await notes.note("bound")
    for name in names:
        await cluster.client.delete(CLAIMS, name)
    await notes.note("released")
    await cluster.claim("again", volumeName="a-retain")
    await notes.note("not reused")
    await cluster.merge(VOLUMES, cluster.named("a-retain"), {"spec": {"claimRef": None}})
    await notes.note("reused")
    await notes.note_events()


@scenario
async def what_is_in_use_is_not_deleted(cluster: VolumeCluster, notes: VolumeNotes) -> None:
    await cluster.volume("one")
    await cluster.claim("data")
    await cluster.settle()
    await cluster.pod("writer", uses("data"))
    await cluster.schedule("writer")
    await cluster.delete(CLAIMS, "data")
    await cluster.delete(VOLUMES, "one")
    await notes.note("both in use")
    await cluster.write_status(await _pod(cluster, "writer"), "Succeeded")
    await notes.note("a terminated pod counts")
    await cluster.delete("pods", "writer")
    await notes.note("gone")
    await cluster.claim("unused")
    await cluster.pod("unscheduled", uses("unused"))
    await cluster.delete(CLAIMS, "unused")
    await cluster.volume("unused")
    await cluster.delete(VOLUMES, "unused")
    await notes.note("never used")


async def _pod(cluster: VolumeCluster, name: str) -> Any:
    return next(pod for pod in await cluster.pods() if pod.name == name)


@scenario
async def a_removed_finalizer_is_added_again(cluster: VolumeCluster, notes: VolumeNotes) -> None:
    await cluster.volume("one")
    await cluster.claim("data")
    await cluster.settle()
    await cluster.merge(CLAIMS, "data", {"metadata": {"finalizers": None}})
    await cluster.merge(VOLUMES, cluster.named("one"), {"metadata": {"finalizers": None}})
    await notes.note("restored")


@scenario
async def claims_lose_their_volume(cluster: VolumeCluster, notes: VolumeNotes) -> None:
    for name in ("a", "b"):
        await cluster.volume(name)
        await cluster.claim(name, volumeName=name)
    await notes.note("bound")
    await cluster.delete(VOLUMES, "a")
    await cluster.merge(VOLUMES, cluster.named("a"), {"metadata": {"finalizers": None}})
    reference = {"kind": "PersistentVolumeClaim", "namespace": cluster.namespace, "name": "c", "uid": "other"}
    await cluster.merge(VOLUMES, cluster.named("b"), {"spec": {"claimRef": reference}})
    await notes.note("lost")
    await notes.note_events()


@scenario
async def volumes_are_provisioned_and_deleted(cluster: VolumeCluster, notes: VolumeNotes) -> None:
    await cluster.storage_class("now", SIMULATED, mountOptions=["ro"], parameters={"type": "fast"})
    await cluster.storage_class("kept", SIMULATED, reclaimPolicy="Retain")
    await cluster.claim("data", "3Gi", storageClassName="now", accessModes=["ReadWriteOnce", "ReadOnlyMany"])
    await cluster.claim("kept", storageClassName="kept", volumeMode="Block")
    await notes.note("provisioned")
    await notes.note_events()
    await cluster.delete(CLAIMS, "data")
    await cluster.delete(CLAIMS, "kept")
    await notes.note("deleted")


@scenario
async def a_selected_node_gets_its_volume(cluster: VolumeCluster, notes: VolumeNotes) -> None:
    zones = [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["z0", "z1"]}]}]
    late = {"volumeBindingMode": "WaitForFirstConsumer"}
    await cluster.storage_class("local", "rancher.io/local-path", **late)
    await cluster.storage_class("zonal", SIMULATED, allowedTopologies=zones, **late)
    await cluster.claim("local", storageClassName="local")
    await cluster.claim("zonal", storageClassName="zonal")
    await notes.note("waiting")
    for name in ("local", "zonal"):
        await cluster.merge(CLAIMS, name, {"metadata": {"annotations": {SELECTED_NODE: "n1"}}})
    await cluster.claim("nowhere", storageClassName="local", annotations={SELECTED_NODE: "n0"})
    await notes.note("provisioned")
    await notes.note_events()


@scenario
async def claims_are_expanded(cluster: VolumeCluster, notes: VolumeNotes) -> None:
    await cluster.storage_class("rigid")
    await cluster.storage_class("elastic", allowVolumeExpansion=True)
    await cluster.storage_class("driver", SIMULATED, allowVolumeExpansion=True)
    for name in ("rigid", "elastic"):
        await cluster.volume(name, storageClassName=name)
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}
    await cluster.volume("local", storageClassName="elastic", local={"path": "/n"}, nodeAffinity=affinity)
    await cluster.settle()
    await cluster.claim("a-rigid", storageClassName="rigid")
    await cluster.claim("b-elastic", storageClassName="elastic", volumeName="elastic")
    await cluster.claim("c-local", storageClassName="elastic", volumeName="local")
    await cluster.claim("d-driver", storageClassName="driver")
    await cluster.claim("e-block", storageClassName="driver", volumeMode="Block")
    await cluster.claim("f-plain")
    await notes.note("before")
    await notes.note_refused("rigid", cluster.resize("a-rigid", "2Gi"))
    await notes.note_refused("unbound", cluster.resize("f-plain", "2Gi"))
    for name in ("b-elastic", "c-local", "d-driver", "e-block"):
        await cluster.resize(name, "2Gi")
    await notes.note_refused("shrunk", cluster.resize("b-elastic", "1Gi"))
    await notes.note("expanded")
    await notes.note_events()


@scenario
async def a_claim_gets_the_default_class_later(cluster: VolumeCluster, notes: VolumeNotes) -> None:
    many = ["ReadWriteMany"]  # no volume without a class of another scenario has it
    await cluster.claim("early", storageClassName=None, accessModes=many)
    await notes.note("no class")
    mark = {"storageclass.kubernetes.io/is-default-class": "true"}
    await cluster.storage_class("default", SIMULATED, annotations=mark)
    await cluster.claim("late", storageClassName=None, accessModes=many)
    await notes.note("with class")
    await cluster.client.delete("storageclasses.storage.k8s.io", cluster.named("default"))


@scenario
async def ephemeral_volumes_have_claims_of_their_own(cluster: VolumeCluster, notes: VolumeNotes) -> None:
    await cluster.storage_class("now", SIMULATED)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec["storageClassName"] = cluster.named("now")
    template = {"metadata": {"labels": {"app": "cache"}}, "spec": spec}
    await cluster.claim("taken-cache")
    await cluster.pod("web", {"name": "cache", "ephemeral": {"volumeClaimTemplate": template}})
    await cluster.pod("taken", {"name": "cache", "ephemeral": {"volumeClaimTemplate": template}})
    await notes.note("created")
    await notes.note_events()
