"""The RedisCluster operator on the embedded cluster, with the generated permissions and servers in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from konverge import Client, ObjectMeta, is_ready
from konverge.errors import Invalid, NotFound
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import Event, PersistentVolumeClaim, Pod, Secret, Service
from konverge.k8s.policy.v1 import PodDisruptionBudget
from konverge.objects import Resource, find_condition
from konverge.workflow import check_phases
from konverge_cluster.testing import TestCluster
from konverge_operators.redis.cluster.api import ClusterPhase, RedisCluster
from konverge_operators.redis.cluster.reconciler import new_cluster_workflow
from konverge_operators.redis.cluster.slots import SLOTS
from konverge_operators.redis.operator import new_operator
from redis_engine import PodEngine, check_owners
from redis_servers import cluster_sample

NAME = "store"
CONDITIONS = ("Ready", "ClusterFormed", "SlotsAssigned", "Balanced", "PersistenceHealthy")


@asynccontextmanager
async def running(
    cluster: TestCluster, file: str = "redis-cluster.yaml", **spec: object
) -> AsyncIterator[tuple[Client, PodEngine]]:
    client, engine = cluster.client(), PodEngine()
    async with cluster.operator(new_operator(engine=engine.opened)):
        await client.create(cluster_sample(file, **spec))
        await cluster.settle()
        yield client, engine


async def found_in(client: Client) -> RedisCluster:
    return await client.get(RedisCluster, NAME)


async def scale(cluster: TestCluster, client: Client, **spec: object) -> RedisCluster:
    await client.patch(RedisCluster, NAME, {"spec": spec})
    await cluster.settle()
    return await found_in(client)


async def test_a_cluster_is_formed_with_all_its_children(cluster: TestCluster) -> None:
    async with running(cluster) as (client, engine):
        found = await found_in(client)
        secret = await client.get(Secret, NAME)
        sets = await client.list(StatefulSet, namespace="default")
        service = await client.get(Service, NAME)
        await client.get(PodDisruptionBudget, NAME)
    status = found.status
    assert (status.phase, status.ready_replicas, status.connection_secret) == (ClusterPhase.READY, 6, NAME)
    assert is_ready(found)
    assert [one for one in CONDITIONS if (it := find_condition(status.conditions, one)) and it.status == "True"] == [
        *CONDITIONS
    ]
    assert (status.slots.assigned, status.slots.migrating) == (SLOTS, 0)
    assert [(one.pod, one.role, one.slots) for one in status.nodes if one.role == "primary"] == [
        ("store-shard-0-0", "primary", 5461),
        ("store-shard-1-0", "primary", 5461),
        ("store-shard-2-0", "primary", 5462),
    ]
    assert sorted(one.name for one in sets) == ["store-shard-0", "store-shard-1", "store-shard-2"]
    assert service.spec.cluster_ip == "None"
    assert secret.data["password"].decode() not in str(sets)
    check_owners(engine)


async def test_the_sample_for_production_becomes_ready(cluster: TestCluster) -> None:
    async with running(cluster, "redis-cluster-production.yaml", shards=3) as (client, _):
        assert (await client.get(RedisCluster, "orders")).status.phase is ClusterPhase.READY


async def test_shards_are_added_and_removed(cluster: TestCluster) -> None:
    async with running(cluster) as (client, engine):
        larger = await scale(cluster, client, shards=4)
        assert (larger.status.phase, larger.status.ready_replicas) == (ClusterPhase.READY, 8)
        assert {one.slots for one in larger.status.nodes} == {0, 4096}
        smaller = await scale(cluster, client, shards=3)
        assert (smaller.status.phase, smaller.status.ready_replicas) == (ClusterPhase.READY, 6)
        sets = await client.list(StatefulSet, namespace="default")
        assert sorted(one.name for one in sets) == ["store-shard-0", "store-shard-1", "store-shard-2"]
        engine.stop("store-shard-3-0")
        check_owners(engine)
        events = {one.reason for one in await client.list(Event, namespace="default")}
        assert "Scaling" in events


async def test_shards_get_slots_by_their_weights_few_at_a_time(cluster: TestCluster) -> None:
    async with running(cluster, rebalance={"weights": [2, 1], "maxConcurrent": 100}) as (client, engine):
        assert slots_of(await found_in(client)) == [8192, 4096, 4096]
        assert engine.most_open == 0
        changed = await scale(cluster, client, rebalance={"weights": [1, 1, 2]})
        assert slots_of(changed) == [4096, 4096, 8192]
        assert engine.most_open == 100
        assert slots_of(await scale(cluster, client, shards=4)) == [3277, 3277, 6554, 3276]
        with pytest.raises(Invalid, match="should be greater than or equal to 1"):
            await client.patch(RedisCluster, NAME, {"spec": {"rebalance": {"weights": [0]}}})
        check_owners(engine)


def slots_of(found: RedisCluster) -> list[int]:
    """Return the number of slots of each shard."""
    nodes = found.status.nodes
    return [sum(one.slots for one in nodes if one.shard == shard) for shard in range(found.spec.shards)]


async def test_replicas_are_added_and_removed(cluster: TestCluster) -> None:
    async with running(cluster) as (client, _):
        assert (await scale(cluster, client, replicasPerShard=2)).status.ready_replicas == 9
        assert (await scale(cluster, client, replicasPerShard=0)).status.ready_replicas == 3
        assert (await found_in(client)).status.phase is ClusterPhase.READY


async def test_shards_are_kept_that_the_rest_cannot_replace(cluster: TestCluster) -> None:
    async with running(cluster, shards=4, maxMemory="100Mi") as (client, engine):
        engine.memory = 90 * 1024 * 1024
        refused = await scale(cluster, client, shards=3)
        assert refused.status.phase is ClusterPhase.FAILED
        assert "have room for" in refused.status.message
        assert len(await client.list(StatefulSet, namespace="default")) == 4
        engine.memory = 10 * 1024 * 1024
        assert (await scale(cluster, client, shards=3, maxMemory="101Mi")).status.phase is ClusterPhase.READY


async def test_an_update_replaces_every_pod_replicas_first(cluster: TestCluster) -> None:
    async with running(cluster) as (client, engine):
        before = {pod.name: pod.uid for pod in await client.list(Pod, namespace="default")}
        found = await scale(cluster, client, version="8.2")
        after = {pod.name: pod.uid for pod in await client.list(Pod, namespace="default")}
        assert found.status.phase is ClusterPhase.READY
        assert before.keys() == after.keys()
        assert not set(before.values()) & set(after.values())
        check_owners(engine)


@pytest.mark.parametrize("kind", [Service, PodDisruptionBudget])
async def test_a_deleted_child_is_repaired(cluster: TestCluster, kind: type[Resource]) -> None:
    async with running(cluster) as (client, _):
        before = await client.get(kind, NAME)
        await client.delete(kind, NAME)
        await cluster.settle()
        assert (await client.get(kind, NAME)).uid != before.uid
        assert (await found_in(client)).status.phase is ClusterPhase.READY


async def test_a_deleted_stateful_set_comes_back_with_its_data(cluster: TestCluster) -> None:
    async with running(cluster) as (client, engine):
        assert engine.write(0, "key")
        await client.delete(StatefulSet, "store-shard-0")
        await cluster.settle()
        assert (await found_in(client)).status.phase is ClusterPhase.READY
        owner = engine.owner(0)
        assert owner is not None
        assert owner.keys[0] == {"key"}


async def test_a_lost_password_is_reported_and_never_replaced(cluster: TestCluster) -> None:
    async with running(cluster) as (client, _):
        secret = await client.get(Secret, NAME)
        await client.delete(Secret, NAME)
        await cluster.settle()
        found = await found_in(client)
        condition = find_condition(found.status.conditions, "Ready")
        assert condition is not None
        assert (condition.status, condition.reason) == ("False", "SecretMissing")
        with pytest.raises(NotFound):
            await client.get(Secret, NAME)
        await client.create(Secret(metadata=ObjectMeta(name=NAME), data=secret.data))
        await cluster.settle()
        assert (await found_in(client)).status.phase is ClusterPhase.READY


async def test_a_server_that_does_not_reply_degrades_the_cluster(cluster: TestCluster) -> None:
    async with running(cluster) as (client, engine):
        engine.hidden = {"store-shard-1-1"}
        await cluster.settle(quiet=60)
        found = await found_in(client)
        assert found.status.phase is ClusterPhase.DEGRADED
        assert found.status.message == "no reply from store-shard-1-1"
        engine.hidden = set()
        await cluster.settle(quiet=60)
        assert (await found_in(client)).status.phase is ClusterPhase.READY


async def test_a_replica_that_connects_to_an_old_address_of_its_primary_is_attached_again(cluster: TestCluster) -> None:
    async with running(cluster) as (client, engine):
        replica = engine.nodes["store-shard-1-1"]
        replica.primary_host = "192.0.2.1"
        await cluster.settle(quiet=60)
        found = await found_in(client)
    assert replica.primary_host == ""
    assert found.status.phase is ClusterPhase.READY


async def test_suspend_changes_nothing_and_the_status_goes_on(cluster: TestCluster) -> None:
    async with running(cluster) as (client, _):
        found = await scale(cluster, client, suspend=True, shards=4)
        assert len(await client.list(StatefulSet, namespace="default")) == 3
        assert found.status.slots.assigned == SLOTS


async def test_deletion_keeps_the_claims_and_a_new_cluster_takes_them_over(cluster: TestCluster) -> None:
    async with running(cluster) as (client, engine):
        assert engine.write(0, "key")
        secret = await client.get(Secret, NAME)
        await client.delete(RedisCluster, NAME)
        await cluster.settle()
        for kind in (RedisCluster, Service, PodDisruptionBudget, Secret):
            with pytest.raises(NotFound):
                await client.get(kind, NAME)
        assert len(await client.list(PersistentVolumeClaim, namespace="default")) == 6
        reasons = {one.reason for one in await client.list(Event, namespace="default")}
        assert "ClaimsRetained" in reasons
        await client.create(Secret(metadata=ObjectMeta(name=NAME), data=secret.data))
        await client.create(cluster_sample())
        await cluster.settle()
        assert (await found_in(client)).status.phase is ClusterPhase.READY
        owner = engine.owner(0)
        assert owner is not None
        assert owner.keys[0] == {"key"}
        assert engine.formed == 1


async def test_a_part_of_an_old_cluster_is_never_formed_again(cluster: TestCluster) -> None:
    async with running(cluster, shards=4) as (client, engine):
        await client.delete(RedisCluster, NAME)
        await cluster.settle()
        await client.create(cluster_sample())
        await cluster.settle()
        found = await found_in(client)
        assert found.status.phase is ClusterPhase.FAILED
        assert "4096 slots of an earlier cluster are missing" in found.status.message
        assert (await scale(cluster, client, shards=4)).status.phase is ClusterPhase.READY
        assert engine.formed == 1


async def test_options_of_the_operator_are_refused(cluster: TestCluster) -> None:
    async with running(cluster) as (client, _):
        with pytest.raises(Invalid, match="config must not have options that the operator sets"):
            await client.patch(RedisCluster, NAME, {"spec": {"config": {"cluster-enabled": "no"}}})


def test_every_phase_is_reached_and_left() -> None:
    samples = [cluster_sample() for _ in ClusterPhase]
    for sample, phase in zip(samples, ClusterPhase, strict=True):
        sample.status.step = phase.value
    check_phases(new_cluster_workflow(), [cluster_sample(), *samples])
