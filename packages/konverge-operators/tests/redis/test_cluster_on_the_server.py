"""RedisCluster on a real control plane: real controllers, simulated nodes, generated permissions, servers in memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from databases import storage_class
from konverge import Client
from konverge.client import is_deleted
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod, Service
from konverge.objects import AnyObject
from konverge.testing import ControlPlane
from konverge_operators.redis.cluster.api import ClusterPhase, RedisCluster
from konverge_operators.redis.cluster.slots import SLOTS
from konverge_operators.redis.operator import new_operator
from redis_engine import PodEngine
from redis_servers import cluster_sample, operating_on
from volume_clusters import provisioner

pytestmark = [pytest.mark.control_plane, pytest.mark.real_time(limit=600), pytest.mark.usefixtures("control_plane")]

LIMIT = 150.0
NAME, NAMESPACE = "store", "stores"


def is_ready_with(replicas: int) -> Callable[[AnyObject | None], bool]:
    def holds(found: AnyObject | None) -> bool:
        return (
            isinstance(found, RedisCluster)
            and found.status.phase is ClusterPhase.READY
            and found.status.observed_generation == found.metadata.generation
            and found.status.ready_replicas == replicas
            and found.status.slots.assigned == SLOTS
        )

    return holds


async def until_ready(client: Client, replicas: int) -> None:
    await client.wait_for(RedisCluster, NAME, is_ready_with(replicas), timeout=LIMIT)


async def test_the_life_of_a_cluster() -> None:
    engine = PodEngine()
    with ControlPlane(controller_manager=True) as plane:
        async with operating_on(plane, new_operator(engine=engine.opened), NAMESPACE) as client, provisioner(client):
            await client.create(storage_class())
            await client.create(cluster_sample(persistence={"storage": {"storageClassName": "fast"}}))
            await until_ready(client, 6)
            assert engine.write(0, "key")
            await client.patch(RedisCluster, NAME, {"spec": {"shards": 4}})
            await until_ready(client, 8)
            await client.patch(RedisCluster, NAME, {"spec": {"shards": 3}})
            await a_shard_is_removed(client, 3)
            await until_ready(client, 6)
            await children_are_repaired(client)
            await every_pod_is_replaced(client)
            owner = engine.owner(0)
            assert owner is not None
            assert owner.keys[0] == {"key"}
            await client.delete(RedisCluster, NAME)
            await client.wait_for(RedisCluster, NAME, is_deleted(), timeout=LIMIT)
            assert len(await client.list(PersistentVolumeClaim, namespace=NAMESPACE)) == 8
    assert engine.formed == 1


async def a_shard_is_removed(client: Client, shard: int) -> None:
    """Wait for the end of its pods too: they are left to the garbage collector, which may be late."""
    await client.wait_for(StatefulSet, f"{NAME}-shard-{shard}", is_deleted(), timeout=LIMIT)
    for pod in range(2):
        await client.wait_for(Pod, f"{NAME}-shard-{shard}-{pod}", is_deleted(), timeout=LIMIT)


async def children_are_repaired(client: Client) -> None:
    service = await client.get(Service, NAME)
    await client.delete(Service, NAME)
    await client.wait_for(Service, NAME, lambda found: found is not None and found.uid != service.uid, timeout=LIMIT)
    await until_ready(client, 6)


async def every_pod_is_replaced(client: Client) -> None:
    """Change the template; the operator replaces the pods one at a time."""
    before = {pod.name: pod.uid for pod in await client.list(Pod, namespace=NAMESPACE)}
    await client.patch(RedisCluster, NAME, {"spec": {"config": {"maxclients": "500"}}})
    for name, uid in before.items():

        def is_replaced(found: AnyObject | None, uid: str = uid) -> bool:
            return found is not None and found.uid != uid

        await client.wait_for(Pod, name, is_replaced, timeout=LIMIT)
    await until_ready(client, 6)
