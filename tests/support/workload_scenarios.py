"""Plays for a cluster without nodes: each does things to workloads, and notes at some points what is there.

The same play on the embedded control plane and on a real one leaves the same notes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from konverge.objects import Unstructured
from workload_scene import Scene, seen, told

__all__ = ["PLAYS", "Notes"]

ROLLOUTS = ("deployments.apps", "replicasets.apps")


class Notes:
    """What was seen at which point of a play.

    `expected` is what is expected to be seen, by point: where it is not there yet, it is waited for. On a real server
    nobody knows when everything has happened.
    """

    def __init__(self, scene: Scene, expected: dict[str, Any] | None = None) -> None:
        self.scene = scene
        self.pages: dict[str, Any] = {}
        self._expected = expected or {}

    async def note(self, point: str, *kinds: str) -> None:
        await self._keep(point, lambda: seen(self.scene, *kinds))

    async def note_events(self) -> None:
        await self._keep("events", lambda: told(self.scene))

    async def _keep(self, point: str, look: Callable[[], Awaitable[Any]]) -> None:
        await self.scene.settle()

        async def is_there() -> bool:
            text = json.dumps(await look()).replace(f" {self.scene.namespace}/", " <namespace>/")
            self.pages[point] = json.loads(text)
            return point not in self._expected or bool(self.pages[point] == self._expected[point])

        with suppress(AssertionError):  # what is there instead is the answer
            await self.scene.until(is_there, point, limit=45)


Play = Callable[[Scene, Notes], Awaitable[None]]
PLAYS: dict[str, Play] = {}


def play(function: Play) -> Play:
    PLAYS[function.__name__] = function
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


async def change(scene: Scene, patch: dict[str, Any], name: str = "web", kind: str = "deployments.apps") -> None:
    await scene.merge(kind, name, patch)
    await scene.settle()


async def follow(scene: Scene, rounds: int = 15) -> None:
    """Be the kubelet until nothing is left to be done."""
    for _ in range(rounds):
        await scene.settle()
        pods = await scene.pods()
        served = all(pod.spec.node_name and pod.metadata.deletion_timestamp is None for pod in pods)
        if served and all(map(_has_rolled, await scene.all("deployments.apps"))):
            return
        await scene.start()
        await scene.reap()


async def have_come(scene: Scene, count: int) -> None:
    """Wait for the first pods, however slow a controller is."""

    async def are_there() -> bool:
        return len(await scene.pods()) == count

    await scene.until(are_there, f"{count} pods")
    await scene.settle()


def _has_rolled(deployment: dict[str, Any]) -> bool:
    """Tell whether a controller has nothing more to do with a deployment, however slow it is."""
    spec, status = deployment["spec"], deployment["status"]
    counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    seen_it = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    return bool(spec.get("paused")) or (seen_it and counts == [spec["replicas"]] * 3)


@play
async def a_deployment_is_created_rolled_undone_and_scaled(scene: Scene, notes: Notes) -> None:
    await scene.create(deployment())
    await notes.note("created", *ROLLOUTS, "pods")
    await scene.start(count=1)
    await notes.note("one ready", *ROLLOUTS)
    await scene.start()
    await notes.note("ready", *ROLLOUTS)
    await change(scene, image("i:2"))
    await notes.note("rolling", *ROLLOUTS)
    await follow(scene)
    await notes.note("rolled", *ROLLOUTS)
    await notes.note_events()
    await change(scene, image("i:1"))
    await follow(scene)
    await notes.note("undone", *ROLLOUTS)
    await change(scene, {"spec": {"replicas": 5}})
    await notes.note("scaling", *ROLLOUTS)
    await follow(scene)
    await notes.note("scaled", *ROLLOUTS)
    await change(scene, {"spec": {"replicas": 1}, "metadata": {"annotations": {"team": "store"}}})
    await follow(scene)
    await notes.note("shrunk", *ROLLOUTS)
    await change(scene, {"spec": {"minReadySeconds": 1}})
    await asyncio.sleep(2)
    await notes.note("patient", *ROLLOUTS)


@play
async def a_rollout_gets_stuck_and_is_rolled_over_and_scaled_amid(scene: Scene, notes: Notes) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    await scene.create(deployment(10, strategy=rolling))
    await follow(scene)
    await change(scene, image("i:2"))
    for _ in range(4):
        await scene.start(ready=False)
        await scene.reap()
    await notes.note("stuck", *ROLLOUTS)
    await change(scene, {"spec": {"replicas": 15}})
    await scene.start(ready=False)
    await notes.note("grown amid", *ROLLOUTS)
    await change(scene, {"spec": {"replicas": 6}})
    await scene.reap()
    await notes.note("shrunk amid", *ROLLOUTS)
    await change(scene, image("i:3"))
    await scene.reap()
    await notes.note("rolled over", *ROLLOUTS)
    await follow(scene)
    await notes.note("done", *ROLLOUTS)


@play
async def a_deployment_is_recreated(scene: Scene, notes: Notes) -> None:
    await scene.create(deployment(2, strategy={"type": "Recreate"}))
    await follow(scene)
    await change(scene, image("i:2"))
    await notes.note("old ones leave", *ROLLOUTS)
    await scene.reap()
    await notes.note("new ones come", *ROLLOUTS)
    await follow(scene)
    await notes.note("done", *ROLLOUTS)
    await notes.note_events()


@play
async def a_deployment_is_paused_and_resumed_and_forgets_history(scene: Scene, notes: Notes) -> None:
    await scene.create(deployment(2, revisionHistoryLimit=1))
    await follow(scene)
    await change(scene, {"spec": {"paused": True}})
    await notes.note("paused", *ROLLOUTS)
    await change(scene, image("i:2"))
    await change(scene, {"spec": {"replicas": 3}})
    await follow(scene)
    await notes.note("scaled amid a pause", *ROLLOUTS)
    await change(scene, {"spec": {"paused": False}})
    await notes.note("resumed", *ROLLOUTS)
    await follow(scene)
    await change(scene, image("i:3"))
    await follow(scene)
    await change(scene, image("i:4"))
    await follow(scene)
    await notes.note("history of one", *ROLLOUTS)


@play
async def a_deployment_makes_no_progress(scene: Scene, notes: Notes) -> None:
    await scene.create(deployment(1, progressDeadlineSeconds=2))

    async def late() -> bool:
        conditions = (await scene.get("deployments.apps", "web"))["status"].get("conditions", [])
        return any(one["reason"] == "ProgressDeadlineExceeded" for one in conditions)

    await scene.until(late, "the deadline of progress")
    await notes.note("late", *ROLLOUTS)
    await follow(scene)
    await notes.note("after all", *ROLLOUTS)


@play
async def pods_cannot_be_created(scene: Scene, notes: Notes) -> None:
    urgent = "urgent"
    await scene.create(deployment(3, template=template(priorityClassName=urgent)))
    await notes.note("refused", *ROLLOUTS)
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": urgent}}
    await scene.client.create(Unstructured({**priority, "value": 1}))

    async def made() -> bool:
        return len(await scene.pods()) == 3

    await scene.until(made, "pods")
    await follow(scene)
    await notes.note("allowed", *ROLLOUTS)


@play
async def a_replica_set_is_taken_over_by_another_deployment(scene: Scene, notes: Notes) -> None:
    await scene.create(deployment(2))
    await follow(scene)
    await scene.abandon("deployments.apps", "web", "replicasets.apps")
    await notes.note("left", "replicasets.apps")
    await scene.create(deployment(2))
    await notes.note("taken over", *ROLLOUTS)
    await change(scene, image("i:2"))
    await follow(scene)
    await notes.note("rolled", *ROLLOUTS)


@play
async def a_deployment_without_surge_goes_to_zero_and_back(scene: Scene, notes: Notes) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "50%"}}
    await scene.create(deployment(5, strategy=rolling))
    await follow(scene)
    await change(scene, image("i:2"))
    await notes.note("half way", *ROLLOUTS)
    await follow(scene)
    await notes.note("rolled", *ROLLOUTS)
    await change(scene, {"spec": {"replicas": 0}})
    await follow(scene)
    await notes.note("zero", *ROLLOUTS)
    await change(scene, image("i:3"))
    await notes.note("rolled at zero", *ROLLOUTS)
    await change(scene, {"spec": {"replicas": 2}})
    await follow(scene)
    await notes.note("back", *ROLLOUTS)


@play
async def a_replica_set_adopts_releases_and_chooses(scene: Scene, notes: Notes) -> None:
    lone = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lone", "labels": {"app": "web"}}}
    await scene.create({**lone, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template()}
    await scene.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "rs"}, "spec": spec})
    await notes.note("adopted", "replicasets.apps", "pods")
    await scene.start()
    await change(scene, {"metadata": {"labels": {"app": "other"}}}, "lone", "pods")
    await notes.note("released", "replicasets.apps", "pods")
    await scene.start()
    await change(scene, {"metadata": {"labels": {"app": "web"}}}, "lone", "pods")
    await scene.reap()
    await notes.note("taken back", "replicasets.apps")
    cheap = "controller.kubernetes.io/pod-deletion-cost"
    for pod in await scene.pods():
        cost = "100" if pod.name == "lone" else "1"
        await scene.merge("pods", pod.name, {"metadata": {"annotations": {cheap: cost}}})
    await change(scene, {"spec": {"replicas": 1}}, "rs", "replicasets.apps")
    await scene.reap()
    left = [pod.name for pod in await scene.pods()]
    notes.pages["left"] = len(left)
    await notes.note("shrunk", "replicasets.apps")
    await change(scene, {"spec": {"replicas": 0}}, "rs", "replicasets.apps")
    await notes.note("leaving", "replicasets.apps")
    await scene.reap()
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


@play
async def a_job_completes(scene: Scene, notes: Notes) -> None:
    await scene.create(job(completions=3, parallelism=2))
    await notes.note("created", "jobs.batch", "pods")
    await scene.start()
    await notes.note("running", "jobs.batch")
    await scene.end("Succeeded")
    await notes.note("two of three", "jobs.batch", "pods")
    await scene.start()
    await scene.end("Succeeded")
    await notes.note("complete", "jobs.batch", "pods")
    await notes.note_events()


@play
async def a_job_fails(scene: Scene, notes: Notes) -> None:
    await scene.create(job(parallelism=2, completions=2, backoffLimit=0))
    await have_come(scene, 2)
    await scene.start()
    await scene.end("Failed", count=1, code=3)
    await notes.note("failing", "jobs.batch", "pods")
    await scene.reap()
    await notes.note("failed", "jobs.batch", "pods")
    await notes.note_events()


@play
async def a_job_is_suspended_and_resumed(scene: Scene, notes: Notes) -> None:
    await scene.create(job(suspend=True, parallelism=2, completions=2))
    await notes.note("suspended", "jobs.batch", "pods")
    await change(scene, {"spec": {"suspend": False}}, "work", "jobs.batch")
    await notes.note("resumed", "jobs.batch")
    await scene.start(count=1)
    await change(scene, {"spec": {"suspend": True}}, "work", "jobs.batch")
    await scene.reap()
    await notes.note("suspended again", "jobs.batch", "pods")
    await notes.note_events()


@play
async def a_job_takes_too_long(scene: Scene, notes: Notes) -> None:
    await scene.create(job(activeDeadlineSeconds=15))
    await have_come(scene, 1)
    await scene.start()

    async def late() -> bool:
        conditions = (await scene.get("jobs.batch", "work"))["status"].get("conditions", [])
        return any(one["reason"] == "DeadlineExceeded" for one in conditions)

    await scene.until(late, "the deadline of the job")
    await notes.note("late", "jobs.batch", "pods")
    await scene.reap()
    await notes.note("failed", "jobs.batch", "pods")
    await notes.note_events()


@play
async def an_indexed_job_replaces_what_failed(scene: Scene, notes: Notes) -> None:
    await scene.create(job(completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=1))
    await notes.note("created", "jobs.batch", "pods")
    await scene.start()
    await scene.end("Failed", count=1, code=1)
    await scene.end("Succeeded", count=1)

    async def replaced() -> bool:
        return len([pod for pod in await scene.pods() if pod.status.phase == "Pending"]) == 1

    await scene.until(replaced, "another pod for the failed one")
    await scene.start()
    await notes.note("replaced", "jobs.batch", "pods")
    await scene.end("Succeeded")
    await notes.note("complete", "jobs.batch")


@play
async def a_job_gives_up_after_failures(scene: Scene, notes: Notes) -> None:
    await scene.create(job(backoffLimit=1))
    for _ in range(2):
        await scene.until(lambda: has_waiting(scene), "a pod")
        await scene.start()
        await scene.end("Failed", code=1)
    await notes.note("given up", "jobs.batch", "pods")
    await notes.note_events()


@play
async def a_job_without_completions_waits_for_what_runs(scene: Scene, notes: Notes) -> None:
    await scene.create(job(parallelism=3))
    await have_come(scene, 3)
    await scene.start()
    await scene.end("Succeeded", count=1)
    await notes.note("one succeeded", "jobs.batch")
    await scene.end("Succeeded")
    await notes.note("complete", "jobs.batch")


@play
async def a_job_shrinks_and_loses_a_pod(scene: Scene, notes: Notes) -> None:
    await scene.create(job(parallelism=3, completions=5))
    await have_come(scene, 3)
    await scene.start()
    await change(scene, {"spec": {"parallelism": 1}}, "work", "jobs.batch")
    await scene.reap()
    await notes.note("shrunk", "jobs.batch")
    (running,) = await scene.pods()
    await scene.client.delete("pods", running.name)
    await scene.settle()
    await scene.reap()
    await scene.until(lambda: has_waiting(scene), "another pod")
    await notes.note("replaced", "jobs.batch")


@play
async def a_job_replaces_only_what_has_ended(scene: Scene, notes: Notes) -> None:
    await scene.create(job(podReplacementPolicy="Failed"))
    await have_come(scene, 1)
    await scene.start()
    (running,) = await scene.pods()
    await scene.client.delete("pods", running.name)
    await notes.note("leaving", "jobs.batch", "pods")
    await scene.end("Failed", code=1)
    await scene.reap()
    await scene.until(lambda: has_waiting(scene), "another pod")
    await notes.note("replaced", "jobs.batch")


@play
async def a_job_fails_by_its_policy(scene: Scene, notes: Notes) -> None:
    rules = [
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}},
        {"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [42]}},
    ]
    await scene.create(job(podFailurePolicy={"rules": rules}, backoffLimit=0))
    await have_come(scene, 1)
    await scene.start()
    await scene.end("Failed", code=7)
    await scene.until(lambda: has_waiting(scene), "another pod")
    await notes.note("ignored", "jobs.batch")
    await scene.start()
    await scene.end("Failed", code=42)
    await notes.note("failed", "jobs.batch")
    await notes.note_events()


@play
async def an_indexed_job_is_content_early(scene: Scene, notes: Notes) -> None:
    rules = {"rules": [{"succeededIndexes": "0,1", "succeededCount": 1}]}
    await scene.create(job(completionMode="Indexed", completions=3, parallelism=3, successPolicy=rules))
    await have_come(scene, 3)
    await scene.start()
    await scene.end("Succeeded", count=1)
    await notes.note("content", "jobs.batch")
    await scene.reap()
    await notes.note("complete", "jobs.batch")
    await notes.note_events()


async def has_waiting(scene: Scene) -> bool:
    return any(pod.status.phase == "Pending" for pod in await scene.pods())


@play
async def a_job_is_deleted_with_its_pods_left(scene: Scene, notes: Notes) -> None:
    await scene.create(job(parallelism=2, completions=2))
    await have_come(scene, 2)
    await scene.start(count=1)
    await scene.abandon("jobs.batch", "work", "pods")

    async def free() -> bool:
        return all(not pod.metadata.finalizers and not pod.metadata.owner_references for pod in await scene.pods())

    await scene.until(free, "pods without the finalizer")
    notes.pages["free"] = len(await scene.pods())


def service(**spec: Any) -> dict[str, Any]:
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    whole = {"selector": {"app": "web"}, "ports": ports, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "labels": {"t": "s"}}, "spec": whole}


ENDPOINTS = ("endpointslices.discovery.k8s.io", "endpoints")


@play
async def a_service_follows_its_pods(scene: Scene, notes: Notes) -> None:
    await scene.create(service())
    await notes.note("no pods", *ENDPOINTS)
    await scene.create(deployment(2))
    await have_come(scene, 2)
    await scene.start(count=1)
    await scene.start(ready=False)
    await notes.note("one ready", *ENDPOINTS)
    for pod in await scene.pods():
        if any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions):
            await scene.client.delete("pods", pod.name)
    await notes.note("one leaves", *ENDPOINTS)
    await change(scene, {"metadata": {"labels": {"t": "u"}}}, "web", "services")
    await notes.note("relabelled", *ENDPOINTS)
    await scene.reap()
    await change(scene, {"spec": {"replicas": 0}})
    await scene.reap()
    await notes.note("none left", *ENDPOINTS)
    await scene.client.delete("services", "web")
    await scene.settle()
    notes.pages["endpoints left"] = [one.name for one in await scene.all("endpoints") if one.name != "kubernetes"]


@play
async def a_headless_service_publishes_what_is_not_ready(scene: Scene, notes: Notes) -> None:
    await scene.create(service(clusterIP="None", publishNotReadyAddresses=True))
    await scene.create(deployment(2))
    await have_come(scene, 2)
    await scene.start(count=1)
    await scene.start(ready=False)
    await notes.note("both", *ENDPOINTS)


@play
async def services_differ(scene: Scene, notes: Notes) -> None:
    named = [{"name": "web", "port": 80, "targetPort": "web"}]
    await scene.create(service(ports=named, type="NodePort"))
    plain = service(selector=None)
    plain["metadata"]["name"] = "plain"
    await scene.create(plain)
    outside = service(type="ExternalName", externalName="example.com")
    outside["metadata"]["name"] = "outside"
    await scene.create(outside)
    ports = [{"name": "web", "containerPort": 9090}]
    containers = [{"name": "c", "image": "i:1", "ports": ports}]
    await scene.create(deployment(2, template=template(containers=containers, hostname="h", subdomain="web")))
    await have_come(scene, 2)
    await scene.start()
    await notes.note("by name", *ENDPOINTS)
    await change(scene, {"spec": {"ports": [{"name": "web", "port": 80, "targetPort": 9091}]}}, "web", "services")
    await notes.note("by number", *ENDPOINTS)
    await change(scene, {"spec": {"selector": {"app": "other"}}}, "web", "services")
    await notes.note("none selected", *ENDPOINTS)
    (pod, _) = await scene.pods()
    await change(scene, {"metadata": {"labels": {"app": "other"}}}, pod.name, "pods")
    await notes.note("one selected", *ENDPOINTS)
    await scene.client.delete("endpoints", "web")
    await notes.note("made again", *ENDPOINTS)
