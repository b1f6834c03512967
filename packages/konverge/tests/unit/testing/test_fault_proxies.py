"""The proxies between a client and a server, on sockets."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from konverge.client import Client, RetryPolicy, StaticCredentials
from konverge.errors import NotFound, TransportError, Unauthorized
from konverge.objects import Unstructured
from konverge.testing.fault_proxy import FaultProxy
from konverge.testing.faults import (
    Fault,
    any_request,
    connection_refused,
    connection_reset,
    lists,
    status_response,
    watches,
)
from konverge.testing.raw_proxy import RawProxy
from konverge.wire import WatchOptions
from konverge_cluster.embedded_server import EmbeddedServer
from rigs import CONFIG_MAP, embedded_config

pytestmark = pytest.mark.real_time

ONCE = RetryPolicy(attempts=1)


@asynccontextmanager
async def proxied(retry: RetryPolicy | None = None) -> AsyncIterator[tuple[FaultProxy, Client]]:
    """Yield a client that is connected to an embedded server through an HTTP proxy."""
    async with (
        EmbeddedServer() as plane,
        FaultProxy(embedded_config(plane)) as proxy,
        Client.connect(proxy.config, retry=retry) as client,
    ):
        yield proxy, client


@asynccontextmanager
async def tcp_proxied() -> AsyncIterator[tuple[RawProxy, Client]]:
    """Yield a client that is connected to an embedded server through a TCP proxy."""
    async with (
        EmbeddedServer() as plane,
        RawProxy(embedded_config(plane)) as proxy,
        Client.connect(proxy.config, retry=ONCE) as client,
    ):
        yield proxy, client


def config_map(name: str) -> Unstructured:
    return Unstructured(apiVersion="v1", kind="ConfigMap", metadata={"name": name, "namespace": "default"})


async def test_without_a_rule_every_verb_works_through_the_proxy() -> None:
    async with proxied() as (proxy, client):
        await client.create(config_map("a"))
        await client.patch(CONFIG_MAP, "a", {"data": {"x": "é" * 1000}}, namespace="default")
        assert (await client.get(CONFIG_MAP, "a"))["data"] == {"x": "é" * 1000}
        assert [each.name for each in await client.list(CONFIG_MAP, labels="a!=b,c notin (d, e)")] == ["a"]
        await client.delete(CONFIG_MAP, "a")
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAP, "a")

    assert [request.method for request in proxy.script.log if request.path.endswith("configmaps/a")] == [
        "PATCH",
        "GET",
        "DELETE",
        "GET",
    ]
    assert len(proxy.connections) <= 2


async def test_a_watch_is_forwarded_as_it_comes() -> None:
    options = WatchOptions(bookmarks=False)
    async with proxied() as (_, client), await client.collection(CONFIG_MAP).watch(options) as response:
        assert response.status == 200, "headers come before the first event"
        await client.create(config_map("a"))
        async for chunk in response.chunks():
            assert b'"ADDED"' in chunk
            break


async def test_a_client_that_goes_away_ends_the_watch_at_the_server() -> None:
    async with proxied() as (proxy, client):
        async with await client.collection(CONFIG_MAP).watch(WatchOptions()):
            assert proxy.traffic.streams == 1
        async with asyncio.timeout(5):
            while proxy.traffic.streams:  # noqa: ASYNC110 - the other end of a socket has no event
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("fault", [connection_refused(), connection_reset(after=10)])
async def test_a_broken_connection_is_one_on_the_wire(fault: Fault) -> None:
    async with proxied(ONCE) as (proxy, client):
        proxy.script.add(lists("configmaps"), fault, times=1)
        with pytest.raises(TransportError):
            await client.list(CONFIG_MAP)
        assert await client.list(CONFIG_MAP) == []


async def test_a_server_can_go_away_and_come_back_on_its_port() -> None:
    async with proxied(ONCE) as (proxy, client):
        async with await client.collection(CONFIG_MAP).watch(WatchOptions()) as response:
            await proxy.stop_listening()
            with pytest.raises(TransportError):
                await response.read()
        with pytest.raises(TransportError, match="refused"):
            await client.list(CONFIG_MAP)
        await proxy.start_listening()
        assert await client.list(CONFIG_MAP) == []


async def test_requests_with_credentials_of_their_own_keep_them() -> None:
    async with proxied() as (proxy, _):
        config = dataclasses.replace(proxy.config, credentials=StaticCredentials.of_token("wrong"))
        async with Client.connect(config) as client:
            with pytest.raises(Unauthorized):
                await client.list(CONFIG_MAP)


async def test_statuses_come_through_the_proxy() -> None:
    async with proxied() as (proxy, client):
        proxy.script.add(watches(), status_response(401, reason="Unauthorized"))
        with pytest.raises(Unauthorized):
            await client.collection(CONFIG_MAP).watch(WatchOptions())


async def test_a_proxy_that_is_not_running_is_an_error() -> None:
    async with EmbeddedServer() as plane:
        with pytest.raises(RuntimeError, match="async with FaultProxy"):
            _ = FaultProxy(embedded_config(plane)).traffic


async def test_a_paused_connection_stays_open_without_data_while_new_ones_work() -> None:
    async with tcp_proxied() as (proxy, client):
        await asyncio.gather(client.list(CONFIG_MAP), client.list(CONFIG_MAP))  # a connection each
        async with await client.collection(CONFIG_MAP).watch(WatchOptions(bookmarks=False)) as response:
            assert proxy.pause() == 2
            async with Client.connect(proxy.config) as other:
                await other.create(config_map("a"))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await anext(aiter(response.chunks()))
            assert proxy.open >= 2
        with pytest.raises(TransportError, match="no response"):
            await client.using(timeout=0.2).list(CONFIG_MAP)
        assert len(await client.list(CONFIG_MAP)) == 1, "on a new connection"


async def test_what_was_held_back_comes_after_a_thaw() -> None:
    async with tcp_proxied() as (proxy, client):
        await client.list(CONFIG_MAP)
        proxy.pause()
        late = asyncio.create_task(client.list(CONFIG_MAP))
        await asyncio.sleep(0.1)
        assert not late.done()
        proxy.resume()

        assert await late == []


async def test_connections_can_be_reset_and_rejected() -> None:
    async with tcp_proxied() as (proxy, client):
        async with await client.collection(CONFIG_MAP).watch(WatchOptions()) as response:
            assert proxy.reset() == 1
            with pytest.raises(TransportError):
                await response.read()
        proxy.reject()
        with pytest.raises(TransportError):
            await client.list(CONFIG_MAP)
        proxy.reject(False)
        assert await client.list(CONFIG_MAP) == []
        assert len(proxy.connections) == 3


async def test_nothing_is_logged_of_a_proxy_that_is_only_passed_through() -> None:
    async with proxied() as (proxy, client):
        await asyncio.gather(*(client.list(CONFIG_MAP) for _ in range(20)))

    assert len(proxy.script.requests(any_request)) == 20
