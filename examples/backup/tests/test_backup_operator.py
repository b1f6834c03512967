"""The operator on an embedded cluster with a fake object store, in virtual time."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from backup_operator.api import Backup, BackupSpec
from backup_operator.operator import make_operator
from backup_operator.store import Http, Store, StoreError, open_store
from konverge import Client, NotFound, ObjectMeta, Operator, is_ready
from konverge.errors import Invalid
from konverge.k8s.core.v1 import ConfigMap
from konverge_cluster.testing import Simulation, TestCluster, simulate

PATH = "/backups/default/sample.json"


@dataclass
class FakeService:
    """An object store that can be down; like a real one it answers 404 for a DELETE of what is not there."""

    objects: dict[str, bytes] = field(default_factory=dict[str, bytes])
    status: int = 0

    async def request(self, method: str, path: str, body: bytes = b"") -> int:
        if self.status:
            return self.status
        if method == "PUT":
            self.objects[path] = body
            return 201
        return 404 if self.objects.pop(path, None) is None else 204


def operator_with(http: Http) -> Operator:
    @asynccontextmanager
    async def open_shared(_client: Client) -> AsyncGenerator[Store]:
        yield Store(http)

    return make_operator(open_shared)


def settings(color: str = "blue") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="settings"), data={"color": color})


def backup(bucket: str = "backups") -> Backup:
    return Backup.new("sample", BackupSpec(source="settings", bucket=bucket))


async def test_a_backup_follows_its_source_and_is_deleted_with_the_object(cluster: TestCluster) -> None:
    service = FakeService()
    async with cluster.operator(operator_with(service)):
        client = cluster.client()
        await client.create(backup())
        await cluster.settle()
        assert not is_ready(await client.get(Backup, "sample"))
        assert service.objects == {}

        await client.create(settings())
        await cluster.settle()
        stored = await client.get(Backup, "sample")
        assert is_ready(stored)
        assert stored.status.path == PATH
        assert service.objects == {PATH: b'{"color": "blue"}'}

        await client.patch(ConfigMap, "settings", {"data": {"color": "red"}})
        await cluster.settle()
        assert service.objects == {PATH: b'{"color": "red"}'}

        await client.delete(ConfigMap, "settings")
        await cluster.settle()
        assert service.objects == {PATH: b'{"color": "red"}'}, "the last copy is kept"

        await client.delete(Backup, "sample")
        await cluster.settle()
        assert service.objects == {}
        with pytest.raises(NotFound):
            await client.get(Backup, "sample")


async def test_an_object_stays_until_the_store_confirms_the_deletion(cluster: TestCluster) -> None:
    service = FakeService()
    async with cluster.operator(operator_with(service)):
        client = cluster.client()
        await client.create(settings())
        await client.create(backup())
        await cluster.settle()
        service.status = 503
        await client.delete(Backup, "sample")
        await asyncio.sleep(300)
        assert (await client.get(Backup, "sample")).metadata.deletion_timestamp is not None

        service.status = 0
        await asyncio.sleep(20)
        with pytest.raises(NotFound):
            await client.get(Backup, "sample")
        assert service.objects == {}


async def test_a_store_that_is_down_is_reported_and_tried_again(cluster: TestCluster) -> None:
    service = FakeService(status=503)
    async with cluster.operator(operator_with(service)):
        client = cluster.client()
        await client.create(settings())
        await client.create(backup())
        await asyncio.sleep(10)
        (ready,) = (await client.get(Backup, "sample")).status.conditions
        assert (ready.status, ready.reason) == ("False", "StoreUnavailable")
        assert ready.message == f"PUT {PATH}: HTTP status 503"

        service.status = 0
        await asyncio.sleep(20)
        assert is_ready(await client.get(Backup, "sample"))
        assert service.objects == {PATH: b'{"color": "blue"}'}


async def test_the_bucket_cannot_be_changed(cluster: TestCluster) -> None:
    async with cluster.operator(operator_with(FakeService())):
        client = cluster.client()
        await client.create(backup())
        with pytest.raises(Invalid, match=r"spec\.bucket"):
            await client.patch(Backup, "sample", {"spec": {"bucket": "other"}})


@simulate(operator_with, samples=[settings(), backup()], external=FakeService, seeds=20)
async def test_backups_under_faults(sim: Simulation[FakeService]) -> None:
    await sim.client.patch(ConfigMap, "settings", {"data": {"color": "red"}})
    await sim.settle()
    assert sim.external.objects == {PATH: b'{"color": "red"}'}
    await sim.client.delete(Backup, "sample")
    await sim.settle()
    assert sim.external.objects == {}


@pytest.mark.real_time
async def test_the_store_speaks_http() -> None:
    service = FakeService()

    async def handle(request: web.Request) -> web.Response:
        return web.Response(status=await service.request(request.method, request.path, await request.read()))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    async with open_store(f"http://127.0.0.1:{runner.addresses[0][1]}") as store:
        await store.put(PATH, b"content")
        assert service.objects == {PATH: b"content"}
        await store.delete(PATH)
        await store.delete(PATH)
        assert service.objects == {}
        service.status = 500
        with pytest.raises(StoreError, match="HTTP status 500"):
            await store.delete(PATH)
        await runner.cleanup()
        with pytest.raises(StoreError, match="PUT"):
            await store.put(PATH, b"content")
