"""RedisCluster on real servers on process nodes: formed, scaled under load, killed, moved to new addresses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import pytest

from konverge.k8s.core.v1 import Pod, Secret
from konverge.objects import Key
from konverge_operators.redis.cluster.api import RedisCluster
from konverge_operators.redis.local_images import local_images
from konverge_operators.redis.operator import new_operator
from konverge_operators.redis.resp import Connection, ServerError
from process_clusters import ProcessCluster, process_cluster
from redis_servers import cluster_sample

pytestmark = [pytest.mark.processes, pytest.mark.real_time, pytest.mark.plain_loop]

LIMIT = 240.0
NAME = "store"


class Client:
    """A client of the cluster that follows redirections, and remembers what a replica acknowledged."""

    def __init__(self, cluster: ProcessCluster, password: str) -> None:
        self._cluster = cluster
        self._password = password
        self._connections: dict[str, Connection] = {}
        self.acknowledged: dict[str, str] = {}
        self.count = 0

    async def hosts(self) -> list[str]:
        pods = await self._cluster.client.list(Pod, namespace=self._cluster.namespace)
        return [pod.status.pod_ip for pod in pods if pod.status is not None and pod.status.pod_ip]

    async def write(self) -> None:
        """Write one key, and wait for one replica."""
        self.count += 1
        key, value = f"key-{self.count}", f"value-{self.count}"
        with suppress(ServerError, OSError):
            server = await self._call("SET", key, value)
            if await server.call("WAIT", 1, 1000) == 1:
                self.acknowledged[key] = value

    async def read(self, key: str) -> str:
        server = await self._call("EXISTS", key)
        reply = await server.call("GET", key)
        return reply.decode() if isinstance(reply, bytes) else ""

    async def lost(self) -> list[str]:
        """Return the acknowledged keys that are not there."""
        return [key for key, value in self.acknowledged.items() if await self.read(key) != value]

    async def _call(self, *words: str) -> Connection:
        """Send a command to the owner of its key; return the connection to it."""
        host = (await self.hosts())[0] if not self._connections else next(iter(self._connections))
        for _ in range(8):
            server = self._connections.setdefault(host, Connection(host, 6379, self._password))
            try:
                await server.call(*words)
                return server
            except ServerError as error:
                if error.code != "MOVED":
                    raise
                host = str(error).split(" ")[2].rpartition(":")[0]
            except OSError:
                self._connections.pop(host)
                raise
        raise ServerError("too many redirections")

    @asynccontextmanager
    async def load(self) -> AsyncGenerator[None]:
        """Write keys while a block runs."""

        async def write() -> None:
            while True:
                await self.write()
                await asyncio.sleep(0.005)

        task = asyncio.create_task(write())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def close(self) -> None:
        for connection in self._connections.values():
            await connection.close()
        self._connections.clear()


@asynccontextmanager
async def operating() -> AsyncGenerator[tuple[ProcessCluster, Client]]:
    """Run the operator and a cluster of three shards that is ready."""
    async with process_cluster(*local_images()) as cluster:
        client, operator = cluster.client, new_operator()
        for crd in operator.crds():
            await client.apply(crd)
        async with operator.manager(client).running():
            await client.create(cluster_sample())
            await until_ready(cluster)
            password = (await client.get(Secret, NAME)).data["password"].decode()
            store = Client(cluster, password)
            yield cluster, store
            await store.close()


async def until_ready(cluster: ProcessCluster) -> RedisCluster:
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
    await cluster.client.patch(RedisCluster, NAME, {"spec": {"shards": shards}})
    status = (await until_ready(cluster)).status
    assert (status.slots.assigned, status.slots.migrating) == (16384, 0)
    assert [sum(one.slots for one in status.nodes if one.shard == shard) for shard in range(shards)] == even(shards)


def even(shards: int) -> list[object]:
    """Return what equals the share of each shard, give or take what the threshold allows."""
    return [pytest.approx(16384 / shards, rel=0.05)] * shards


async def primary_pods(cluster: ProcessCluster) -> list[str]:
    status = (await cluster.client.get(RedisCluster, NAME)).status
    return [one.pod for one in status.nodes if one.role == "primary"]


async def kill(cluster: ProcessCluster, pod: str) -> None:
    await cluster.cluster.faults.kill(Key(cluster.namespace, pod))


async def test_a_cluster_is_formed_scaled_under_load_and_survives_a_killed_primary() -> None:
    async with operating() as (cluster, store):
        async with store.load():
            await scale(cluster, 4)
            await kill(cluster, (await primary_pods(cluster))[0])
            await scale(cluster, 3)
        assert len(store.acknowledged) > 100
        assert await store.lost() == []


async def test_every_pod_restarts_at_once_with_a_new_address() -> None:
    async with operating() as (cluster, store):
        while len(store.acknowledged) < 100:
            await store.write()
        before = set(await store.hosts())
        for pod in await cluster.client.list(Pod, namespace=cluster.namespace):
            await cluster.client.delete(pod, grace_period=0)
        async with asyncio.timeout(LIMIT):
            while len(set(await store.hosts()) - before) < len(before):  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        await until_ready(cluster)
        await store.close()
        assert await store.lost() == []
