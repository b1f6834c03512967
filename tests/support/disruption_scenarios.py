"""Scenarios of disruption budgets, evictions and CronJobs, for the embedded control plane and a real one.

A missed time of a schedule starts at once: a CronJob is created suspended, its last schedule time is set to the past,
and it is resumed.
"""

from __future__ import annotations

from typing import Any

from konverge.errors import ApiError
from workload_clusters import WorkloadCluster
from workload_scenarios import Notes, change, deployment, have_come, job, scenario

BUDGETS = "poddisruptionbudgets.policy"
CRON_JOBS = ("cronjobs.batch", "jobs.batch")


def budget(name: str = "web", app: str = "web", **spec: Any) -> dict[str, Any]:
    whole = {"selector": {"matchLabels": {"app": app}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": whole}


def lone_pod(name: str, app: str = "web") -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app}}, "spec": spec}


async def evict(cluster: WorkloadCluster, notes: Notes, point: str, name: str = "") -> None:
    """Evict a pod, the first running one by default, and record the response."""
    pods = [one for one in await cluster.pods() if one.metadata.deletion_timestamp is None]
    target = name or min(one.name for one in pods if one.status.phase == "Running")
    try:
        await cluster.client.evict(target)
        notes.pages[point] = "evicted"
    except ApiError as error:
        text = str(error).replace(target, "<pod>").replace(f"{cluster.namespace}/", "")
        notes.pages[point] = [error.status, error.reason, text, [(one.reason, one.message) for one in error.causes]]


async def allows(cluster: WorkloadCluster, count: int, name: str = "web") -> None:
    async def is_allowed() -> bool:
        status = (await cluster.get(BUDGETS, name)).get("status") or {}
        return bool(status.get("disruptionsAllowed") == count)

    await cluster.until(is_allowed, f"{count} disruptions allowed")


