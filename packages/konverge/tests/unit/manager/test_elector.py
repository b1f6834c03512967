"""Electors in virtual time, on the embedded server, with injected faults."""

from __future__ import annotations

import asyncio
import json

import pytest

from electors import Electors, until
from konverge.client import Client, InProcessTransport
from konverge.errors import WriteRefused
from konverge.k8s.coordination.v1 import Lease, LeaseSpec
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager.elector import Elector, LeaderElection, default_identity
from konverge.manager.write_fence import WriteFence, boot_clock, default_clock
from konverge.objects import ObjectMeta
from konverge.testing.faults import (
    Fault,
    RecordedRequest,
    any_request,
    connection_refused,
    forbidden,
    status_response,
    stream_paused,
)
from konverge.wire.messages import BufferedResponse, Request, Response
from konverge_cluster.embedded_server import EmbeddedServer


def now() -> float:
    return asyncio.get_running_loop().time()


def writes(request: RecordedRequest) -> bool:
    return request.method != "GET"


async def test_one_of_two_leads_and_the_other_stands_by() -> None:
    async with Electors.open() as electors:
        a, b = await electors.join("a"), await electors.join("b")
        await asyncio.sleep(120)

        assert [a.leading, b.leading] == [True, False]
        assert a.fence() > 0
        assert b.fence() == 0
        assert b.elector.stats().reason == "the lease is held by 'a'"
        assert b.elector.stats().error == ""
        assert a.events == [("LeaderElection", "a became leader")]
        assert 120 / 2.4 - 2 <= a.elector.stats().renew_count <= 121 / 2 + 1


async def test_a_lease_that_is_held_costs_one_request_each_two_seconds() -> None:
    async with Electors.open() as electors:
        a, b = await electors.join("a"), await electors.join("b")
        begin = now()
        await asyncio.sleep(120)

        for process in (a, b):
            assert 49 <= len(process.script.requests(since=begin)) <= 61


async def test_a_standby_replaces_a_killed_leader_within_lease_duration_and_retry_period() -> None:
    async with Electors.open() as electors:
        a, b = await electors.join("a"), await electors.join("b")
        await asyncio.sleep(61)
        await a.kill()
        killed = now()

        assert await until(lambda: b.leading) - killed <= 15 + 2 + 1
        assert (await electors.lease()).spec.lease_transitions == 1


async def test_a_leader_that_stops_is_replaced_within_three_seconds() -> None:
    async with Electors.open() as electors:
        a, b = await electors.join("a"), await electors.join("b")
        await asyncio.sleep(61)
        stopped = now()
        await a.stop()

        assert (await electors.lease()).spec.lease_duration_seconds == 1
        assert await until(lambda: b.leading) - stopped <= 3
        assert a.changes[-1] == (stopped, "")


async def test_without_release_the_next_leader_waits_for_the_lease_to_expire() -> None:
    async with Electors.open() as electors:
        a, b = await electors.join("a"), await electors.join("b")
        await asyncio.sleep(61)
        stopped = now()
        await a.stop(release=False)

        assert a.fence() == 0
        assert (await electors.lease()).spec.holder_identity == "a"
        assert 12 < await until(lambda: b.leading) - stopped <= 18


async def test_an_election_can_disable_the_release() -> None:
    async with Electors.open() as electors:
        a = await electors.join("a", release_on_stop=False)
        await a.stop()

        assert (await electors.lease()).spec.holder_identity == "a"


@pytest.mark.parametrize(
    "fault", [connection_refused(), stream_paused(), status_response(503), status_response(500), status_response(429)]
)
async def test_a_leader_without_a_server_stops_by_the_renew_deadline_and_before_another_leads(fault: Fault) -> None:
    async with Electors.open() as electors:
        a, b = await electors.join("a"), await electors.join("b")
        await asyncio.sleep(60)
        blocked = now()
        a.script.add(any_request, fault)

        lost = await until(lambda: not a.leading)
        assert lost - blocked <= 10.1
        assert a.fence() == 0
        assert "the lease was not renewed for 10 s" in a.changes[-1][1]
        assert not b.leading
        acquired = await until(lambda: b.leading)
        assert acquired - blocked >= 12

        a.script.clear()
        await asyncio.sleep(30)
        assert [a.leading, b.leading] == [False, True]


