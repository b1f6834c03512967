"""Which endpoints get the connections of a Service, and where it listens."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import IPv4Network
from typing import Any

import pytest

from konverge.client import Client, InProcessTransport
from konverge.errors import Invalid
from konverge.k8s.core.v1 import ObjectReference
from konverge.k8s.discovery.v1 import Endpoint, EndpointConditions, EndpointPort, EndpointSlice
from konverge.objects import Key, ObjectMeta, Unstructured
from konverge_cluster import EmbeddedCluster
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.processes.forwarders import listening_socket
from konverge_cluster.processes.service_proxy import ServiceProxy, backends_of

SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"ports": [{"name": "web", "port": 80}]},
}
SLICE: dict[str, Any] = {
    "apiVersion": "discovery.k8s.io/v1",
    "kind": "EndpointSlice",
    "metadata": {"name": "web", "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}},
    "addressType": "IPv4",
    "endpoints": [{"addresses": ["192.0.2.1"]}],
    "ports": [{"name": "web", "port": 80}],
}


def endpoint(address: str, *, ready: bool | None, serving: bool = True, terminating: bool = False) -> Endpoint:
    conditions = EndpointConditions(ready=ready, serving=serving, terminating=terminating)
    return Endpoint(addresses=[address], conditions=conditions, target_ref=ObjectReference(kind="Pod", name="p"))


def endpoint_slice(*endpoints: Endpoint, port: int | None = 80) -> EndpointSlice:
    ports = [EndpointPort(name="web", port=port), EndpointPort(name="other", port=9)]
    metadata = ObjectMeta(name="s", labels={"kubernetes.io/service-name": "web"})
    return EndpointSlice(metadata=metadata, address_type="IPv4", endpoints=list(endpoints), ports=ports)


def test_ready_endpoints_of_all_slices_are_backends() -> None:
    unready = endpoint("127.1.0.3", ready=False, serving=False)
    slices = [
        endpoint_slice(endpoint("127.1.0.2", ready=True), unready),
        endpoint_slice(endpoint("127.1.0.4", ready=None), port=81),
    ]

    assert backends_of(slices, "web") == [("127.1.0.2", 80), ("127.1.0.4", 81)]


def test_terminating_endpoints_that_serve_are_used_if_none_is_ready() -> None:
    leaving = endpoint("127.1.0.2", ready=False, terminating=True)
    ended = endpoint("127.1.0.3", ready=False, serving=False, terminating=True)

    assert backends_of([endpoint_slice(leaving, ended)], "web") == [("127.1.0.2", 80)]
    assert backends_of([endpoint_slice(leaving, endpoint("127.1.0.4", ready=True))], "web") == [("127.1.0.4", 80)]


def test_simulated_pods_and_slices_without_a_port_are_left_out() -> None:
    assert backends_of([endpoint_slice(endpoint("10.64.0.2", ready=True))], "web") == []
    assert backends_of([endpoint_slice(endpoint("127.1.0.2", ready=True), port=None)], "web") == []


def listen_unprivileged(host: str, port: int) -> socket.socket:
    """Listen as a user without the right to bind low ports."""
    if 0 < port < 1024:
        raise PermissionError(13, "Permission denied")
    return listening_socket(host, port)


@pytest.mark.real_time
async def test_without_the_right_to_bind_a_low_port_a_high_one_is_used_and_stays() -> None:
    proxy = ServiceProxy([], listen=listen_unprivileged)
    async with EmbeddedCluster(nodes=0) as cluster:
        cluster.server.use_loopback_services(IPv4Network("127.200.128.0/17"))
        client = cluster.client()
        service = await client.create(Unstructured(SERVICE))
        host, key = service["spec"]["clusterIP"], Key("default", "web")
        async with proxy.running(client):
            await client.create(Unstructured(SLICE))
            first = (await moved(proxy, key, listens=True))[host, 80]
            await client.delete(await client.get("endpointslices", "web"))
            assert await moved(proxy, key, listens=False) == {}
            await client.create(Unstructured(SLICE))
            assert await moved(proxy, key, listens=True) == {(host, 80): first}
            async with asyncio.timeout(30):
                while not (events := await client.list("events", namespace="default")):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)

    assert first[1] >= 1024
    text = f"cannot listen on {host}:80 ([Errno 13] Permission denied): use {host}:{first[1]} instead"
    assert [(one["reason"], one["message"]) for one in events] == [("PortReplaced", text)]


async def moved(proxy: ServiceProxy, key: Key, *, listens: bool) -> dict[tuple[str, int], tuple[str, int]]:
    async with asyncio.timeout(30):
        while bool(proxy.addresses(key)) != listens:  # noqa: ASYNC110 - a socket has no event for this
            await asyncio.sleep(0.02)
    return dict(proxy.addresses(key))


@pytest.mark.parametrize("kind", ["EndpointSlice", "Endpoints"])
@pytest.mark.parametrize("loopback", [False, True])
async def test_only_a_cluster_with_process_nodes_accepts_loopback_endpoints(kind: str, *, loopback: bool) -> None:
    server = EmbeddedServer()
    if loopback:
        server.use_loopback_services(IPv4Network("127.200.128.0/17"))
    client = Client(InProcessTransport(server.handle))
    obj = {**SLICE, "endpoints": [{"addresses": ["127.64.0.2"]}]}
    if kind == "Endpoints":
        subsets = [{"addresses": [{"ip": "127.64.0.2"}], "ports": [{"port": 80}]}]
        obj = {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": "web", "namespace": "default"},
            "subsets": subsets,
        }

    if loopback:
        assert (await client.create(Unstructured(obj))).name == "web"
    else:
        with pytest.raises(Invalid, match="loopback range"):
            await client.create(Unstructured(obj))
