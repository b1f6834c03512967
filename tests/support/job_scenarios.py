"""Scenarios of the policies of Jobs, for the embedded control plane and a real one."""

from __future__ import annotations

from typing import Any

from workload_clusters import WorkloadCluster
from workload_scenarios import Notes, has_waiting, have_come, job, scenario

INDEXED = {"completionMode": "Indexed", "parallelism": 3, "completions": 3}


async def has_condition(cluster: WorkloadCluster, type_: str) -> bool:
    conditions = (await cluster.get("jobs.batch", "work"))["status"].get("conditions", [])
    return any(one["type"] == type_ for one in conditions)


@scenario
async def an_indexed_job_fails_one_index_by_its_policy(cluster: WorkloadCluster, notes: Notes) -> None:
    rules = [
        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [7]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
    ]
    await cluster.create(job(**INDEXED, backoffLimitPerIndex=2, podFailurePolicy={"rules": rules}))
    await have_come(cluster, 3)
    await cluster.start()
    await cluster.end("Failed", count=1, code=42)
    await notes.note("one index failed", "jobs.batch", "pods")
    await cluster.end("Succeeded")
    await cluster.until(lambda: has_condition(cluster, "Failed"), "the job failed")
    await notes.note("failed", "jobs.batch", "pods")
    await notes.note_events()


@scenario
async def an_indexed_job_has_too_many_failed_indexes(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(job(**INDEXED, backoffLimitPerIndex=0, maxFailedIndexes=1))
    await have_come(cluster, 3)
    await cluster.start()
    await cluster.end("Failed", count=1, code=1)
    await notes.note("one failed", "jobs.batch")
    await cluster.end("Failed", count=1, code=1)
    await cluster.remove_deleted()
    await cluster.until(lambda: has_condition(cluster, "Failed"), "the job failed")
    await notes.note("failed", "jobs.batch", "pods")
    await notes.note_events()


@scenario
async def a_job_ignores_disrupted_pods(cluster: WorkloadCluster, notes: Notes) -> None:
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    await cluster.create(job(backoffLimit=0, podFailurePolicy={"rules": rules}))
    await have_come(cluster, 1)
    await cluster.start()
    (running,) = await cluster.pods()
    await cluster.client.evict(running.name)
    await cluster.settle()
    await notes.note("evicted", "jobs.batch", "pods")
    await cluster.end("Failed", code=143)
    await cluster.remove_deleted()
    await cluster.until(lambda: has_waiting(cluster), "another pod")
    await notes.note("replaced", "jobs.batch", "pods")


@scenario
async def an_indexed_job_succeeds_by_a_count(cluster: WorkloadCluster, notes: Notes) -> None:
    policy: dict[str, Any] = {"rules": [{"succeededIndexes": "2"}, {"succeededCount": 2}]}
    await cluster.create(job(**INDEXED, successPolicy=policy))
    await have_come(cluster, 3)
    await cluster.start()
    await cluster.end("Succeeded", count=1)
    await notes.note("one succeeded", "jobs.batch")
    await cluster.end("Succeeded", count=1)
    await notes.note("enough", "jobs.batch", "pods")
    await cluster.remove_deleted()
    await notes.note("complete", "jobs.batch", "pods")
    await notes.note_events()


@scenario
async def jobs_are_managed_elsewhere_or_expire(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(job(managedBy="example.com/other"))
    await notes.note("managed elsewhere", "jobs.batch", "pods")
    short = job(ttlSecondsAfterFinished=3)
    short["metadata"]["name"] = "short"
    await cluster.create(short)
    await have_come(cluster, 1)
    await cluster.start()
    await cluster.end("Succeeded")

    async def is_deleted() -> bool:
        found = [one for one in await cluster.all("jobs.batch") if one.name == "short"]
        return all("deletionTimestamp" in one.metadata for one in found)

    await cluster.until(is_deleted, "the finished job expired")
    notes.pages["expired"] = True
    await notes.note_events()