@scenario
async def a_budget_allows_some_evictions(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(budget(minAvailable=2))
    await notes.note("no pods", BUDGETS)
    await cluster.create(deployment(3))
    await have_come(cluster, 3)
    await notes.note("not ready", BUDGETS)
    await cluster.start()
    await allows(cluster, 1)
    await notes.note("ready", BUDGETS)
    await evict(cluster, notes, "first eviction")
    await notes.note("evicted", BUDGETS, "pods")
    await evict(cluster, notes, "second eviction")
    await cluster.remove_deleted()
    await cluster.start()
    await allows(cluster, 1)
    await notes.note("replaced", BUDGETS)
    await change(cluster, {"spec": {"minAvailable": 3}}, "web", BUDGETS)
    await notes.note("stricter", BUDGETS)
    await evict(cluster, notes, "third eviction")
    await notes.note_events()


@scenario
async def budgets_count_by_the_scale_of_the_controllers(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(budget(maxUnavailable=1))
    await cluster.create(deployment(3))
    await have_come(cluster, 3)
    await cluster.start(count=2)
    await notes.note("two ready", BUDGETS)
    for limits in ({"minAvailable": "50%"}, {"maxUnavailable": "40%"}, {"minAvailable": "100%"}, {"maxUnavailable": 9}):
        spec = {"minAvailable": None, "maxUnavailable": None, **limits}
        await change(cluster, {"spec": spec}, "web", BUDGETS)
        await notes.note(f"two ready and {limits}", BUDGETS)
    await cluster.start()
    await notes.note("three ready", BUDGETS)
    await change(cluster, {"spec": {"minAvailable": "50%", "maxUnavailable": None}}, "web", BUDGETS)
    await change(cluster, {"spec": {"replicas": 5}})
    await have_come(cluster, 5)
    await cluster.start()
    await notes.note("scaled", BUDGETS)
    await cluster.create(budget("other", minAvailable=1))
    await cluster.settle()
    await evict(cluster, notes, "several budgets")


@scenario
async def a_budget_has_pods_without_a_controller(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(budget(maxUnavailable=1))
    await cluster.settle()
    await cluster.create(lone_pod("one"))
    await cluster.start()
    await notes.note("unmanaged", BUDGETS)
    await evict(cluster, notes, "eviction", "one")
    await notes.note_events()


@scenario
async def a_budget_cannot_count_jobs(cluster: WorkloadCluster, notes: Notes) -> None:
    selector = {"matchLabels": {"kind": "work"}}
    await cluster.create(job(parallelism=2, completions=2))
    await have_come(cluster, 2)
    await cluster.start()
    await cluster.create(budget(maxUnavailable=1, selector=selector))
    await notes.note("failed", BUDGETS)
    await evict(cluster, notes, "eviction")
    await notes.note_events()


@scenario
async def pods_that_are_not_ready_are_evicted_by_policy(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(budget(minAvailable=2))
    await cluster.create(budget("always", "always", minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow"))
    for name in ("one", "two", "three"):
        await cluster.create(lone_pod(name))
    await cluster.create(lone_pod("four", "always"))
    await cluster.create(lone_pod("pending"))
    await cluster.settle()
    await evict(cluster, notes, "a pending pod", "pending")
    await cluster.start(ready=False)
    await evict(cluster, notes, "not enough are ready", "one")
    await evict(cluster, notes, "always allowed", "four")
    for name in ("two", "three"):
        condition = {"type": "Ready", "status": "True"}
        pod = next(one for one in await cluster.pods() if one.name == name)
        await cluster.write_status(pod, "Running", conditions=[condition])
    await cluster.settle()
    await notes.note("two are ready", BUDGETS)
    await evict(cluster, notes, "enough are ready", "one")
    await evict(cluster, notes, "a ready one", "two")
    await notes.note("in the end", BUDGETS, "pods")


def cron_job(schedule: str, *, ends: int = 0, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"from": "cron"}, "annotations": {"a": "b"}}, "spec": job()["spec"]}
    whole = {"schedule": schedule, "suspend": True, "jobTemplate": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "cron"}, "spec": whole}


async def resume(cluster: WorkloadCluster, last: str = "2024-06-15T00:00:00Z") -> None:
    """Resume a CronJob whose last time was long ago."""
    patch = {"status": {"lastScheduleTime": last}}
    await cluster.client.patch("cronjobs.batch", "cron", patch, subresource="status")
    await change(cluster, {"spec": {"suspend": False}}, "cron", "cronjobs.batch")


async def reschedule(cluster: WorkloadCluster, schedule: str) -> None:
    """Give a CronJob another schedule whose last time is in the past; the suspension makes both notice it."""
    await change(cluster, {"spec": {"suspend": True}}, "cron", "cronjobs.batch")
    await change(cluster, {"spec": {"schedule": schedule}}, "cron", "cronjobs.batch")
    await resume(cluster)


async def have_jobs(cluster: WorkloadCluster, count: int, limit: float = 90) -> None:
    async def are_there() -> bool:
        return len(await cluster.all("jobs.batch")) == count

    await cluster.until(are_there, f"{count} jobs", limit)
    await cluster.settle()


@scenario
async def a_cron_job_makes_up_for_a_missed_time(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(cron_job("0 0 1 1 *", timeZone="Europe/Berlin"))
    await notes.note("suspended", *CRON_JOBS)
    await resume(cluster)
    await have_jobs(cluster, 1)
    await have_come(cluster, 1)
    await notes.note("started", *CRON_JOBS, "pods")
    await cluster.start()
    await cluster.end("Succeeded")
    await notes.note("succeeded", *CRON_JOBS)
    await notes.note_events()


@scenario
async def a_cron_job_missed_many_times(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(cron_job("30 */12 * * *"))
    await resume(cluster)
    await have_jobs(cluster, 1)
    await notes.note("started", *CRON_JOBS)
    (made,) = await cluster.all("jobs.batch")
    await cluster.client.delete("jobs.batch", made.name, propagation="Background")
    await notes.note("deleted by hand", *CRON_JOBS)
    await notes.note_events()


@scenario
async def a_cron_job_forbids_replaces_and_allows_concurrent_jobs(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(cron_job("0 0 1 * *", concurrencyPolicy="Forbid"))
    await resume(cluster)
    await have_jobs(cluster, 1)
    await reschedule(cluster, "0 0 2 * *")
    await notes.note("forbidden", *CRON_JOBS)
    await change(cluster, {"spec": {"concurrencyPolicy": "Replace"}}, "cron", "cronjobs.batch")
    await notes.note("replaced", *CRON_JOBS)
    await change(cluster, {"spec": {"concurrencyPolicy": "Allow"}}, "cron", "cronjobs.batch")
    await reschedule(cluster, "0 0 3 * *")
    await notes.note("two", *CRON_JOBS)
    await notes.note_events()


@scenario
async def a_cron_job_keeps_some_history(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(cron_job("0 0 1 * *", successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0))
    for day, phase in ((1, "Succeeded"), (2, "Failed"), (3, "Succeeded")):
        if day == 1:
            await resume(cluster)
        else:
            await reschedule(cluster, f"0 0 {day} * *")
        await cluster.until(lambda: has_active(cluster), "a job")
        await cluster.until(lambda: has_unscheduled(cluster), "a pod")
        await cluster.start()
        if phase == "Failed":
            for one in await cluster.all("jobs.batch"):
                if not (one.get("status") or {}).get("conditions"):
                    await cluster.merge("jobs.batch", one.name, {"spec": {"backoffLimit": 0}})
        await cluster.end(phase, code=int(phase == "Failed"))
        await cluster.until(lambda: is_idle(cluster), "no active job")
    await notes.note("kept", *CRON_JOBS)
    await notes.note_events()


@scenario
async def cron_jobs_that_never_start(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(cron_job("0 0 31 2 *"))
    await resume(cluster)
    await notes.note("no such date", *CRON_JOBS)
    await notes.note_events()
    await change(cluster, {"spec": {"suspend": True}}, "cron", "cronjobs.batch")
    patch = {"spec": {"schedule": "0 0 1 1 *", "startingDeadlineSeconds": 60}}
    await change(cluster, patch, "cron", "cronjobs.batch")
    await resume(cluster)
    await notes.note("too late", *CRON_JOBS)


@scenario
async def a_cron_job_runs_three_times(cluster: WorkloadCluster, notes: Notes) -> None:
    await cluster.create(cron_job("* * * * *", suspend=False))
    for count in (1, 2, 3):
        await have_jobs(cluster, count, limit=130)
        await cluster.until(lambda: has_unscheduled(cluster), "a pod")
        if count == 3:
            await change(cluster, {"spec": {"suspend": True}}, "cron", "cronjobs.batch")
        await cluster.start()
        await cluster.end("Succeeded")
        await cluster.until(lambda: is_idle(cluster), "no active job")
    await notes.note("three", *CRON_JOBS)
    await notes.note_events()


async def has_active(cluster: WorkloadCluster) -> bool:
    return bool((await cluster.get("cronjobs.batch", "cron"))["status"].get("active"))


async def is_idle(cluster: WorkloadCluster) -> bool:
    return not await has_active(cluster)


async def has_unscheduled(cluster: WorkloadCluster) -> bool:
    return any(not one.spec.node_name for one in await cluster.pods())