async def test_a_short_outage_goes_unnoticed() -> None:
    async with Electors.open() as electors:
        a = await electors.join("a")
        await asyncio.sleep(60)
        with a.script.active(any_request, connection_refused()):
            await asyncio.sleep(6)
        await asyncio.sleep(60)

        assert [change for _, change in a.changes] == ["started"]
        assert a.elector.stats().failures > 0


async def test_lost_responses_do_not_lose_the_lease() -> None:
    async with Electors.open() as electors:
        a, b = await electors.join("a"), await electors.join("b")
        for _ in range(5):
            a.script.add(writes, stream_paused(), times=1)  # executed, but the response never arrives
            await asyncio.sleep(20)

        assert [change for _, change in a.changes] == ["started"]
        assert not b.changes


async def test_the_next_term_starts_after_all_of_the_last_has_ended() -> None:
    async with Electors.open() as electors:
        a = await electors.join("a")
        await asyncio.sleep(10)
        a.stop_delay = 30.0
        with a.script.active(any_request, connection_refused()):
            await until(lambda: not a.leading)
        lost = now()

        assert await until(lambda: a.leading) - lost >= 29.9
        assert [change for _, change in a.changes][::2] == ["started", "started"]


async def test_stepping_down_stops_writes_at_once_and_leaves_the_lease_to_expire() -> None:
    async with Electors.open() as electors:
        a, b = await electors.join("a"), await electors.join("b")
        await asyncio.sleep(31)
        a.stop_delay = 100.0
        stepped_down = now()

        a.elector.step_down("the event loop is blocked")
        assert a.fence() == 0
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert a.changes[-1][1] == "the event loop is blocked"
        assert (await electors.lease()).spec.holder_identity == "a"
        assert 12 < await until(lambda: b.leading) - stepped_down <= 18


async def test_stepping_down_while_a_renewal_is_in_flight_holds() -> None:
    async with Electors.open() as electors:
        a = await electors.join("a")
        await asyncio.sleep(31)
        a.stop_delay = 100.0
        with a.script.active(writes, Fault(delay=1.0)):
            await until(lambda: a.script.requests(writes, since=31))

        a.elector.step_down("the event loop is blocked")
        await asyncio.sleep(5)

        assert not a.leading
        assert a.fence() == 0


async def test_stepping_down_during_a_renewal_ends_one_term_and_not_the_elector() -> None:
    async with Electors.open() as electors:
        a = await electors.join("a")
        await asyncio.sleep(31)
        with a.script.active(writes, Fault(delay=1.0)):
            await until(lambda: a.script.requests(writes, since=31))
            a.elector.step_down("the event loop is blocked")
            assert not a.elector.stats().leading
            await until(lambda: not a.leading)
        await until(lambda: a.leading)

        assert [change for _, change in a.changes] == ["started", "the event loop is blocked", "started"]
        assert a.elector.stats().terms == 2


async def test_the_durations_of_an_election_are_those_of_its_lease() -> None:
    durations = {"lease_duration": 60, "renew_deadline": 40, "retry_period": 10, "margin": 5}
    async with Electors.open() as electors:
        a, b = await electors.join("a", **durations), await electors.join("b", **durations)
        await asyncio.sleep(100)
        assert (await electors.lease()).spec.lease_duration_seconds == 60
        assert 100 / 12 - 1 <= a.elector.stats().renew_count <= 11
        await a.kill()
        killed = now()
        assert 48 <= await until(lambda: b.leading, within=100) - killed <= 60 + 12


async def test_a_standby_says_why_it_does_not_lead_and_a_leader_says_nothing() -> None:
    async with Electors.open() as electors:
        a, b = await electors.join("a"), await electors.join("b")
        await asyncio.sleep(10)
        assert (a.elector.stats().reason, b.elector.stats().reason) == ("", "the lease is held by 'a'")
        with b.script.active(any_request, stream_paused()):
            await asyncio.sleep(20)
            assert b.elector.stats().error == b.elector.stats().reason == "no response within 4 s"
        await asyncio.sleep(10)
        assert (b.elector.stats().error, b.elector.stats().reason) == ("", "the lease is held by 'a'")


