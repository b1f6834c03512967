"""The Cache operator with a real redis-server on process nodes."""

from __future__ import annotations

import asyncio

import pytest
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, RedisError

from konverge.client import has_condition
from konverge.k8s.core.v1 import Pod, Secret, Service
from konverge_operators.redis.cache.api import Cache
from konverge_operators.redis.clients import call_all, new_client
from konverge_operators.redis.local_images import local_images
from konverge_operators.redis.operator import new_operator
from process_clusters import ProcessCluster, process_cluster
from process_operators import operating_in
from redis_servers import cache_sample

pytestmark = [pytest.mark.processes, pytest.mark.real_time]

LIMIT = 60.0
NAME = "sessions"


async def test_a_cache_on_a_real_server() -> None:
    async with process_cluster(*local_images()) as cluster, operating_in(cluster, new_operator()):
        client = cluster.client
        await client.create(cache_sample(maxMemory="4Mi"))
        await client.wait_for(Cache, NAME, has_condition("Ready"), timeout=LIMIT)
        password = (await client.get(Secret, NAME)).data["password"].decode()
        await until_set(cluster, password, "first")
        await old_keys_are_evicted(cluster, password)
        await no_password_no_answer(cluster)

        killed = (await client.list(Pod, namespace=cluster.namespace))[0]
        await cluster.cluster.faults.kill(killed.key)
        await until_set(cluster, password, "second")

        await client.patch(Secret, NAME, {"stringData": {"password": "rotated"}})
        await until_set(cluster, "rotated", "third")
        await client.wait_for(Cache, NAME, has_condition("Ready"), timeout=LIMIT)


async def server(cluster: ProcessCluster, password: str) -> Redis:
    """Return a client of the Service."""
    service = await cluster.client.get(Service, NAME)
    return new_client(service.spec.cluster_ip or "", password)


async def until_set(cluster: ProcessCluster, password: str, value: str) -> None:
    """Wait until a key can be written and read."""
    async with asyncio.timeout(LIMIT), await server(cluster, password) as connection:
        while True:
            try:
                replies = await call_all(connection, [("SET", "key", value), ("GET", "key")])
                assert replies[1] == value.encode()
                return
            except RedisError:
                await asyncio.sleep(0.2)


async def old_keys_are_evicted(cluster: ProcessCluster, password: str) -> None:
    async with await server(cluster, password) as connection:
        large = [("SET", f"large-{number}", bytes(128 * 1024)) for number in range(64)]
        left = (await call_all(connection, [*large, ("DBSIZE",)]))[-1]
        assert isinstance(left, int)
        assert 0 < left < 64


async def no_password_no_answer(cluster: ProcessCluster) -> None:
    async with await server(cluster, "") as connection:
        with pytest.raises(AuthenticationError, match="Authentication required"):
            await call_all(connection, [("GET", "key")])
