"""T41 with a whole operator, on virtual time: etcd is restored under it, and it reports that and follows."""

from __future__ import annotations

import asyncio

import pytest

from gadgets import Gadget, gadget
from konverge import Client, Context, Manager, ObjectMeta, controller_for, crd_for
from konverge.client import ClientOptions, InProcessTransport
from konverge.errors import NotFound
from konverge.k8s.core.v1 import ConfigMap
from konverge.wire.messages import Request, Response
from konverge_cluster.embedded_server import EmbeddedServer
from stale_reads import StaleReads


@controller_for(Gadget).owns(ConfigMap)
async def gadgets(obj: Gadget, ctx: Context) -> None:
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=obj.name), data={"text": obj.spec.text}))


def client_of(server: EmbeddedServer) -> Client:
    return Client(InProcessTransport(server.handle), options=ClientOptions(namespace="default"))


async def server_with(text: str, *, versions: int = 0) -> EmbeddedServer:
    """Return a server with a Gadget, whose versions were increased by other writes."""
    server = EmbeddedServer(seed=versions)
    client = client_of(server)
    await client.create(crd_for(Gadget))
    await client.create(gadget("a", text=text))
    for number in range(versions):
        await client.create(ConfigMap(metadata=ObjectMeta(name=f"other-{number}", namespace="default")))
    return server


async def text_in(server: EmbeddedServer) -> str:
    try:
        return ((await client_of(server).get(ConfigMap, "a")).data or {})["text"]
    except NotFound:
        return ""


async def test_an_operator_reports_a_restored_etcd_and_reconciles_again_within_two_minutes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    servers = [await server_with("new", versions=100)]

    async def handle(request: Request) -> Response:
        return await servers[-1].handle(request)

    client = Client(StaleReads(InProcessTransport(handle)), options=ClientOptions(namespace="default"))
    manager = Manager(client, name="gadget-operator", namespaces=("default",))
    manager.add(gadgets)
    async with manager.running() as running:
        await asyncio.sleep(1)
        assert await text_in(servers[0]) == "new"

        servers.append(await server_with("old"))
        end, reports = asyncio.get_running_loop().time() + 120, set[str]()
        while not await text_in(servers[1]):
            assert asyncio.get_running_loop().time() < end
            reports.add(running.monitoring.health.ready().text())
            await asyncio.sleep(1)

        assert await text_in(servers[1]) == "old"
        assert any("Too large resource version" in report and "Gadget" in report for report in reports), reports
        assert "server history restarted: listing again" in caplog.messages
        await asyncio.sleep(120)
        assert running.monitoring.health.ready().text() == "ok"