async def test_a_lease_of_another_holder_is_respected_for_its_duration() -> None:
    async with Electors.open() as electors:
        spec = LeaseSpec(holder_identity="client-go", lease_duration_seconds=60, lease_transitions=7)
        await electors.client.create(Lease(metadata=ObjectMeta(name="operator", namespace="default"), spec=spec))
        a = await electors.join("a")

        assert 60 <= await until(lambda: a.leading, within=70) <= 63
        assert (await electors.lease()).spec.lease_transitions == 8


async def test_fields_that_an_elector_does_not_know_survive() -> None:
    server, sent = EmbeddedServer(seed=1), []

    async def with_a_strategy(request: Request) -> Response:
        if request.method == "PUT":
            sent.append(json.loads(request.body))
        answer = await server.handle(request)
        document = json.loads(await answer.read())
        document.get("spec", {})["strategy"] = "OldestEmulationVersion"
        return BufferedResponse(answer.status, json.dumps(document).encode(), answer.headers)

    metadata = ObjectMeta(name="operator", namespace="default", labels={"team": "a"}, annotations={"x": "y"})
    await Client(InProcessTransport(server.handle)).create(Lease(metadata=metadata))
    fence = WriteFence(asyncio.get_running_loop().time)
    elector = Elector(Client(InProcessTransport(with_a_strategy)), LeaderElection("operator", "default"), fence=fence)
    task = asyncio.create_task(elector.run())
    await asyncio.sleep(10)
    elector.stop()
    await task

    assert len(sent) >= 5
    for lease in sent:
        assert lease["spec"]["strategy"] == "OldestEmulationVersion"
        assert lease["metadata"]["labels"] == {"team": "a"}
        assert lease["metadata"]["annotations"] == {"x": "y"}
        assert lease["metadata"]["resourceVersion"]
    assert sent[-1]["spec"]["holderIdentity"] == ""


async def test_every_write_carries_the_version_it_was_decided_on() -> None:
    async with Electors.open() as electors:
        a = await electors.join("a")
        await asyncio.sleep(20)
        await electors.client.patch(Lease, "operator", {"metadata": {"labels": {"x": "y"}}}, namespace="default")
        await asyncio.sleep(20)

        assert [change for _, change in a.changes] == ["started"]
        assert a.elector.stats().failures == 1, "the edit by another client was noticed, not overwritten"
        assert (await electors.lease()).metadata.labels == {"x": "y"}


async def test_a_missing_permission_is_named_and_recovers_when_granted() -> None:
    async with Electors.open() as electors:
        a = await electors.join("a")
        with a.script.active(any_request, forbidden("update on leases.coordination.k8s.io")):
            await asyncio.sleep(60)
            assert "leases" in a.elector.stats().error
            assert not a.leading

        await until(lambda: a.leading)
        assert a.elector.stats().error == ""


async def test_many_candidates_have_one_leader_each_time_one_goes() -> None:
    async with Electors.open() as electors:
        processes = [await electors.join(f"n{i}") for i in range(8)]
        for _ in range(7):
            leaders = [one for one in processes if one.leading]
            assert len(leaders) == 1
            await leaders[0].stop()
            processes.remove(leaders[0])
            await until(lambda: any(one.leading for one in processes), within=5)
        assert (await electors.lease()).spec.lease_transitions == 7


async def test_an_error_of_a_callback_ends_the_elector_with_its_fence_closed() -> None:
    def fail() -> None:
        raise RuntimeError("no")

    server = EmbeddedServer(seed=1)
    fence = WriteFence(asyncio.get_running_loop().time)
    elector = Elector(
        Client(InProcessTransport(server.handle)),
        LeaderElection("operator", "default"),
        fence=fence,
        on_started_leading=fail,
    )

    with pytest.raises(RuntimeError, match="no"):
        await elector.run()
    assert fence() == 0


