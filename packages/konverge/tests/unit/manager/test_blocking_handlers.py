"""A handler that blocks the main loop does not cost the lease, whichever way the manager got its client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from konverge import Client, Context, Manager, ObjectMeta, controller_for, load_config
from konverge.client import ClientConfig, InProcessTransport
from konverge.k8s.coordination.v1 import Lease
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager import LeaderElection
from konverge.manager.background import background
from konverge.manager.lease_thread import LeaseThread
from konverge_cluster.embedded_server import EmbeddedServer

LIMIT = 30.0
RENEWALS = 3


@asynccontextmanager
async def server_in_a_thread(folder: Path) -> AsyncGenerator[tuple[ClientConfig, LeaseThread]]:
    """Serve in a thread of its own, so that it answers while the main loop is blocked."""
    async with LeaseThread("server") as thread:
        server = EmbeddedServer()
        await thread.call(server.__aenter__)
        try:
            server.write_kubeconfig(folder / "kubeconfig")
            yield load_config(kubeconfig=folder / "kubeconfig", environ={}), thread
        finally:
            await thread.call(lambda: server.__aexit__(None, None, None))


async def count_renewals(config: ClientConfig, blocked: threading.Event, renewed: threading.Event) -> None:
    """Set `renewed` when the lease was renewed several times while the handler was blocked."""
    seen = set()
    async with Client.connect(config) as client:
        async for event in client.watch(Lease, namespace="default"):
            if blocked.is_set() and event.object.spec is not None:
                seen.add(event.object.spec.renew_time)
            if len(seen) > RENEWALS:
                renewed.set()
                return


@pytest.mark.real_time(limit=120)
@pytest.mark.parametrize("supplies_client", [True, False], ids=["Manager(client)", "Manager(config)"])
async def test_a_blocking_handler_does_not_lose_the_lease(supplies_client: bool, tmp_path: Path) -> None:
    blocked, renewed, was_renewed = threading.Event(), threading.Event(), asyncio.Event()

    async def block(obj: ConfigMap, ctx: Context) -> None:
        blocked.set()
        if renewed.wait(LIMIT):  # blocks the main loop
            await ctx.client.patch(ConfigMap, obj.name, {"data": {"renewed": "true"}}, namespace=obj.namespace)
            was_renewed.set()

    async with server_in_a_thread(tmp_path) as (config, thread):
        election = LeaderElection("blocking", "default", retry_period=0.1)
        client = Client.connect(config)
        manager = Manager(client if supplies_client else config, name="blocking", leader_election=election)
        manager.add(controller_for(ConfigMap).build(block))
        async with client, background(thread.call(lambda: count_renewals(config, blocked, renewed))):
            await client.create(ConfigMap(metadata=ObjectMeta(name="slow", namespace="default")))
            async with manager.running() as running:
                async with asyncio.timeout(2 * LIMIT):
                    await was_renewed.wait()
                lease = await client.get(Lease, "blocking", namespace="default")

    assert not running.lost_reason
    assert lease.spec is not None
    assert lease.spec.holder_identity == election.identity
    assert not lease.spec.lease_transitions


@pytest.mark.real_time(limit=60)
async def test_a_client_over_sockets_has_a_copy_for_another_loop(tmp_path: Path) -> None:
    async with EmbeddedServer() as server, LeaseThread() as thread:
        server.write_kubeconfig(tmp_path / "kubeconfig")
        config = load_config(kubeconfig=tmp_path / "kubeconfig", environ={})
        async with Client.connect(config).using(namespace="kube-system", timeout=7.0) as client:
            await client.list(ConfigMap)
            copied = client.with_new_transport()
            assert copied is not None
            assert copied.options == client.options

            async def list_there() -> int:
                async with copied:
                    return len(await copied.list(ConfigMap))

            await thread.call(list_there)
            await client.list(ConfigMap)  # its own connections are still open


async def test_a_client_of_a_server_on_the_same_loop_has_no_copy() -> None:
    assert Client(InProcessTransport(EmbeddedServer().handle)).with_new_transport() is None
