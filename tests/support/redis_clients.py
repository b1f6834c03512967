"""A client of a Redis cluster on process nodes that remembers which of its writes a replica acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import MovedError, RedisError

from konverge.k8s.core.v1 import Pod, Secret
from konverge.objects import Key
from konverge_operators.redis.clients import Reply, call_all, new_client
from konverge_operators.redis.cluster.api import RedisCluster
from konverge_operators.redis.cluster.slots import SLOTS
from konverge_operators.redis.local_images import local_images
from konverge_operators.redis.operator import new_operator
from process_clusters import ProcessCluster, process_cluster
from process_operators import operating_in
from redis_bus import slot_of
from redis_servers import cluster_sample

LIMIT = 240.0
NAME = "store"
_BATCH = 500


class StoreClient:
    """Writes keys with WAIT 1, follows redirections, and reads all of them again."""

    def __init__(self, cluster: ProcessCluster, password: str) -> None:
        self._cluster = cluster
        self.password = password
        self._connections: dict[str, Redis] = {}
        self.acknowledged: dict[str, str] = {}
        self.sent: dict[str, str] = {}

    async def hosts(self) -> list[str]:
        pods = await self._cluster.client.list(Pod, namespace=self._cluster.namespace)
        return [pod.status.pod_ip for pod in pods if pod.status is not None and pod.status.pod_ip]

    async def fill(self, count: int) -> None:
        """Write keys in batches to their owners; one WAIT acknowledges a batch."""
        for host, keys in (await self._by_owner([f"filled-{number}" for number in range(count)])).items():
            for first in range(0, len(keys), _BATCH):
                batch = {key: key.upper() for key in keys[first : first + _BATCH]}
                self.sent |= batch
                written = [("SET", key, value) for key, value in batch.items()]
                if (await call_all(self._connection(host), [*written, ("WAIT", 1, 4000)]))[-1] == 1:
                    self.acknowledged |= batch

    async def write(self) -> None:
        """Write one key, and wait for one replica."""
        key, value = f"key-{len(self.sent)}", f"value-{len(self.sent)}"
        self.sent[key] = value
        with suppress(RedisError):
            if await self._set(key, value) == 1:
                self.acknowledged[key] = value

    async def lost(self) -> tuple[list[str], list[str]]:
        """Return the acknowledged keys that are not there, and the others that are possibly lost."""
        missing: list[str] = []
        for host, keys in (await self._by_owner(list(self.sent))).items():
            for first in range(0, len(keys), _BATCH):
                batch = keys[first : first + _BATCH]
                values = await call_all(self._connection(host), [("GET", key) for key in batch])
                missing += [key for key, value in zip(batch, values, strict=True) if value != self.sent[key].encode()]
        return [key for key in missing if key in self.acknowledged], [
            key for key in missing if key not in self.acknowledged
        ]

    @asynccontextmanager
    async def load(self) -> AsyncGenerator[None]:
        """Write keys while a block runs.

        It is not ended by a cancellation: with Python 3.11, redis-py loses one that comes with the end of a send.
        """
        is_over = False

        async def write() -> None:
            while not is_over:
                await self.write()
                await asyncio.sleep(0.005)

        task = asyncio.create_task(write())
        try:
            yield
        finally:
            is_over = True
            await task

    async def close(self) -> None:
        for connection in self._connections.values():
            await connection.aclose()
        self._connections.clear()

    def _connection(self, host: str) -> Redis:
        if host not in self._connections:
            self._connections[host] = new_client(host, self.password)
        return self._connections[host]

    async def _set(self, key: str, value: str) -> Reply:
        """Write a key at its owner; return how many replicas have it."""
        host = next(iter(self._connections), None) or (await self.hosts())[0]
        for _ in range(8):
            try:
                return (await call_all(self._connection(host), [("SET", key, value), ("WAIT", 1, 1000)]))[1]
            except MovedError as error:
                host = error.host
            except RedisError:
                await self._connections.pop(host).aclose()
                raise
        raise RedisError("too many redirections")

    async def _by_owner(self, keys: list[str]) -> dict[str, list[str]]:
        """Return keys by the address of the server that owns their slot, as the first server that replies knows it."""
        owners: dict[int, str] = {}
        reply = (await call_all(self._connection((await self.hosts())[0]), [("CLUSTER", "SLOTS")]))[0]
        for item in reply if isinstance(reply, list) else []:
            assert isinstance(item, list)
            first, last, primary = item[:3]
            assert isinstance(first, int)
            assert isinstance(last, int)
            assert isinstance(primary, list)
            assert isinstance(primary[0], bytes)
            owners |= dict.fromkeys(range(first, last + 1), primary[0].decode())
        found: dict[str, list[str]] = {}
        for key in keys:
            found.setdefault(owners[slot_of(key)], []).append(key)
        return found


@asynccontextmanager
async def operating(**spec: Any) -> AsyncGenerator[tuple[ProcessCluster, StoreClient]]:
    """Run the operator, and a cluster of three shards until it is ready."""
    async with process_cluster(*local_images()) as cluster, operating_in(cluster, new_operator()):
        await cluster.client.create(cluster_sample(**spec))
        await until_ready(cluster)
        store = StoreClient(cluster, (await cluster.client.get(Secret, NAME)).data["password"].decode())
        yield cluster, store
        await store.close()


async def until_ready(cluster: ProcessCluster) -> RedisCluster:
    """Wait until the cluster is ready for its last generation."""

    def is_current(found: object) -> bool:
        return (
            isinstance(found, RedisCluster)
            and found.status.phase == "Ready"
            and found.status.observed_generation == found.metadata.generation
        )

    try:
        found = await cluster.client.wait_for(RedisCluster, NAME, is_current, timeout=LIMIT)
    except Exception:
        raise AssertionError(str((await cluster.client.get(RedisCluster, NAME)).status)) from None
    assert found is not None
    return found


async def scale(cluster: ProcessCluster, shards: int) -> None:
    """Change the number of shards, and check that all slots are spread evenly."""
    await cluster.client.patch(RedisCluster, NAME, {"spec": {"shards": shards}})
    status = (await until_ready(cluster)).status
    assert (status.slots.assigned, status.slots.migrating) == (SLOTS, 0)
    counts = [sum(one.slots for one in status.nodes if one.shard == shard) for shard in range(shards)]
    assert counts == [pytest.approx(SLOTS / shards, rel=0.05)] * shards


async def primary_pods(cluster: ProcessCluster) -> list[str]:
    status = (await cluster.client.get(RedisCluster, NAME)).status
    return [one.pod for one in status.nodes if one.role == "primary"]


async def kill(cluster: ProcessCluster, pod: str) -> None:
    await cluster.cluster.faults.kill(Key(cluster.namespace, pod))


async def replace_all_pods(cluster: ProcessCluster, store: StoreClient) -> None:
    """Delete every pod at once, and wait until all run again, at new addresses."""
    before = set(await store.hosts())
    for pod in await cluster.client.list(Pod, namespace=cluster.namespace):
        await cluster.client.delete(pod, grace_period=0)
    await store.close()
    async with asyncio.timeout(LIMIT):
        while len(set(await store.hosts()) - before) < len(before):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    await until_ready(cluster)
