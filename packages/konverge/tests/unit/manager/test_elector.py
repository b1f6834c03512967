"""Electors on virtual time, with the embedded server and faults on the way to it."""

from __future__ import annotations

import asyncio
import json

import pytest

from electors import Voters, until
from konverge.client import Client, InProcessTransport
from konverge.errors import WriteRefused
from konverge.k8s.coordination.v1 import Lease, LeaseSpec
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager.elector import Election, Elector, default_identity
from konverge.manager.guard import Guard, boot_clock, usual_clock
from konverge.objects import ObjectMeta
from konverge.testing.faults import Asked, Fault, answered, anything, frozen, refused, refusing
from konverge.wire.messages import BufferedResponse, Request, Response
from konverge_cluster.embedded_server import EmbeddedServer


def now() -> float:
    return asyncio.get_running_loop().time()


def writes(asked: Asked) -> bool:
    return asked.method != "GET"


async def test_one_of_two_leads_and_the_other_stands_by() -> None:
    async with Voters.open() as voters:
        a, b = await voters.join("a"), await voters.join("b")
        await asyncio.sleep(120)

        assert [a.leads, b.leads] == [True, False]
        assert a.guard() > 0
        assert b.guard() == 0
        assert b.elector.stats().why_not == "the lease is held by 'a'"
        assert b.elector.stats().trouble == ""
        assert a.events == [("LeaderElection", "a became leader")]
        assert 120 / 2.4 - 2 <= a.elector.stats().renewals <= 121 / 2 + 1


async def test_a_lease_that_is_held_costs_one_request_each_two_seconds() -> None:
    async with Voters.open() as voters:
        a, b = await voters.join("a"), await voters.join("b")
        begin = now()
        await asyncio.sleep(120)

        for voter in (a, b):
            assert 49 <= len(voter.script.asked(since=begin)) <= 61


async def test_a_standby_follows_a_leader_that_was_killed_within_lease_and_retry() -> None:
    async with Voters.open() as voters:
        a, b = await voters.join("a"), await voters.join("b")
        await asyncio.sleep(61)
        await a.kill()
        killed = now()

        assert await until(lambda: b.leads) - killed <= 15 + 2 + 1
        assert (await voters.lease()).spec.lease_transitions == 1


async def test_a_leader_that_stops_hands_over_within_three_seconds() -> None:
    async with Voters.open() as voters:
        a, b = await voters.join("a"), await voters.join("b")
        await asyncio.sleep(61)
        stopped = now()
        await a.stop()

        assert (await voters.lease()).spec.lease_duration_seconds == 1
        assert await until(lambda: b.leads) - stopped <= 3
        assert a.told[-1] == (stopped, "told to stop")


async def test_without_release_the_next_leader_waits_for_the_lease_to_be_over() -> None:
    async with Voters.open() as voters:
        a, b = await voters.join("a"), await voters.join("b")
        await asyncio.sleep(61)
        stopped = now()
        await a.stop(release=False)

        assert a.guard() == 0
        assert (await voters.lease()).spec.holder_identity == "a"
        assert 12 < await until(lambda: b.leads) - stopped <= 18


async def test_an_election_may_say_never_to_release() -> None:
    async with Voters.open() as voters:
        a = await voters.join("a", release_on_stop=False)
        await a.stop()

        assert (await voters.lease()).spec.holder_identity == "a"


@pytest.mark.parametrize("fault", [refused(), frozen(), answered(503), answered(500), answered(429)])
async def test_a_leader_without_a_server_is_told_by_the_renew_deadline_and_before_another_leads(fault: Fault) -> None:
    async with Voters.open() as voters:
        a, b = await voters.join("a"), await voters.join("b")
        await asyncio.sleep(60)
        blocked = now()
        a.script.add(anything, fault)

        lost = await until(lambda: not a.leads)
        assert lost - blocked <= 10.1
        assert a.guard() == 0
        assert "the lease was not renewed for 10 s" in a.told[-1][1]
        assert not b.leads
        taken = await until(lambda: b.leads)
        assert taken - blocked >= 12

        a.script.clear()
        await asyncio.sleep(30)
        assert [a.leads, b.leads] == [False, True]


async def test_a_short_outage_goes_unnoticed() -> None:
    async with Voters.open() as voters:
        a = await voters.join("a")
        await asyncio.sleep(60)
        with a.script.standing(anything, refused()):
            await asyncio.sleep(6)
        await asyncio.sleep(60)

        assert [what for _, what in a.told] == ["started"]
        assert a.elector.stats().failures > 0


async def test_answers_that_are_lost_cost_no_lease() -> None:
    async with Voters.open() as voters:
        a, b = await voters.join("a"), await voters.join("b")
        for _ in range(5):
            a.script.add(writes, frozen(), times=1)  # carried out, but the answer never comes
            await asyncio.sleep(20)

        assert [what for _, what in a.told] == ["started"]
        assert not b.told


async def test_the_next_term_starts_after_all_of_the_last_has_ended() -> None:
    async with Voters.open() as voters:
        a = await voters.join("a")
        await asyncio.sleep(10)
        a.still_busy = 30.0
        with a.script.standing(anything, refused()):
            await until(lambda: not a.leads)
        lost = now()

        assert await until(lambda: a.leads) - lost >= 29.9
        assert [what for _, what in a.told][::2] == ["started", "started"]


async def test_who_gives_up_does_not_write_at_once_and_leaves_the_lease_to_expire() -> None:
    async with Voters.open() as voters:
        a, b = await voters.join("a"), await voters.join("b")
        await asyncio.sleep(31)
        a.still_busy = 100.0
        given_up = now()

        a.elector.give_up("the main loop is blocked")
        assert a.guard() == 0
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert a.told[-1][1] == "the main loop is blocked"
        assert (await voters.lease()).spec.holder_identity == "a"
        assert 12 < await until(lambda: b.leads) - given_up <= 18


