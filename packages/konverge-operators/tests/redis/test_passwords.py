"""Password rotation of a RedisCluster: the stages as a pure function, and the operator with servers in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from konverge import Client, ObjectMeta
from konverge.k8s.core.v1 import Event, Pod, Secret
from konverge_cluster.testing import TestCluster
from konverge_operators.redis.cluster.api import ROTATE_PASSWORD, ClusterPhase, RedisCluster
from konverge_operators.redis.cluster.passwords import OVERLAP, Passwords, next_passwords
from konverge_operators.redis.operator import new_operator
from konverge_operators.redis.servers import digest
from redis_engine import PodEngine
from redis_servers import cluster_sample

NAME = "store"
START = datetime(2026, 1, 1, tzinfo=UTC)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("edit"), st.sampled_from(["a", "b", "c"])),
            st.tuples(st.just("request"), st.sampled_from(["1", "2"])),
            st.tuples(st.just("accept"), st.just("")),
            st.tuples(st.just("wait"), st.just("")),
        ),
        max_size=20,
    )
)
def test_a_password_of_clients_is_accepted_from_its_acceptance_until_it_was_replaced_for_a_while(
    events: list[tuple[str, str]],
) -> None:
    known, connection, request, time = Passwords("a"), "a", "", START
    accepted_by_servers = {"a"}
    for number, (event, value) in enumerate(events):
        if event == "edit":
            connection = value
        elif event == "request":
            request = value
        elif event == "wait":
            time += OVERLAP / 2
        elif event == "accept":
            accepted_by_servers = set(known.accepted)
        before = known
        known = next_passwords(
            before,
            connection,
            request,
            accepted=before.next in accepted_by_servers,
            time=time,
            generate=lambda: f"generated-{number}",  # noqa: B023
        )
        if known.password != before.password:
            assert known.password in accepted_by_servers
            assert known.previous == before.password
            connection = known.password
        elif event != "wait":
            assert before.previous in ("", known.previous), "a previous password is removed by time alone"
        assert connection in known.accepted


def test_a_rotation_ends_with_one_password() -> None:
    known, request, time = Passwords("old"), "1", START
    stages = [known]
    for _ in range(6):
        connection = known.password
        known = next_passwords(known, connection, request, accepted=True, time=time, generate=lambda: "new")
        time += timedelta(minutes=5)
        if known != stages[-1]:
            stages.append(known)
    assert [one.accepted for one in stages] == [("old",), ("old", "new"), ("new", "old"), ("new",)]
    assert replace(stages[-1], since="") == Passwords("new", request="1")


@asynccontextmanager
async def running(cluster: TestCluster) -> AsyncIterator[tuple[Client, PodEngine]]:
    client, engine = cluster.client(), PodEngine()
    async with cluster.operator(new_operator(engine=engine.opened)):
        await client.create(cluster_sample())
        await cluster.settle()
        yield client, engine


async def password_of(client: Client, name: str = NAME) -> str:
    return (await client.get(Secret, name)).data["password"].decode()


def accepted_by_all(engine: PodEngine) -> set[frozenset[str]]:
    return {node.passwords for node in engine.running()}


def hashes(*passwords: str) -> frozenset[str]:
    return frozenset(map(digest, passwords))


async def request(client: Client, value: str = "1") -> None:
    await client.patch(RedisCluster, NAME, {"metadata": {"annotations": {ROTATE_PASSWORD: value}}})


async def until_overlap_ends(cluster: TestCluster) -> None:
    await asyncio.sleep(OVERLAP.total_seconds() + 60)
    await cluster.settle()


async def test_a_requested_rotation_keeps_both_passwords_for_a_while_and_restarts_nothing(cluster: TestCluster) -> None:
    async with running(cluster) as (client, engine):
        pods = {pod.uid for pod in await client.list(Pod, namespace="default")}
        old = await password_of(client)
        await request(client)
        await cluster.settle()
        secret = await client.get(Secret, NAME)
        new = await password_of(client)
        assert new != old
        assert new in secret.data["uri"].decode()
        assert accepted_by_all(engine) == {hashes(old, new)}
        assert {node.primary_password for node in engine.running()} == {digest(new)}
        stale = engine.nodes["store-shard-2-0"]  # it restarts with the Secret of before
        stale.passwords, stale.primary_password = hashes(old), digest(old)
        await cluster.settle(quiet=60)
        assert accepted_by_all(engine) == {hashes(old, new)}
        await until_overlap_ends(cluster)
        assert accepted_by_all(engine) == {hashes(new)}
        assert await password_of(client) == new, "a request is followed once"
        assert (await client.get(RedisCluster, NAME)).status.phase is ClusterPhase.READY
        assert {pod.uid for pod in await client.list(Pod, namespace="default")} == pods
        reasons = {one.reason for one in await client.list(Event, namespace="default")}
        assert {"PasswordRotated", "PasswordRemoved"} <= reasons


async def test_a_password_changed_by_hand_is_followed_once_every_server_accepts_it(cluster: TestCluster) -> None:
    async with running(cluster) as (client, engine):
        old = await password_of(client)
        engine.hidden = {"store-shard-1-1"}
        await client.patch(Secret, NAME, {"stringData": {"password": "chosen"}})
        await cluster.settle(quiet=60)
        assert engine.nodes["store-shard-0-0"].passwords == hashes(old, "chosen")
        assert await password_of(client, f"{NAME}-servers") == old
        engine.hidden = set()
        await cluster.settle(quiet=60)
        assert await password_of(client, f"{NAME}-servers") == "chosen"
        assert b"chosen" in (await client.get(Secret, NAME)).data["uri"]
        await until_overlap_ends(cluster)
        assert accepted_by_all(engine) == {hashes("chosen")}
        assert (await client.get(RedisCluster, NAME)).status.phase is ClusterPhase.READY


async def test_secrets_lost_in_a_rotation_do_not_lock_the_operator_out(cluster: TestCluster) -> None:
    async with running(cluster) as (client, engine):
        await request(client)
        await cluster.settle()
        await client.delete(Secret, f"{NAME}-servers")
        lost = await client.get(Secret, NAME)
        await client.delete(Secret, NAME)
        await cluster.settle()
        assert (await client.get(RedisCluster, NAME)).status.phase is ClusterPhase.DEGRADED
        await client.create(Secret(metadata=ObjectMeta(name=NAME), data=lost.data))
        await until_overlap_ends(cluster)
        assert (await client.get(RedisCluster, NAME)).status.phase is ClusterPhase.READY
        assert accepted_by_all(engine) == {hashes(await password_of(client))}
