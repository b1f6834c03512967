"""Scenarios for a cluster without nodes: each changes workloads, and records the state at some points.

A scenario records the same on the embedded control plane and on a real one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from konverge.objects import Unstructured
from workload_clusters import WorkloadCluster, event_messages, seen

__all__ = ["SCENARIOS", "Notes"]

ROLLOUTS = ("deployments.apps", "replicasets.apps")


class Notes:
    """The state at each recorded point of a scenario.

    `expected` is the expected state by point: until it is reached, the recording waits. On a real server
    the end of all changes is not known.
    """

    def __init__(self, cluster: WorkloadCluster, expected: dict[str, Any] | None = None) -> None:
        self.cluster = cluster
        self.pages: dict[str, Any] = {}
        self._expected = expected or {}

    async def note(self, point: str, *kinds: str) -> None:
        await self._keep(point, lambda: seen(self.cluster, *kinds))

    async def note_events(self) -> None:
        await self._keep("events", lambda: event_messages(self.cluster))

    async def _keep(self, point: str, look: Callable[[], Awaitable[Any]]) -> None:
        await self.cluster.settle()

        async def is_there() -> bool:
            text = json.dumps(await look()).replace(f" {self.cluster.namespace}/", " <namespace>/")
            self.pages[point] = json.loads(text)
            return point not in self._expected or bool(self.pages[point] == self._expected[point])

        with suppress(AssertionError):  # the state that was reached instead is recorded
            await self.cluster.until(is_there, point, limit=45)


Scenario = Callable[[WorkloadCluster, Notes], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__] = function
    return function


def deployment(replicas: int = 3, image: str = "i:1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "annotations": {"team": "shop"}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(image),
            **spec,
        },
    }


def template(image: str = "i:1", **pod: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}], **pod}}


def image(name: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": name}]}}}}


async def change(
    cluster: WorkloadCluster, patch: dict[str, Any], name: str = "web", kind: str = "deployments.apps"
) -> None:
    await cluster.merge(kind, name, patch)
    await cluster.settle()


async def follow(cluster: WorkloadCluster, rounds: int = 15) -> None:
    """Act as the kubelet until nothing is left to do."""
    for _ in range(rounds):
        await cluster.settle()
        pods = await cluster.pods()
        served = all(pod.spec.node_name and pod.metadata.deletion_timestamp is None for pod in pods)
        if served and all(map(_has_rolled, await cluster.all("deployments.apps"))):
            return
        await cluster.start()
        await cluster.remove_deleted()


async def have_come(cluster: WorkloadCluster, count: int) -> None:
    """Wait for the first pods, however slow a controller is."""

    async def are_there() -> bool:
        return len(await cluster.pods()) == count

    await cluster.until(are_there, f"{count} pods")
    await cluster.settle()


def _has_rolled(deployment: dict[str, Any]) -> bool:
    """Report whether a controller has finished a rollout, however slow it is."""
    spec, status = deployment["spec"], deployment["status"]
    counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    seen_it = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    return bool(spec.get("paused")) or (seen_it and counts == [spec["replicas"]] * 3)


@scenario
async def a_deployment_is_created_rolled_undone_and_scaled(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(deployment())
    await notes.note("created", *ROLLOUTS, "pods")
    await cluster.start(count=1)
    await notes.note("one ready", *ROLLOUTS)
    await cluster.start()
    await notes.note("ready", *ROLLOUTS)
    await change(cluster, image("i:2"))
    await notes.note("rolling", *ROLLOUTS)
    await follow(cluster)
    await notes.note("rolled", *ROLLOUTS)
    await notes.note_events()
    await change(cluster, image("i:1"))
    await follow(cluster)
    await notes.note("undone", *ROLLOUTS)
    await change(cluster, {"spec": {"replicas": 5}})
    await notes.note("scaling", *ROLLOUTS)
    await follow(cluster)
    await notes.note("scaled", *ROLLOUTS)
    await change(cluster, {"spec": {"replicas": 1}, "metadata": {"annotations": {"team": "store"}}})
    await follow(cluster)
    await notes.note("shrunk", *ROLLOUTS)
    await change(cluster, {"spec": {"minReadySeconds": 1}})
    await asyncio.sleep(2)
    await notes.note("patient", *ROLLOUTS)


@scenario
async def a_rollout_gets_stuck_and_is_rolled_over_and_scaled_amid(cluster: WorkloadCluster, notes: Notes) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    await cluster.create(deployment(10, strategy=rolling))
    await follow(cluster)
    await change(cluster, image("i:2"))
    for _ in range(4):
        await cluster.start(ready=False)
        await cluster.remove_deleted()
    await notes.note("stuck", *ROLLOUTS)
    await change(cluster, {"spec": {"replicas": 15}})
    await cluster.start(ready=False)
    await notes.note("grown amid", *ROLLOUTS)
    await change(cluster, {"spec": {"replicas": 6}})
    await cluster.remove_deleted()
    await notes.note("shrunk amid", *ROLLOUTS)
    await change(cluster, image("i:3"))
    await cluster.remove_deleted()
    await notes.note("rolled over", *ROLLOUTS)
    await follow(cluster)
    await notes.note("done", *ROLLOUTS)


@scenario
async def a_deployment_is_recreated(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(deployment(2, strategy={"type": "Recreate"}))
    await follow(cluster)
    await change(cluster, image("i:2"))
    await notes.note("old ones leave", *ROLLOUTS)
    await cluster.remove_deleted()
    await notes.note("new ones come", *ROLLOUTS)
    await follow(cluster)
    await notes.note("done", *ROLLOUTS)
    await notes.note_events()


@scenario
async def a_deployment_is_paused_and_resumed_and_forgets_history(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(deployment(2, revisionHistoryLimit=1))
    await follow(cluster)
    await change(cluster, {"spec": {"paused": True}})
    await notes.note("paused", *ROLLOUTS)
    await change(cluster, image("i:2"))
    await change(cluster, {"spec": {"replicas": 3}})
    await follow(cluster)
    await notes.note("scaled amid a pause", *ROLLOUTS)
    await change(cluster, {"spec": {"paused": False}})
    await notes.note("resumed", *ROLLOUTS)
    await follow(cluster)
    await change(cluster, image("i:3"))
    await follow(cluster)
    await change(cluster, image("i:4"))
    await follow(cluster)
    await notes.note("history of one", *ROLLOUTS)


@scenario
async def a_deployment_makes_no_progress(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(deployment(1, progressDeadlineSeconds=2))

    async def late() -> bool:
        conditions = (await cluster.get("deployments.apps", "web"))["status"].get("conditions", [])
        return any(one["reason"] == "ProgressDeadlineExceeded" for one in conditions)

    await cluster.until(late, "the deadline of progress")
    await notes.note("late", *ROLLOUTS)
    await follow(cluster)
    await notes.note("after all", *ROLLOUTS)


@scenario
async def pods_cannot_be_created(cluster: WorkloadCluster, notes: Notes) -> None:
    urgent = "urgent"
    await cluster.create(deployment(3, template=template(priorityClassName=urgent)))
    await notes.note("refused", *ROLLOUTS)
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": urgent}}
    await cluster.client.create(Unstructured({**priority, "value": 1}))

    async def made() -> bool:
        return len(await cluster.pods()) == 3

    await cluster.until(made, "pods")
    await follow(cluster)
    await notes.note("allowed", *ROLLOUTS)


@scenario
async def a_replica_set_is_taken_over_by_another_deployment(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(deployment(2))
    await follow(cluster)
    await cluster.delete_owner("deployments.apps", "web", "replicasets.apps")
    await notes.note("left", "replicasets.apps")
    await cluster.create(deployment(2))
    await notes.note("taken over", *ROLLOUTS)
    await change(cluster, image("i:2"))
    await follow(cluster)
    await notes.note("rolled", *ROLLOUTS)


@scenario
async def a_deployment_without_surge_goes_to_zero_and_back(cluster: WorkloadCluster, notes: Notes) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "50%"}}
    await cluster.create(deployment(5, strategy=rolling))
    await follow(cluster)
    await change(cluster, image("i:2"))
    await notes.note("half way", *ROLLOUTS)
    await follow(cluster)
    await notes.note("rolled", *ROLLOUTS)
    await change(cluster, {"spec": {"replicas": 0}})
    await follow(cluster)
    await notes.note("zero", *ROLLOUTS)
    await change(cluster, image("i:3"))
    await notes.note("rolled at zero", *ROLLOUTS)
    await change(cluster, {"spec": {"replicas": 2}})
    await follow(cluster)
    await notes.note("back", *ROLLOUTS)


@scenario
async def a_replica_set_adopts_releases_and_chooses(cluster: WorkloadCluster, notes: Notes) -> None:
    lone = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lone", "labels": {"app": "web"}}}
    await cluster.create({**lone, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template()}
    await cluster.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "rs"}, "spec": spec})
    await notes.note("adopted", "replicasets.apps", "pods")
    await cluster.start()
    await change(cluster, {"metadata": {"labels": {"app": "other"}}}, "lone", "pods")
    await notes.note("released", "replicasets.apps", "pods")
    await cluster.start()
    await change(cluster, {"metadata": {"labels": {"app": "web"}}}, "lone", "pods")
    await cluster.remove_deleted()
    await notes.note("taken back", "replicasets.apps")
    cheap = "controller.kubernetes.io/pod-deletion-cost"
    for pod in await cluster.pods():
        cost = "100" if pod.name == "lone" else "1"
        await cluster.merge("pods", pod.name, {"metadata": {"annotations": {cheap: cost}}})
    await change(cluster, {"spec": {"replicas": 1}}, "rs", "replicasets.apps")
    await cluster.remove_deleted()
    left = [pod.name for pod in await cluster.pods()]
    notes.pages["left"] = len(left)
    await notes.note("shrunk", "replicasets.apps")
    await change(cluster, {"spec": {"replicas": 0}}, "rs", "replicasets.apps")
    await notes.note("leaving", "replicasets.apps")
    await cluster.remove_deleted()
    await notes.note("none", "replicasets.apps")
    await notes.note_events()


def job(**spec: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "work"},
        "spec": {"template": {"metadata": {"labels": {"kind": "work"}}, "spec": pod}, **spec},
    }


@scenario
async def a_job_completes(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(job(completions=3, parallelism=2))
    await notes.note("created", "jobs.batch", "pods")
    await cluster.start()
    await notes.note("running", "jobs.batch")
    await cluster.end("Succeeded")
    await notes.note("two of three", "jobs.batch", "pods")
    await cluster.start()
    await cluster.end("Succeeded")
    await notes.note("complete", "jobs.batch", "pods")
    await notes.note_events()


@scenario
async def a_job_fails(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(job(parallelism=2, completions=2, backoffLimit=0))
    await have_come(cluster, 2)
    await cluster.start()
    await cluster.end("Failed", count=1, code=3)
    await notes.note("failing", "jobs.batch", "pods")
    await cluster.remove_deleted()
    await notes.note("failed", "jobs.batch", "pods")
    await notes.note_events()


@scenario
async def a_job_is_suspended_and_resumed(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(job(suspend=True, parallelism=2, completions=2))
    await notes.note("suspended", "jobs.batch", "pods")
    await change(cluster, {"spec": {"suspend": False}}, "work", "jobs.batch")
    await notes.note("resumed", "jobs.batch")
    await cluster.start(count=1)
    await change(cluster, {"spec": {"suspend": True}}, "work", "jobs.batch")
    await cluster.remove_deleted()
    await notes.note("suspended again", "jobs.batch", "pods")
    await notes.note_events()


@scenario
async def a_job_takes_too_long(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(job(activeDeadlineSeconds=15))
    await have_come(cluster, 1)
    await cluster.start()

    async def late() -> bool:
        conditions = (await cluster.get("jobs.batch", "work"))["status"].get("conditions", [])
        return any(one["reason"] == "DeadlineExceeded" for one in conditions)

    await cluster.until(late, "the deadline of the job")
    await notes.note("late", "jobs.batch", "pods")
    await cluster.remove_deleted()
    await notes.note("failed", "jobs.batch", "pods")
    await notes.note_events()


@scenario
async def an_indexed_job_replaces_what_failed(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(job(completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=1))
    await notes.note("created", "jobs.batch", "pods")
    await cluster.start()
    await cluster.end("Failed", count=1, code=1)
    await cluster.end("Succeeded", count=1)

    async def replaced() -> bool:
        return len([pod for pod in await cluster.pods() if pod.status.phase == "Pending"]) == 1

    await cluster.until(replaced, "another pod for the failed one")
    await cluster.start()
    await notes.note("replaced", "jobs.batch", "pods")
    await cluster.end("Succeeded")
    await notes.note("complete", "jobs.batch")


@scenario
async def a_job_gives_up_after_failures(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(job(backoffLimit=1))
    for _ in range(2):
        await cluster.until(lambda: has_waiting(cluster), "a pod")
        await cluster.start()
        await cluster.end("Failed", code=1)
    await notes.note("given up", "jobs.batch", "pods")
    await notes.note_events()


@scenario
async def a_job_without_completions_waits_for_what_runs(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(job(parallelism=3))
    await have_come(cluster, 3)
    await cluster.start()
    await cluster.end("Succeeded", count=1)
    await notes.note("one succeeded", "jobs.batch")
    await cluster.end("Succeeded")
    await notes.note("complete", "jobs.batch")


@scenario
async def a_job_shrinks_and_loses_a_pod(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(job(parallelism=3, completions=5))
    await have_come(cluster, 3)
    await cluster.start()
    await change(cluster, {"spec": {"parallelism": 1}}, "work", "jobs.batch")
    await cluster.remove_deleted()
    await notes.note("shrunk", "jobs.batch")
    (running,) = await cluster.pods()
    await cluster.client.delete("pods", running.name)
    await cluster.settle()
    await cluster.remove_deleted()
    await cluster.until(lambda: has_waiting(cluster), "another pod")
    await notes.note("replaced", "jobs.batch")


@scenario
async def a_job_replaces_only_what_has_ended(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(job(podReplacementPolicy="Failed"))
    await have_come(cluster, 1)
    await cluster.start()
    (running,) = await cluster.pods()
    await cluster.client.delete("pods", running.name)
    await notes.note("leaving", "jobs.batch", "pods")
    await cluster.end("Failed", code=1)
    await cluster.remove_deleted()
    await cluster.until(lambda: has_waiting(cluster), "another pod")
    await notes.note("replaced", "jobs.batch")


@scenario
async def a_job_fails_by_its_policy(cluster: WorkloadCluster, notes: Notes) -> None:
    rules = [
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}},
        {"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [42]}},
    ]
    await cluster.create(job(podFailurePolicy={"rules": rules}, backoffLimit=0))
    await have_come(cluster, 1)
    await cluster.start()
    await cluster.end("Failed", code=7)
    await cluster.until(lambda: has_waiting(cluster), "another pod")
    await notes.note("ignored", "jobs.batch")
    await cluster.start()
    await cluster.end("Failed", code=42)
    await notes.note("failed", "jobs.batch")
    await notes.note_events()


@scenario
async def an_indexed_job_is_content_early(cluster: WorkloadCluster, notes: Notes) -> None:
    rules = {"rules": [{"succeededIndexes": "0,1", "succeededCount": 1}]}
    await cluster.create(job(completionMode="Indexed", completions=3, parallelism=3, successPolicy=rules))
    await have_come(cluster, 3)
    await cluster.start()
    await cluster.end("Succeeded", count=1)
    await notes.note("content", "jobs.batch")
    await cluster.remove_deleted()
    await notes.note("complete", "jobs.batch")
    await notes.note_events()


async def has_waiting(cluster: WorkloadCluster) -> bool:
    return any(pod.status.phase == "Pending" for pod in await cluster.pods())


@scenario
async def a_job_is_deleted_with_its_pods_left(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(job(parallelism=2, completions=2))
    await have_come(cluster, 2)
    await cluster.start(count=1)
    await cluster.delete_owner("jobs.batch", "work", "pods")

    async def free() -> bool:
        return all(not pod.metadata.finalizers and not pod.metadata.owner_references for pod in await cluster.pods())

    await cluster.until(free, "pods without the finalizer")
    notes.pages["free"] = len(await cluster.pods())


def service(**spec: Any) -> dict[str, Any]:
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    whole = {"selector": {"app": "web"}, "ports": ports, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "labels": {"t": "s"}}, "spec": whole}


ENDPOINTS = ("endpointslices.discovery.k8s.io", "endpoints")


@scenario
async def a_service_follows_its_pods(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(service())
    await notes.note("no pods", *ENDPOINTS)
    await cluster.create(deployment(2))
    await have_come(cluster, 2)
    await cluster.start(count=1)
    await cluster.start(ready=False)
    await notes.note("one ready", *ENDPOINTS)
    for pod in await cluster.pods():
        if any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions):
            await cluster.client.delete("pods", pod.name)
    await notes.note("one leaves", *ENDPOINTS)
    await change(cluster, {"metadata": {"labels": {"t": "u"}}}, "web", "services")
    await notes.note("relabelled", *ENDPOINTS)
    await cluster.remove_deleted()
    await change(cluster, {"spec": {"replicas": 0}})
    await cluster.remove_deleted()
    await notes.note("none left", *ENDPOINTS)
    await cluster.client.delete("services", "web")
    await cluster.settle()
    notes.pages["endpoints left"] = [one.name for one in await cluster.all("endpoints") if one.name != "kubernetes"]


@scenario
async def a_headless_service_publishes_what_is_not_ready(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(service(clusterIP="None", publishNotReadyAddresses=True))
    await cluster.create(deployment(2))
    await have_come(cluster, 2)
    await cluster.start(count=1)
    await cluster.start(ready=False)
    await notes.note("both", *ENDPOINTS)


@scenario
async def services_differ(cluster: WorkloadCluster, notes: Notes) -> None:
    named = [{"name": "web", "port": 80, "targetPort": "web"}]
    await cluster.create(service(ports=named, type="NodePort"))
    plain = service(selector=None)
    plain["metadata"]["name"] = "plain"
    await cluster.create(plain)
    outside = service(type="ExternalName", externalName="example.com")
    outside["metadata"]["name"] = "outside"
    await cluster.create(outside)
    ports = [{"name": "web", "containerPort": 9090}]
    containers = [{"name": "c", "image": "i:1", "ports": ports}]
    await cluster.create(deployment(2, template=template(containers=containers, hostname="h", subdomain="web")))
    await have_come(cluster, 2)
    await cluster.start()
    await notes.note("by name", *ENDPOINTS)
    await change(cluster, {"spec": {"ports": [{"name": "web", "port": 80, "targetPort": 9091}]}}, "web", "services")
    await notes.note("by number", *ENDPOINTS)
    await change(cluster, {"spec": {"selector": {"app": "other"}}}, "web", "services")
    await notes.note("none selected", *ENDPOINTS)
    (pod, _) = await cluster.pods()
    await change(cluster, {"metadata": {"labels": {"app": "other"}}}, pod.name, "pods")
    await notes.note("one selected", *ENDPOINTS)
    await cluster.client.delete("endpoints", "web")
    await notes.note("made again", *ENDPOINTS)