async def test_giving_up_while_a_renewal_is_under_way_holds() -> None:
    async with Voters.open() as voters:
        a = await voters.join("a")
        await asyncio.sleep(31)
        a.still_busy = 100.0
        with a.script.standing(writes, Fault(delay=1.0)):
            await until(lambda: a.script.asked(writes, since=31))

        a.elector.give_up("the main loop is blocked")
        await asyncio.sleep(5)

        assert not a.leads
        assert a.guard() == 0


async def test_a_lease_of_somebody_else_is_respected_for_as_long_as_it_says() -> None:
    async with Voters.open() as voters:
        spec = LeaseSpec(holder_identity="client-go", lease_duration_seconds=60, lease_transitions=7)
        await voters.client.create(Lease(metadata=ObjectMeta(name="operator", namespace="default"), spec=spec))
        a = await voters.join("a")

        assert 60 <= await until(lambda: a.leads, within=70) <= 63
        assert (await voters.lease()).spec.lease_transitions == 8


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
    guard = Guard(asyncio.get_running_loop().time)
    elector = Elector(Client(InProcessTransport(with_a_strategy)), Election("operator", "default"), guard=guard)
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
    async with Voters.open() as voters:
        a = await voters.join("a")
        await asyncio.sleep(20)
        await voters.client.patch(Lease, "operator", {"metadata": {"labels": {"x": "y"}}}, namespace="default")
        await asyncio.sleep(20)

        assert [what for _, what in a.told] == ["started"]
        assert a.elector.stats().failures == 1, "the edit of somebody else was noticed, not overwritten"
        assert (await voters.lease()).metadata.labels == {"x": "y"}


async def test_a_right_that_is_missing_is_named_and_recovers_when_granted() -> None:
    async with Voters.open() as voters:
        a = await voters.join("a")
        with a.script.standing(anything, refusing("update on leases.coordination.k8s.io")):
            await asyncio.sleep(60)
            assert "leases" in a.elector.stats().trouble
            assert not a.leads

        await until(lambda: a.leads)
        assert a.elector.stats().trouble == ""


async def test_many_candidates_have_one_leader_each_time_one_goes() -> None:
    async with Voters.open() as voters:
        crowd = [await voters.join(f"n{i}") for i in range(8)]
        for _ in range(7):
            leaders = [one for one in crowd if one.leads]
            assert len(leaders) == 1
            await leaders[0].stop()
            crowd.remove(leaders[0])
            await until(lambda: any(one.leads for one in crowd), within=5)
        assert (await voters.lease()).spec.lease_transitions == 7


async def test_an_error_of_a_callback_ends_the_elector_with_its_guard_shut() -> None:
    def fail() -> None:
        raise RuntimeError("no")

    server = EmbeddedServer(seed=1)
    guard = Guard(asyncio.get_running_loop().time)
    elector = Elector(
        Client(InProcessTransport(server.handle)), Election("operator", "default"), guard=guard, started=fail
    )

    with pytest.raises(RuntimeError, match="no"):
        await elector.run()
    assert guard() == 0


async def test_several_leases_can_be_competed_for_at_once() -> None:
    server = EmbeddedServer(seed=1)
    clock = asyncio.get_running_loop().time
    electors = [
        Elector(Client(InProcessTransport(server.handle)), Election(name, "default"), guard=Guard(clock))
        for name in ("north", "south")
    ]
    tasks = [asyncio.create_task(elector.run()) for elector in electors]
    await asyncio.sleep(1)

    assert all(elector.leading.is_set() for elector in electors)
    for elector in electors:
        elector.stop()
    await asyncio.gather(*tasks)


async def test_a_client_behind_the_guard_writes_only_while_it_leads() -> None:
    async with Voters.open() as voters:
        a = await voters.join("a")
        client = Client(InProcessTransport(voters.server.handle), guard=a.guard)
        await client.create(ConfigMap(metadata=ObjectMeta(name="one", namespace="default")))
        await a.stop()

        with pytest.raises(WriteRefused, match="is this process still leading"):
            await client.create(ConfigMap(metadata=ObjectMeta(name="two", namespace="default")))


def test_a_guard_shuts_by_itself() -> None:
    time = [100.0]
    guard = Guard(lambda: time[0])
    assert guard() == 0
    guard.open(114)
    assert guard() == 14
    time[0] = 114.0
    assert guard() == 0
    guard.open(200)
    guard.shut()
    assert guard() == 0


async def test_on_virtual_time_a_guard_goes_by_the_loop() -> None:
    guard = Guard()
    guard.open(guard.clock() + 14)
    await asyncio.sleep(13)
    assert guard() == 1
    await asyncio.sleep(1)
    assert guard() == 0


@pytest.mark.real_time(limit=30)
async def test_on_real_time_a_guard_goes_by_the_clock_that_counts_sleep() -> None:
    assert Guard().clock is boot_clock


def test_the_clock_never_goes_back() -> None:
    assert usual_clock() is boot_clock
    times = [boot_clock() for _ in range(100)]
    assert times == sorted(times)


def test_an_identity_is_made_up_anew_each_time() -> None:
    assert default_identity() != default_identity()
    assert Election("x").identity != Election("x").identity


def test_an_election_that_cannot_work_is_refused_where_it_is_written() -> None:
    with pytest.raises(ValueError, match="renew_deadline must be at most lease - margin"):
        Election("x", lease=5)
    with pytest.raises(ValueError, match="name of a Lease"):
        Election("")
    with pytest.raises(ValueError, match="identity is empty"):
        Election("x", identity="")
