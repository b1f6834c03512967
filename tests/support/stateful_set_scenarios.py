"""Scenarios of StatefulSets for a cluster without nodes: the scenario is the scheduler and the kubelet.

A scenario records the same on the embedded control plane and on a real one. Revisions are named after their image.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from konverge.client import Client, InProcessTransport
from konverge.errors import Invalid
from konverge.objects import Unstructured
from konverge_cluster.garbage import GarbageCollector
from workload_clusters import NODE, EmbeddedWorkloadCluster, WorkloadCluster, event_messages, seen
from workload_scenarios import Notes, image, template

__all__ = [
    "GATED_SCENARIOS",
    "SCENARIOS",
    "Scenario",
    "StatefulSetNotes",
    "change",
    "claim_template",
    "embedded_cluster_with_garbage_collection",
    "follow",
    "stateful_set",
    "step",
]

KIND = "statefulsets.apps"
CLAIMS = "persistentvolumeclaims"


class StatefulSetNotes(Notes):
    """The StatefulSets, revisions and pods at each recorded point of a scenario."""

    async def point(self, name: str, *more: str) -> None:
        async def look() -> dict[str, Any]:
            revisions = await self.cluster.all("controllerrevisions.apps")
            names = {one.metadata["labels"]["controller.kubernetes.io/hash"]: _image_of(one) for one in revisions}
            found = await seen(self.cluster, KIND, "controllerrevisions.apps", "pods", *more, names=names)
            # How long a claim that is being deleted stays depends on its protection.
            stay = [one for one in found.get(CLAIMS, ()) if "deletionTimestamp" not in one["metadata"]]
            return {**found, CLAIMS: stay}

        await self._keep(name, look)

    async def names(self, name: str, kind: str) -> None:
        """Record the names of the objects of a kind that are not being deleted."""

        async def look() -> list[str]:
            return [one.name for one in await self.cluster.all(kind) if "deletionTimestamp" not in one.metadata]

        await self._keep(name, look)

    async def note_events(self) -> None:
        async def look() -> list[str]:
            return [text for text in await event_messages(self.cluster) if text.startswith("StatefulSet")]

        await self._keep("events", look)


def _image_of(revision: Unstructured) -> str:
    return f"<{revision['data']['spec']['template']['spec']['containers'][0]['image']}>"


@asynccontextmanager
async def embedded_cluster_with_garbage_collection(
    feature_gates: Iterable[str] = (),
) -> AsyncGenerator[EmbeddedWorkloadCluster]:
    """Run the embedded server with our controllers and the garbage collector."""
    cluster = EmbeddedWorkloadCluster(feature_gates=feature_gates)
    cluster.collects = True
    await cluster.client.create(Unstructured(NODE))
    collector = GarbageCollector(Client(InProcessTransport(cluster.server.handle)).without_warnings())
    async with collector.running(), cluster.controllers():
        yield cluster


# Objects


def stateful_set(replicas: int = 3, image: str = "i:1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "annotations": {"team": "shop"}},
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(image),
            **spec,
        },
    }


def rolling(**options: Any) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": options}


def claim_template(name: str = "data") -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name, "labels": {"kind": name}}, "spec": spec}


# Steps


async def change(cluster: WorkloadCluster, patch: dict[str, Any], name: str = "db", kind: str = KIND) -> None:
    await cluster.merge(kind, name, patch)
    await cluster.settle()


async def step(cluster: WorkloadCluster, *, ready: bool = True) -> None:
    """Act as the kubelet once: remove pods that are being deleted, then start those that are not scheduled."""
    await cluster.settle()
    await cluster.remove_deleted()
    await cluster.start(ready=ready)


async def follow(cluster: WorkloadCluster, rounds: int = 20) -> None:
    """Act as the kubelet until nothing is left to do."""
    for _ in range(rounds):
        await cluster.settle()
        pods = await cluster.pods()
        served = all(pod.spec.node_name and pod.metadata.deletion_timestamp is None for pod in pods)
        if served and all(map(_is_done, await cluster.all(KIND))):
            return
        await step(cluster)


def _is_done(one: dict[str, Any]) -> bool:
    spec, status = one["spec"], one["status"]
    partition = spec["updateStrategy"].get("rollingUpdate", {}).get("partition", spec["replicas"])
    counts = [status.get(name, 0) for name in ("replicas", "readyReplicas")]
    updated = status.get("updatedReplicas", 0) >= spec["replicas"] - partition
    return bool(
        status.get("observedGeneration", 0) >= one["metadata"]["generation"]
        and counts == [spec["replicas"]] * 2
        and updated
    )


# Scenarios

Scenario = Callable[[WorkloadCluster, StatefulSetNotes], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}
GATED_SCENARIOS: dict[str, Scenario] = {}
"""Scenarios that need the feature gate MaxUnavailableStatefulSet."""


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__] = function
    return function


@scenario
async def pods_are_created_and_removed_in_order(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    await cluster.create(stateful_set())
    await notes.point("created")
    await cluster.start(ready=False)
    await notes.point("not ready")
    for pod in await cluster.pods():
        await cluster.client.delete("pods", pod.name)
    await step(cluster)
    await notes.point("one ready")
    await follow(cluster)
    await notes.point("ready")
    await cluster.client.patch(KIND, "db", {"spec": {"replicas": 5}}, subresource="scale")
    await notes.point("growing")
    await follow(cluster)
    await notes.point("grown")
    await change(cluster, {"spec": {"replicas": 2}})
    await notes.point("one leaves")
    await cluster.remove_deleted()
    await notes.point("another leaves")
    await follow(cluster)
    await notes.point("shrunk")
    await change(cluster, {"spec": {"replicas": 0}})
    await follow(cluster)
    await notes.point("none")
    await notes.note_events()


@scenario
async def an_update_rolls_and_is_undone(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    await cluster.create(stateful_set())
    await follow(cluster)
    await change(cluster, {**image("i:2"), "metadata": {"annotations": {"team": "store"}}})
    await notes.point("the last leaves")
    await cluster.remove_deleted()
    await notes.point("the last is created")
    await cluster.start()
    await notes.point("the next leaves")
    await follow(cluster)
    await notes.point("rolled")
    await change(cluster, image("i:1"))
    await follow(cluster)
    await notes.point("undone")
    await change(cluster, {"spec": {"replicas": 4}})
    await follow(cluster)
    await notes.point("grown")
    await notes.note_events()


@scenario
async def an_update_stops_at_the_partition(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    await cluster.create(stateful_set(updateStrategy=rolling(partition=2)))
    await follow(cluster)
    await change(cluster, image("i:2"))
    await follow(cluster)
    await notes.point("one of three")
    await cluster.client.delete("pods", "db-0")
    await follow(cluster)
    await notes.point("an old one is replaced")
    await change(cluster, {"spec": {"replicas": 4}})
    await follow(cluster)
    await notes.point("grown amid")
    await change(cluster, {"spec": {"updateStrategy": rolling(partition=1)}})
    await follow(cluster)
    await notes.point("one more")
    await change(cluster, image("i:3"))
    await follow(cluster)
    await notes.point("another template amid")
    await change(cluster, {"spec": {"updateStrategy": rolling(partition=0)}})
    await follow(cluster)
    await notes.point("all")


@scenario
async def an_update_fails_and_is_undone(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    await cluster.create(stateful_set())
    await follow(cluster)
    await change(cluster, image("bad:1"))
    await step(cluster, ready=False)
    await notes.point("stuck")
    await change(cluster, image("i:1"))
    await notes.point("undone, but the broken pod stays")
    await cluster.client.delete("pods", "db-2")
    await follow(cluster)
    await notes.point("repaired")
    await notes.note_events()


@scenario
async def pods_are_updated_when_they_are_deleted(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    await cluster.create(stateful_set(updateStrategy={"type": "OnDelete"}))
    await follow(cluster)
    await change(cluster, image("i:2"))
    await notes.point("nothing happens")
    await cluster.client.delete("pods", "db-1")
    await follow(cluster)
    await notes.point("one is updated")
    for name in ("db-0", "db-2"):
        await cluster.client.delete("pods", name)
    await follow(cluster)
    await notes.point("all are updated")
    await change(cluster, {"spec": {"updateStrategy": rolling(partition=0)}})
    await notes.point("complete")


@scenario
async def pods_are_managed_in_parallel(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    await cluster.create(stateful_set(podManagementPolicy="Parallel"))
    await notes.point("created")
    await follow(cluster)
    await notes.point("ready")
    await change(cluster, image("i:2"))
    await notes.point("one leaves")
    await step(cluster, ready=False)
    await notes.point("stuck")
    await change(cluster, image("i:3"))
    await notes.point("rolled over")
    await follow(cluster)
    await notes.point("rolled")
    await change(cluster, {"spec": {"replicas": 0}})
    await notes.point("all leave")
    await cluster.remove_deleted()
    await notes.point("none")
    await notes.note_events()


@scenario
async def ordinals_start_later(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    await cluster.create(stateful_set(2, ordinals={"start": 5}, updateStrategy=rolling(partition=1)))
    await follow(cluster)
    await notes.point("ready")
    await change(cluster, image("i:2"))
    await follow(cluster)
    await notes.point("rolled to the partition")
    await change(cluster, {"spec": {"ordinals": {"start": 6}}})
    await follow(cluster)
    await notes.point("moved")
    await change(cluster, {"spec": {"ordinals": None}})
    await follow(cluster)
    await notes.point("from zero")
    await notes.note_events()


@scenario
async def claims_follow_the_retention_policy(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    claims = [claim_template(), claim_template("log")]
    policy = {"whenDeleted": "Retain", "whenScaled": "Delete"}
    await cluster.create(stateful_set(3, volumeClaimTemplates=claims, persistentVolumeClaimRetentionPolicy=policy))
    await notes.point("created", CLAIMS)
    await follow(cluster)
    await notes.point("ready", CLAIMS)
    await change(cluster, {"spec": {"replicas": 2}})
    await notes.point("one leaves", CLAIMS)
    await follow(cluster)
    await notes.names("claims of two", CLAIMS)
    for when_deleted, when_scaled in (("Delete", "Retain"), ("Retain", "Retain"), ("Delete", "Delete")):
        policy = {"whenDeleted": when_deleted, "whenScaled": when_scaled}
        await change(cluster, {"spec": {"persistentVolumeClaimRetentionPolicy": policy}})
        await notes.point(f"{when_deleted} and {when_scaled}", CLAIMS)
    await notes.note_events()
    await change(cluster, {"spec": {"replicas": 1}})
    await follow(cluster)
    await notes.names("claims of one", CLAIMS)
    await cluster.client.delete(KIND, "db", propagation="Foreground")
    await cluster.settle()
    await cluster.remove_deleted()
    await notes.names("claims of none", CLAIMS)


@scenario
async def claims_are_retained(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    await cluster.create(stateful_set(2, volumeClaimTemplates=[claim_template()]))
    await follow(cluster)
    await change(cluster, {"spec": {"replicas": 1}})
    await follow(cluster)
    await notes.point("shrunk", CLAIMS)
    await change(cluster, {"spec": {"replicas": 2}})
    await follow(cluster)
    await notes.point("grown again", CLAIMS)
    await cluster.client.delete(KIND, "db", propagation="Background")
    await cluster.settle()
    await cluster.remove_deleted()
    await notes.point("deleted", CLAIMS)
    await notes.note_events()


@scenario
async def pods_and_revisions_are_orphaned_and_adopted(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    await cluster.create(stateful_set(2))
    await follow(cluster)
    await change(cluster, image("i:2"))
    await follow(cluster)
    await cluster.delete_owner(KIND, "db", "pods")
    await notes.point("orphaned")
    await cluster.create(stateful_set(3, "i:1"))
    await notes.point("adopted")
    await follow(cluster)
    await notes.point("rolled")


@scenario
async def a_stateful_set_is_deleted_in_the_foreground(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    await cluster.create(stateful_set(2))
    await follow(cluster)
    await cluster.client.delete(KIND, "db", propagation="Foreground")
    await notes.note("pods leave", KIND)
    await notes.names("pods that stay", "pods")
    await cluster.remove_deleted()

    async def is_gone() -> bool:
        return not await cluster.all(KIND)

    await cluster.until(is_gone, "the deletion of the StatefulSet")
    await notes.point("gone")
    await notes.note_events()


@scenario
async def pods_that_finished_are_replaced(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    await cluster.create(stateful_set(2))
    await follow(cluster)
    await cluster.end("Failed", count=1, code=1)
    await notes.point("replaced")
    await follow(cluster)
    await cluster.end("Succeeded", count=1)
    await follow(cluster)
    await notes.point("replaced again")
    await notes.note_events()


@scenario
async def pods_cannot_be_created_at_first(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    urgent = "stateful"
    await cluster.create(stateful_set(2, template=template(priorityClassName=urgent)))
    await notes.point("refused")
    await notes.note_events()
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": urgent}}
    await cluster.client.create(Unstructured({**priority, "value": 1}))

    async def is_created() -> bool:
        return bool(await cluster.pods())

    await cluster.until(is_created, "a pod")
    await follow(cluster)
    await notes.point("allowed")


@scenario
async def pods_are_available_later(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    await cluster.create(stateful_set(2, minReadySeconds=4))
    await step(cluster)
    status = (await cluster.get(KIND, "db"))["status"]
    notes.pages["ready"] = [status.get("readyReplicas"), status["availableReplicas"], len(await cluster.pods())]

    async def is_next() -> bool:
        return len(await cluster.pods()) == 2

    await cluster.until(is_next, "the second pod")
    await cluster.start()
    await asyncio.sleep(5)
    await notes.point("available")
    await change(cluster, {"spec": {"minReadySeconds": 0}})
    await notes.point("no delay")


@scenario
async def old_revisions_are_removed(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    await cluster.create(stateful_set(1, revisionHistoryLimit=1))
    for number in (1, 2, 3, 4):
        await change(cluster, image(f"i:{number}"))
        await follow(cluster)
    await notes.point("history of one")
    await change(cluster, {"spec": {"revisionHistoryLimit": 0}})
    await notes.point("no history")
    await change(cluster, image("i:5"))
    await notes.point("one in use")
    await follow(cluster)
    await notes.point("rolled")


@scenario
async def pods_keep_their_identity(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    await cluster.create(stateful_set(2))
    await follow(cluster)
    label = "statefulset.kubernetes.io/pod-name"
    await change(cluster, {"metadata": {"labels": {label: "other"}}}, "db-1", "pods")
    await notes.point("labelled again")
    await change(cluster, {"metadata": {"labels": {"app": "other"}}}, "db-0", "pods")
    await notes.point("released")
    await cluster.client.delete("pods", "db-0")
    await cluster.remove_deleted()

    async def is_back() -> bool:
        return any(pod.name == "db-0" for pod in await cluster.pods())

    await cluster.until(is_back, "db-0")
    await follow(cluster)
    await notes.point("created again")
    lone = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lone", "labels": {"app": "web"}}}
    await cluster.create({**lone, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    lone["metadata"] = {"name": "db-7", "labels": {"app": "web"}}
    await cluster.create({**lone, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    await notes.point("another name is left alone, a high ordinal is removed")
    await notes.note_events()


async def several_pods_are_updated_at_a_time(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    await cluster.create(stateful_set(5, updateStrategy=rolling(maxUnavailable=2, partition=1)))
    await follow(cluster)
    await notes.point("ready")
    await change(cluster, image("i:2"))
    await notes.point("two leave")
    await cluster.remove_deleted()
    await notes.point("one of two is created")
    await follow(cluster)
    await notes.point("rolled to the partition")
    for value in (0, "0%", "101%", -1, "x"):
        try:
            await cluster.merge(KIND, "db", {"spec": {"updateStrategy": rolling(maxUnavailable=value)}})
        except Invalid as error:
            notes.pages[f"maxUnavailable {value}"] = [[cause.field, cause.message] for cause in error.causes]


async def several_pods_are_updated_in_parallel(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    strategy = rolling(maxUnavailable="50%")
    await cluster.create(stateful_set(5, podManagementPolicy="Parallel", updateStrategy=strategy))
    await follow(cluster)
    await change(cluster, image("i:2"))
    await notes.point("two leave")
    await step(cluster, ready=False)
    await notes.point("stuck")
    await change(cluster, {"spec": {"updateStrategy": rolling(maxUnavailable=3)}})
    await notes.point("a third leaves")
    await step(cluster)
    await notes.point("the third is ready, and a fourth leaves")
    await notes.note_events()


async def one_pod_is_updated_at_a_time_by_default(cluster: WorkloadCluster, notes: StatefulSetNotes) -> None:
    await cluster.create(stateful_set(2))
    await follow(cluster)
    await change(cluster, image("i:2"))
    await notes.point("one leaves")
    await follow(cluster)
    await notes.point("rolled")


for _each in (
    several_pods_are_updated_at_a_time,
    several_pods_are_updated_in_parallel,
    one_pod_is_updated_at_a_time_by_default,
):
    GATED_SCENARIOS[_each.__name__] = _each
