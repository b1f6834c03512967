"""Each service gets its own cluster IP and node ports."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.wire.messages import Request
from konverge_cluster.api.status_errors import StatusError
from konverge_cluster.api.strategy import RequestContext
from konverge_cluster.builtins.addresses import StoredServiceIPs
from konverge_cluster.builtins.registration import builtin_strategies
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.storage import Entry, Storage

PATH = "/api/v1/namespaces/default/services"


async def request(server: EmbeddedServer, method: str, path: str, body: Any = None, query: Any = ()) -> Any:
    content = b"" if body is None else json.dumps(body).encode()
    response = await server.handle(Request(method, path, query=tuple(query), body=content))
    return json.loads(await response.read())


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def test_every_service_gets_its_own_address() -> None:
    server = EmbeddedServer()

    created = [await request(server, "POST", PATH, service(f"s{number}")) for number in range(20)]

    addresses = [each["spec"]["clusterIP"] for each in created]
    assert len({*addresses, "10.96.0.1"}) == 21
    assert all(each["spec"]["clusterIPs"] == [each["spec"]["clusterIP"]] for each in created)


async def test_an_address_can_be_requested_by_one_service_only() -> None:
    server = EmbeddedServer()
    await request(server, "POST", PATH, service("a", clusterIP="10.96.3.3"))

    rejected = await request(server, "POST", PATH, service("b", clusterIP="10.96.3.3"))

    assert rejected["message"].endswith("failed to allocate IP 10.96.3.3: provided IP is already allocated")


async def test_an_address_is_free_again_after_its_service_is_deleted() -> None:
    server = EmbeddedServer()
    await request(server, "POST", PATH, service("a", clusterIP="10.96.3.3", type="NodePort"))
    await request(server, "DELETE", f"{PATH}/a")

    created = await request(server, "POST", PATH, service("b", clusterIP="10.96.3.3"))

    assert created["spec"]["clusterIP"] == "10.96.3.3"


async def test_a_dry_run_allocates_nothing() -> None:
    server = EmbeddedServer()
    body = service("a", type="NodePort", ports=[{"port": 80, "nodePort": 30123}])
    await request(server, "POST", PATH, body, query=[("dryRun", "All")])

    created = await request(server, "POST", PATH, body)

    assert created["spec"]["ports"][0]["nodePort"] == 30123


async def test_a_node_port_belongs_to_one_service() -> None:
    server = EmbeddedServer()
    body = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30123}]}
    await request(server, "POST", PATH, service("a", **body))

    rejected = await request(server, "POST", PATH, service("b", **body))
    out_of_range = await request(
        server, "POST", PATH, service("c", type="NodePort", ports=[{"port": 80, "nodePort": 80}])
    )

    assert rejected["message"].endswith("Invalid value: 30123: provided port is already allocated")
    assert out_of_range["message"].endswith("The range of valid ports is 30000-32767")


async def test_ports_with_the_same_number_share_a_node_port() -> None:
    server = EmbeddedServer()
    ports = [{"name": "a", "port": 53}, {"name": "b", "port": 53, "protocol": "UDP"}, {"name": "c", "port": 80}]

    created = await request(server, "POST", PATH, service("dns", type="NodePort", ports=ports))

    first, second, third = (port["nodePort"] for port in created["spec"]["ports"])
    assert first == second != third


async def test_an_update_preserves_allocated_values_that_it_omits() -> None:
    server = EmbeddedServer()
    created = await request(server, "POST", PATH, service("a", type="NodePort"))

    updated = await request(server, "PUT", f"{PATH}/a", service("a", type="NodePort", selector={"a": "b"}))

    for field in ("clusterIP", "clusterIPs", "ports", "ipFamilies", "ipFamilyPolicy"):
        assert updated["spec"][field] == created["spec"][field]


def test_allocation_wraps_around_at_the_end_of_the_range() -> None:
    addresses = StoredServiceIPs(Storage(), "10.0.0.0/29")

    allocated = [addresses.next_address() for _ in range(6)]

    assert allocated == ["10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.2", "10.0.0.3", "10.0.0.4"]


def test_a_full_range_raises_a_lookup_error() -> None:
    storage = Storage()
    raw = json.dumps({"spec": {"clusterIPs": ["10.0.0.2"], "ports": []}}).encode()
    storage.put(storage.collection(("", "services")), Entry("default/a", raw, storage.next_revision, "u"))
    addresses = StoredServiceIPs(storage, "10.0.0.0/30")

    with pytest.raises(LookupError, match="range is full"):
        addresses.next_address()


def test_a_full_range_is_an_internal_error() -> None:
    class FullRange(StoredServiceIPs):
        def next_address(self) -> str:
            raise LookupError("range is full")

    strategies = builtin_strategies(FullRange(Storage()))
    services = next(each for each in strategies if each.info.kind.plural == "services")
    body = service("a", type="ClusterIP")

    with pytest.raises(StatusError, match='for Service "a": range is full'):
        services.prepare_create(body, RequestContext(now="2026-01-01T00:00:00Z", namespace="ns"))
