"""Services get addresses and node ports that nobody else has."""

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


async def ask(plane: EmbeddedServer, method: str, path: str, body: Any = None, query: Any = ()) -> Any:
    sent = b"" if body is None else json.dumps(body).encode()
    answer = await plane.handle(Request(method, path, query=tuple(query), body=sent))
    return json.loads(await answer.read())


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def test_every_service_gets_an_address_of_its_own() -> None:
    plane = EmbeddedServer()

    made = [await ask(plane, "POST", PATH, service(f"s{number}")) for number in range(20)]

    addresses = [each["spec"]["clusterIP"] for each in made]
    assert len({*addresses, "10.96.0.1"}) == 21
    assert all(each["spec"]["clusterIPs"] == [each["spec"]["clusterIP"]] for each in made)


async def test_an_address_can_be_chosen_once() -> None:
    plane = EmbeddedServer()
    await ask(plane, "POST", PATH, service("a", clusterIP="10.96.3.3"))

    refused = await ask(plane, "POST", PATH, service("b", clusterIP="10.96.3.3"))

    assert refused["message"].endswith("failed to allocate IP 10.96.3.3: provided IP is already allocated")


async def test_an_address_is_free_again_when_its_service_is_gone() -> None:
    plane = EmbeddedServer()
    await ask(plane, "POST", PATH, service("a", clusterIP="10.96.3.3", type="NodePort"))
    await ask(plane, "DELETE", f"{PATH}/a")

    made = await ask(plane, "POST", PATH, service("b", clusterIP="10.96.3.3"))

    assert made["spec"]["clusterIP"] == "10.96.3.3"


async def test_a_rehearsal_takes_nothing() -> None:
    plane = EmbeddedServer()
    wish = service("a", type="NodePort", ports=[{"port": 80, "nodePort": 30123}])
    await ask(plane, "POST", PATH, wish, query=[("dryRun", "All")])

    made = await ask(plane, "POST", PATH, wish)

    assert made["spec"]["ports"][0]["nodePort"] == 30123


async def test_a_node_port_belongs_to_one_service() -> None:
    plane = EmbeddedServer()
    wish = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30123}]}
    await ask(plane, "POST", PATH, service("a", **wish))

    refused = await ask(plane, "POST", PATH, service("b", **wish))
    outside = await ask(plane, "POST", PATH, service("c", type="NodePort", ports=[{"port": 80, "nodePort": 80}]))

    assert refused["message"].endswith("Invalid value: 30123: provided port is already allocated")
    assert outside["message"].endswith("The range of valid ports is 30000-32767")


async def test_ports_of_one_number_share_a_node_port() -> None:
    plane = EmbeddedServer()
    ports = [{"name": "a", "port": 53}, {"name": "b", "port": 53, "protocol": "UDP"}, {"name": "c", "port": 80}]

    made = await ask(plane, "POST", PATH, service("dns", type="NodePort", ports=ports))

    first, second, third = (port["nodePort"] for port in made["spec"]["ports"])
    assert first == second != third


async def test_an_update_keeps_what_it_does_not_mention() -> None:
    plane = EmbeddedServer()
    made = await ask(plane, "POST", PATH, service("a", type="NodePort"))

    changed = await ask(plane, "PUT", f"{PATH}/a", service("a", type="NodePort", selector={"a": "b"}))

    for field in ("clusterIP", "clusterIPs", "ports", "ipFamilies", "ipFamilyPolicy"):
        assert changed["spec"][field] == made["spec"][field]


def test_a_small_range_is_used_to_its_end_and_from_its_start() -> None:
    addresses = StoredServiceIPs(Storage(), "10.0.0.0/29")

    given = [addresses.next_address() for _ in range(6)]

    assert given == ["10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.2", "10.0.0.3", "10.0.0.4"]


def test_a_range_without_a_free_address_says_so() -> None:
    storage = Storage()
    raw = json.dumps({"spec": {"clusterIPs": ["10.0.0.2"], "ports": []}}).encode()
    storage.put(storage.collection(("", "services")), Entry("default/a", raw, storage.next_revision, "u"))
    addresses = StoredServiceIPs(storage, "10.0.0.0/30")

    with pytest.raises(LookupError, match="range is full"):
        addresses.next_address()


def test_a_service_without_an_address_is_the_servers_failure() -> None:
    class Spent(StoredServiceIPs):
        def next_address(self) -> str:
            raise LookupError("range is full")

    strategies = builtin_strategies(Spent(Storage()))
    services = next(each for each in strategies if each.info.kind.plural == "services")
    wish = service("a", type="ClusterIP")

    with pytest.raises(StatusError, match='for Service "a": range is full'):
        services.prepare_create(wish, RequestContext(now="2026-01-01T00:00:00Z", namespace="ns"))