async def test_several_leases_can_be_competed_for_at_once() -> None:
    server = EmbeddedServer(seed=1)
    clock = asyncio.get_running_loop().time
    electors = [
        Elector(Client(InProcessTransport(server.handle)), LeaderElection(name, "default"), fence=WriteFence(clock))
        for name in ("north", "south")
    ]
    tasks = [asyncio.create_task(elector.run()) for elector in electors]
    await asyncio.sleep(1)

    assert all(elector.leading.is_set() for elector in electors)
    for elector in electors:
        elector.stop()
    await asyncio.gather(*tasks)


async def test_a_fenced_client_writes_only_while_it_leads() -> None:
    async with Electors.open() as electors:
        a = await electors.join("a")
        client = Client(InProcessTransport(electors.server.handle), guard=a.fence)
        await client.create(ConfigMap(metadata=ObjectMeta(name="one", namespace="default")))
        await a.stop()

        with pytest.raises(WriteRefused, match="is this process still the leader"):
            await client.create(ConfigMap(metadata=ObjectMeta(name="two", namespace="default")))


def test_a_fence_closes_by_itself() -> None:
    time = [100.0]
    fence = WriteFence(lambda: time[0])
    assert fence() == 0
    fence.open(114)
    assert fence() == 14
    time[0] = 114.0
    assert fence() == 0
    fence.open(200)
    fence.close()
    assert fence() == 0


async def test_in_virtual_time_a_fence_uses_the_clock_of_the_loop() -> None:
    fence = WriteFence()
    fence.open(fence.clock() + 14)
    await asyncio.sleep(13)
    assert fence() == 1
    await asyncio.sleep(1)
    assert fence() == 0


@pytest.mark.real_time(limit=30)
async def test_in_real_time_a_fence_uses_the_clock_that_counts_suspension() -> None:
    assert WriteFence().clock is boot_clock


def test_the_clock_never_goes_back() -> None:
    assert default_clock() is boot_clock
    times = [boot_clock() for _ in range(100)]
    assert times == sorted(times)


def test_each_default_identity_is_new() -> None:
    assert default_identity() != default_identity()
    assert LeaderElection("x").identity != LeaderElection("x").identity


def test_an_identity_begins_with_the_name_of_the_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "operator-7")
    assert default_identity().startswith("operator-7_")


def test_an_election_that_cannot_work_is_refused_where_it_is_written() -> None:
    with pytest.raises(ValueError, match="renew_deadline must be at most lease_duration - margin"):
        LeaderElection("x", lease_duration=5)
    message = r'^leader election needs the name of a Lease: LeaderElection\("webapp-operator"\)$'
    with pytest.raises(ValueError, match=message):
        LeaderElection("")
    message = "^identity is empty: leave it out, or give each process a name that no other has$"
    with pytest.raises(ValueError, match=message):
        LeaderElection("x", identity="")


# A restored etcd


async def restored(electors: Electors, *, lease: bool = True, versions: int = 0) -> None:
    """Replace the server by one that has the lease at a lower version, or does not have it."""
    found = await electors.lease()
    server = EmbeddedServer(seed=2)
    async with Client(InProcessTransport(server.handle)) as client:
        found.metadata = ObjectMeta(name="operator", namespace="default")
        found.set_source(None)
        if lease:
            await client.create(found)
        for number in range(versions):
            await client.create(ConfigMap(metadata=ObjectMeta(name=f"new-{number}", namespace="default")))
    electors.server = server


@pytest.mark.parametrize("lease", [True, False])
async def test_a_leader_ends_its_term_when_etcd_was_restored(lease: bool, caplog: pytest.LogCaptureFixture) -> None:
    async with Electors.open() as electors:
        a = await electors.join("a")
        await asyncio.sleep(200)
        await restored(electors, lease=lease)
        begin = now()
        await until(lambda: not a.leading, within=5)

        assert now() - begin <= 3
        assert a.fence() == 0
        assert [text.partition(":")[0] for _, text in a.changes[:2]] == ["started", "etcd was restored"]
        assert "server history restarted" in caplog.messages


