"""CronJobs on virtual time: which Jobs exist when, also after a crash; a year takes seconds."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from konverge.client import InProcessTransport
from konverge.k8s.batch.v1 import CronJob
from konverge.objects import Unstructured, from_wire
from konverge.testing import run_in_virtual_time, settle
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import FaultScript, connection_reset
from konverge_cluster import EmbeddedCluster
from konverge_cluster.cron_schedules import ScheduleError, parse_schedule
from konverge_cluster.workloads.cron_jobs.jobs import new_job
from konverge_cluster.workloads.cron_jobs.times import delay_until_next, missed_runs
from workload_clusters import START, EmbeddedWorkloadCluster, embedded_workload_cluster
from workload_objects import NOW, at, wire_time

POD = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}


def cron_job(schedule: str, **spec: Any) -> Unstructured:
    template = {"spec": {"template": {"spec": POD}}}
    metadata = {"name": "cron", "namespace": "default"}
    whole = {"schedule": schedule, "jobTemplate": template, **spec}
    return Unstructured({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": whole})


def stored(schedule: str, *, last: datetime | None = None, **spec: Any) -> CronJob:
    """Return a CronJob that was created an hour before NOW."""
    wire = cron_job(schedule, **spec)
    wire.metadata["creationTimestamp"] = wire_time(at(-3600))
    wire["status"] = {"lastScheduleTime": wire_time(last)} if last is not None else {}
    return from_wire(CronJob, dict(wire))


async def jobs(cluster: EmbeddedWorkloadCluster) -> list[str]:
    return sorted(one.name for one in await cluster.all("jobs.batch"))


# Which time is due


def test_only_the_last_of_several_missed_times_is_due() -> None:
    missed = missed_runs(stored("*/10 * * * *"), parse_schedule("*/10 * * * *"), at(30))
    assert (missed.last, missed.count, missed.many) == (NOW, 6, False)


def test_no_time_is_due_before_the_next_one() -> None:
    hourly = parse_schedule("@hourly")
    assert missed_runs(stored("@hourly", last=NOW), hourly, at(3599)).last is None
    assert missed_runs(stored("@hourly", last=NOW), hourly, at(3600)).last == at(3600)
    assert delay_until_next(stored("@hourly", last=NOW), hourly, at(3000)) == pytest.approx(600.1)


def test_a_starting_deadline_hides_older_times() -> None:
    hourly = parse_schedule("30 * * * *")
    assert missed_runs(stored("30 * * * *"), hourly, NOW).last == at(-1800)
    assert missed_runs(stored("30 * * * *", startingDeadlineSeconds=1700), hourly, NOW).last is None


def test_more_than_a_hundred_missed_times_are_many() -> None:
    minutely = parse_schedule("* * * * *")
    assert not missed_runs(stored("* * * * *", last=at(-100 * 60)), minutely, NOW).many
    assert missed_runs(stored("* * * * *", last=at(-101 * 60)), minutely, NOW).many


def test_an_irregular_schedule_has_the_right_last_time() -> None:
    text = "30 6-16/4 * * 1-5"
    missed = missed_runs(stored(text, last=NOW - timedelta(days=60)), parse_schedule(text), NOW)
    assert missed.last == datetime(2026, 1, 1, 10, 30, tzinfo=UTC)


def test_a_schedule_without_times_is_an_error() -> None:
    with pytest.raises(ScheduleError, match="less than 1 second"):
        missed_runs(stored("0 0 31 2 *"), parse_schedule("0 0 31 2 *"), NOW)


def test_a_job_has_the_minute_in_its_name_and_the_local_time_as_an_annotation() -> None:
    made = new_job(stored("@hourly", timeZone="Europe/Berlin"), NOW)
    assert made.name == f"cron-{int(NOW.timestamp()) // 60}"
    scheduled = made.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert scheduled == "2026-01-01T13:00:00+01:00"
    made = new_job(stored("@hourly"), NOW)
    assert made.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] == "2026-01-01T12:00:00Z"


# The controller


async def test_a_job_starts_at_each_time() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.client.create(cron_job("* * * * *"))
        await asyncio.sleep(181)
        first = int(START) // 60
        assert await jobs(cluster) == [f"cron-{first + minute}" for minute in (1, 2, 3)]
        found = await cluster.get("cronjobs.batch", "cron")
        assert [one["name"] for one in found["status"]["active"]] == await jobs(cluster)


async def test_a_changed_schedule_does_not_make_up_for_the_past() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.client.create(cron_job("0 0 1 1 *"))
        await asyncio.sleep(1800)
        await cluster.merge("cronjobs.batch", "cron", {"spec": {"schedule": "*/10 * * * *"}})
        await settle()
        assert await jobs(cluster) == []
        await asyncio.sleep(601)
        assert len(await jobs(cluster)) == 1


@pytest.mark.parametrize("lost", ["before", "after"])
async def test_a_crash_between_the_job_and_the_status_creates_no_second_job(lost: str) -> None:
    cluster = EmbeddedWorkloadCluster()
    await cluster.client.create(cron_job("0 * * * *"))
    script = FaultScript()
    when = "/jobs" if lost == "before" else "/cronjobs/cron/status"
    script.add(lambda asked: asked.method != "GET" and asked.path.endswith(when), connection_reset())
    async with cluster.controllers(FaultTransport(InProcessTransport(cluster.server.handle), script)):
        await asyncio.sleep(3605)
    assert len(await jobs(cluster)) <= 1
    async with cluster.controllers():
        await settle()
        (only,) = await jobs(cluster)
        found = await cluster.get("cronjobs.batch", "cron")
        assert [one["name"] for one in found["status"]["active"]] == [only]
        assert found["status"]["lastScheduleTime"].endswith(":00:00Z")


async def test_a_restart_makes_up_for_the_last_missed_time() -> None:
    cluster = EmbeddedWorkloadCluster()
    await cluster.client.create(cron_job("0 * * * *"))
    async with cluster.controllers():
        await settle()
    await asyncio.sleep(5 * 3600)
    async with cluster.controllers():
        await settle()
        assert await jobs(cluster) == [f"cron-{(int(START) // 3600 + 5) * 60}"]


async def test_a_deleted_cron_job_starts_nothing() -> None:
    async with embedded_workload_cluster() as cluster:
        await cluster.client.create(cron_job("* * * * *"))
        await cluster.client.delete("cronjobs.batch", "cron")
        await asyncio.sleep(300)
        assert await jobs(cluster) == []


def test_a_daily_cron_job_runs_for_a_year() -> None:
    """With pods, nodes and garbage collection; the wall clock of Berlin changes twice on the way."""
    start = datetime(2027, 1, 1, tzinfo=UTC)

    def clock() -> float:
        return start.timestamp() + asyncio.get_running_loop().time()

    async def year() -> tuple[Any, list[str], int]:
        async with EmbeddedCluster(clock=clock, seed=1, heartbeat=0, nodes=1) as cluster:
            client = cluster.client()
            await client.create(cron_job("30 2 * * *", timeZone="Europe/Berlin"))
            await asyncio.sleep(timedelta(days=365).total_seconds())
            found = await client.get("cronjobs.batch", "cron")
            kept = [one.name for one in await client.list("jobs.batch")]
            return found["status"], kept, len(await client.list("pods"))

    status, kept, pods = run_in_virtual_time(year(), debug=False)
    assert status == {"lastScheduleTime": "2027-12-31T01:30:00Z", "lastSuccessfulTime": "2027-12-31T01:30:01Z"}
    last = int(datetime(2027, 12, 31, 1, 30, tzinfo=UTC).timestamp()) // 60
    assert kept == [f"cron-{last - 1440 * days}" for days in (2, 1, 0)]
    assert pods == 3
