"""RedisCluster on real servers: restarts of everything, scaling, a rotation, lost data. Figures are printed."""

from __future__ import annotations

import time

import pytest

from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod, Secret
from konverge_operators.redis.clients import call_all, new_client
from konverge_operators.redis.cluster.api import ROTATE_PASSWORD, RedisCluster
from redis_clients import LIMIT, NAME, StoreClient, operating, primary_pods, replace_all_pods, scale, until_ready

pytestmark = [pytest.mark.engines, pytest.mark.real_time(limit=3600), pytest.mark.plain_loop]

KEYS = 10_000


async def nothing_is_lost(store: StoreClient, what: str, start: float) -> None:
    lost, possibly_lost = await store.lost()
    seconds = time.monotonic() - start
    print(
        f"\n{what}: {len(store.acknowledged)} keys acknowledged, {len(lost)} lost, "
        f"{len(possibly_lost)} others not there, {seconds:.0f} s"
    )
    assert lost == []


async def test_everything_is_restarted_at_once_twenty_times() -> None:
    async with operating() as (cluster, store):
        start = time.monotonic()
        await store.fill(KEYS)
        for _ in range(20):
            await replace_all_pods(cluster, store)
        await nothing_is_lost(store, "20 restarts of all servers", start)


async def test_three_to_five_to_three_shards_under_load() -> None:
    async with operating() as (cluster, store):
        start = time.monotonic()
        await store.fill(KEYS)
        async with store.load():
            await scale(cluster, 5)
            await scale(cluster, 3)
        await nothing_is_lost(store, "3 -> 5 -> 3 shards", start)


@pytest.mark.parametrize("mode", ["AOF", "RDB"])
async def test_the_data_survives_a_restart(mode: str) -> None:
    async with operating(persistence={"mode": mode}) as (cluster, store):
        start = time.monotonic()
        await store.fill(KEYS)
        if mode == "RDB":
            for host in await store.hosts():
                async with new_client(host, store.password) as client:
                    await call_all(client, [("SAVE",)])
        await replace_all_pods(cluster, store)
        await nothing_is_lost(store, mode, start)


async def test_a_rotation_under_load_refuses_no_client() -> None:
    async with operating() as (cluster, store):
        start = time.monotonic()
        await store.fill(KEYS)
        old = store.password
        pods = {pod.uid for pod in await cluster.client.list(Pod, namespace=cluster.namespace)}
        async with store.load():
            await cluster.client.patch(RedisCluster, NAME, {"metadata": {"annotations": {ROTATE_PASSWORD: "1"}}})
            await cluster.client.wait_for(Secret, NAME, lambda found: password_of(found) != old, timeout=LIMIT)
            store.password = password_of(await cluster.client.get(Secret, NAME))
            for host in await store.hosts():
                for password in (old, store.password):
                    async with new_client(host, password) as client:
                        assert await call_all(client, [("PING",)]) == [b"PONG"]
        await until_ready(cluster)
        assert {pod.uid for pod in await cluster.client.list(Pod, namespace=cluster.namespace)} == pods
        assert len(store.acknowledged) > KEYS
        await nothing_is_lost(store, "rotation", start)
        await replace_all_pods(cluster, store)
        await nothing_is_lost(store, "rotation and restart", start)


async def test_a_primary_that_lost_its_data_does_not_wipe_its_replica() -> None:
    async with operating() as (cluster, store):
        start = time.monotonic()
        await store.fill(KEYS)
        pod = (await primary_pods(cluster))[0]
        before = id_of(await cluster.client.get(RedisCluster, NAME), pod)
        await cluster.client.delete(PersistentVolumeClaim, f"data-{pod}")
        await cluster.client.delete(await cluster.client.get(Pod, pod), grace_period=0)
        await cluster.client.wait_for(RedisCluster, NAME, lambda found: id_of(found, pod) != before, timeout=LIMIT)
        await until_ready(cluster)
        await store.close()
        await nothing_is_lost(store, "a primary without data", start)


def password_of(found: object) -> str:
    assert isinstance(found, Secret)
    return found.data["password"].decode()


def id_of(found: object, pod: str) -> str:
    """Return the id of the server of a pod: a server without its data has another one."""
    assert isinstance(found, RedisCluster)
    return next(one.id for one in found.status.nodes if one.pod == pod)