async def test_a_restored_etcd_whose_versions_overtake_is_noticed_by_the_lease() -> None:
    async with Electors.open() as electors:
        a = await electors.join("a")
        await asyncio.sleep(60)
        await restored(electors, versions=200)
        await until(lambda: not a.leading, within=5)
        assert a.elector.stats().error.startswith("etcd was restored: the lease went back from version ")


async def test_a_standby_of_a_restored_etcd_is_not_ready_and_never_writes() -> None:
    async with Electors.open() as electors:
        a, b = await electors.join("a"), await electors.join("b")
        await asyncio.sleep(60)
        await a.kill()
        await restored(electors)
        await until(lambda: b.elector.stats().error, within=5)
        fences: list[float] = []
        while len(b.changes) < 2:
            fences.append(b.fence())
            await asyncio.sleep(0.05)

        assert [text.partition(":")[0] for _, text in b.changes[:2]] == ["started", "etcd was restored"]
        assert max(fences) == 0


async def test_the_times_of_a_candidate_depend_only_on_its_identity() -> None:
    async def request_times(identity: str) -> list[float]:
        server, begin, times = EmbeddedServer(seed=1), now(), list[float]()

        async def handle(request: Request) -> Response:
            times.append(round(now() - begin, 6))
            return await server.handle(request)

        election = LeaderElection("operator", "default", identity=identity, clock=now)
        elector = Elector(Client(InProcessTransport(handle)), election)
        assert elector.fence.clock is now, "the clock of the election"
        task = asyncio.create_task(elector.run())
        await asyncio.sleep(120)
        elector.stop()
        await task
        return times

    assert await request_times("a") == await request_times("a") != await request_times("b")


async def test_the_life_of_a_leader_is_logged_with_its_lease_and_identity(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "konverge.manager")

    def logged() -> list[tuple[str, str, str]]:
        records = [record for record in caplog.records if record.name == "konverge.manager"]
        caplog.clear()
        assert all((vars(one)["lease"], vars(one)["identity"]) == ("default/operator", "a") for one in records)
        return [(one.levelname, one.getMessage(), vars(one).get("reason", "")) for one in records]

    async with Electors.open() as electors:
        a = await electors.join("a")
        await asyncio.sleep(5)
        assert logged() == [("INFO", "became leader", "")]
        with a.script.active(any_request, status_response(503, message="down for a while")):
            await asyncio.sleep(30)
        lines = logged()
        assert lines[0][:2] == ("WARNING", "lease request failed")
        assert "down for a while" in lines[0][2]
        ((level, _, reason),) = [line for line in lines if line[1] == "leader election lost"]
        assert (level, bool(reason)) == ("WARNING", True)
        await asyncio.sleep(30)
        logged()
        await a.stop()
        assert logged() == [("INFO", "stopped leading", "")]
        assert [text for _, text in a.events] == ["a became leader", "a stopped leading"] * 2


async def test_a_release_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with Electors.open() as electors:
        a = await electors.join("a")
        await asyncio.sleep(5)
        with a.script.active(any_request, status_response(503, message="down for a while")):
            begin = now()
            await a.stop()
            assert now() - begin <= 10
        (record,) = [one for one in caplog.records if one.getMessage() == "lease release failed"]
        assert "down for a while" in vars(record)["reason"]
        assert (await electors.lease()).spec.holder_identity == "a"


async def test_stats_count_terms_renewals_and_failures() -> None:
    async with Electors.open() as electors:
        a, b = await electors.join("a"), await electors.join("b")
        await asyncio.sleep(10)
        leader, standby = a.elector.stats(), b.elector.stats()
        assert (leader.name, leader.identity, leader.leading, leader.holder) == ("operator", "a", True, "a")
        assert (standby.leading, standby.holder, standby.terms, standby.renew_count) == (False, "a", 0, 0)
        assert (leader.terms, leader.failures, leader.error) == (1, 0, "")
        with a.script.active(any_request, connection_refused()):
            await asyncio.sleep(60)
        await asyncio.sleep(60)
        stopped, now_leader = a.elector.stats(), b.elector.stats()
        assert (stopped.leading, stopped.holder, stopped.terms) == (False, "b", 1)
        assert stopped.failures > 5
        assert (now_leader.leading, now_leader.terms) == (True, 1)
