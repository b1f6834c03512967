"""Endpoints of services, in slices and in Endpoints."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.k8s.core.v1 import EndpointAddress, EndpointSubset, Node, Pod, Service
from konverge.k8s.discovery.v1 import EndpointSlice
from konverge.objects import from_wire
from konverge_cluster.workloads.services.endpoints import (
    addresses_of,
    endpoint_of,
    families_of,
    has_address,
    port_of,
    ports_of,
)
from konverge_cluster.workloads.services.slices import Changes, required_changes
from konverge_cluster.workloads.services.subsets import labels_of, subsets_of, truncate
from konverge_cluster.workloads.services.trigger_times import CHANGED, TriggerTimeTracker, annotate
from workload_objects import NOW, at, metadata, owned_by, pod, service

HTTP = {"name": "http", "port": 80, "targetPort": 8080}


def backend(name: str, ip: str = "10.1.0.1", *, ready: Any = True, **more: Any) -> Pod:
    return pod(name, ready=ready, status={"podIP": ip, "podIPs": [{"ip": ip}]}, **more)


def described(one: Pod, web: Service, **options: Any) -> tuple[Any, ...]:
    endpoint = endpoint_of(one, web, family="IPv4", node=options.get("node"))
    conditions = endpoint.conditions
    assert conditions is not None
    return conditions.ready, conditions.serving, conditions.terminating


def test_an_endpoint_says_whether_it_is_ready_serving_and_terminating() -> None:
    web, open_to_all = service(HTTP), service(HTTP, publishNotReadyAddresses=True)
    ready, unready, leaving = backend("a"), backend("b", ready=False), backend("c", deleting=NOW)
    assert [described(one, web) for one in (ready, unready, leaving)] == [
        (True, True, False),
        (False, False, False),
        (False, True, True),
    ]
    assert [described(one, open_to_all)[0] for one in (ready, unready, leaving)] == [True, True, True]


def test_an_endpoint_knows_its_pod_node_zone_and_name() -> None:
    node = from_wire(Node, {"metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z1"}}})
    one = backend("a", spec={"hostname": "db-0", "subdomain": "web"})
    endpoint = endpoint_of(one, service(HTTP), family="IPv4", node=node)
    assert (endpoint.addresses, endpoint.node_name, endpoint.zone) == (["10.1.0.1"], "n1", "z1")
    assert endpoint.hostname == "db-0"
    assert endpoint.target_ref is not None
    assert (endpoint.target_ref.kind, endpoint.target_ref.name, endpoint.target_ref.uid) == ("Pod", "a", "uid-a")
    elsewhere = backend("b", spec={"hostname": "db-0", "subdomain": "other"})
    assert endpoint_of(elsewhere, service(HTTP), family="IPv4", node=None).hostname is None


def test_a_pod_without_an_address_or_a_finished_one_is_no_endpoint() -> None:
    assert not has_address(pod("a"), with_terminating=True)
    assert not has_address(backend("a", phase="Failed"), with_terminating=True)
    leaving = backend("a", deleting=NOW)
    assert (has_address(leaving, with_terminating=True), has_address(leaving, with_terminating=False)) == (True, False)


def test_addresses_are_separated_by_family() -> None:
    both = pod("a", status={"podIPs": [{"ip": "10.1.0.1"}, {"ip": "fd00:0::1"}]})
    assert (addresses_of(both, "IPv4"), addresses_of(both, "IPv6")) == (["10.1.0.1"], ["fd00::1"])


@pytest.mark.parametrize(
    ("spec", "families"),
    [
        ({"ipFamilies": ["IPv6"]}, ["IPv6"]),
        ({"ipFamilies": [], "clusterIP": "fd00::1"}, ["IPv6"]),
        ({"ipFamilies": [], "clusterIP": "10.0.0.1"}, ["IPv4"]),
        ({"ipFamilies": [], "clusterIP": "None"}, ["IPv4", "IPv6"]),
    ],
)
def test_the_families_are_those_of_the_service(spec: dict[str, Any], families: list[str]) -> None:
    assert families_of(service(HTTP, **spec)) == families


def test_a_port_by_name_is_the_one_of_the_container_with_the_same_protocol() -> None:
    def container(name: str, number: int, protocol: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "ports": [{"name": "web", "containerPort": number, "protocol": protocol}], **more}

    one = pod(
        "a",
        spec={
            "initContainers": [container("i", 1, "TCP"), container("s", 2, "SCTP", restartPolicy="Always")],
            "containers": [container("u", 3, "UDP"), container("t", 4, "TCP")],
        },
    )
    ports = [{"name": p.lower(), "port": 80, "targetPort": "web", "protocol": p} for p in ("TCP", "UDP", "SCTP")]
    web = service(*ports, {"name": "x", "port": 81, "targetPort": "none"}, {"name": "y", "port": 82})
    assert [port_of(one, port) for port in web.spec.ports] == [4, 3, 2, None, 82]
    assert [port.name for port in ports_of(one, web)] == ["tcp", "udp", "sctp", "y"]


# Slices


def changes(web: Service, pods: list[Pod], slices: list[EndpointSlice]) -> Changes:
    desired = [(ports_of(one, web), endpoint_of(one, web, family="IPv4", node=None)) for one in pods]
    return required_changes(web, "IPv4", desired=desired, slices=slices)


def stored(web: Service, pods: list[Pod], slices: list[EndpointSlice]) -> tuple[list[EndpointSlice], int]:
    """Apply changes as a server would; return the slices, and the number of writes."""
    made = changes(web, pods, slices)
    found = {one.name: one for one in slices}
    for one in made.delete:
        del found[one.name]
    for one in made.update:
        found[one.name] = one
    for one in made.create:
        assert one.metadata.generate_name == "web-"
        one.metadata.name = f"web-{len(found)}-{id(one)}"
        found[one.name] = one
    return list(found.values()), len(made.create) + len(made.update) + len(made.delete)


def names(slices: list[EndpointSlice]) -> list[str]:
    return sorted(endpoint.target_ref.name or "" for one in slices for endpoint in one.endpoints if endpoint.target_ref)


def test_a_service_without_pods_has_one_empty_slice() -> None:
    slices, writes = stored(service(HTTP), [], [])
    assert (len(slices), writes, slices[0].ports, slices[0].endpoints) == (1, 1, [], [])
    assert slices[0].metadata.labels == {
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert stored(service(HTTP), [], slices) == (slices, 0)


def test_the_empty_slice_becomes_the_first_one_and_back() -> None:
    web = service(HTTP, labels={"team": "shop"}, clusterIP="None")
    empty, _ = stored(web, [], [])
    assert empty[0].metadata.labels["service.kubernetes.io/headless"] == ""
    filled, writes = stored(web, [backend("a")], empty)
    assert (names(filled), writes, filled[0].name) == (["a"], 1, empty[0].name)
    assert [(port.name, port.port) for port in filled[0].ports] == [("http", 8080)]
    emptied, writes = stored(web, [], filled)
    assert (names(emptied), writes, emptied[0].name) == ([], 1, empty[0].name)


def test_pods_with_other_ports_have_other_slices() -> None:
    web = service({"name": "http", "port": 80, "targetPort": "web"})
    containers = [{"name": "c", "ports": [{"name": "web", "containerPort": 9090, "protocol": "TCP"}]}]
    other = backend("b", "10.1.0.2", spec={"containers": containers})
    slices, _ = stored(web, [backend("a"), other], [])
    assert sorted((len(one.ports), names([one])) for one in slices) == [(0, ["a"]), (1, ["b"])]


def test_a_slice_of_an_earlier_service_of_the_same_name_is_deleted() -> None:
    web = service(HTTP)
    slices, _ = stored(web, [backend("a")], [])
    again = service(HTTP)
    again.metadata.uid = "another"
    made = changes(again, [backend("a")], slices)
    assert (len(made.create), len(made.update), made.delete) == (1, 0, slices)


def test_labels_of_the_service_are_copied_except_reserved_ones() -> None:
    slices, _ = stored(service(HTTP), [backend("a")], [])
    web = service(HTTP, labels={"team": "shop", "kubernetes.io/service-name": "no"})
    relabelled, writes = stored(web, [backend("a")], slices)
    assert writes == 1
    assert relabelled[0].metadata.labels["team"] == "shop"
    assert relabelled[0].metadata.labels["kubernetes.io/service-name"] == "web"


def test_new_endpoints_fill_a_slice_with_room_before_a_new_slice_is_created() -> None:
    web = service(HTTP)
    many = [backend(f"p{i}", f"10.1.1.{i}") for i in range(150)]
    slices, writes = stored(web, many, [])
    assert (sorted(len(one.endpoints) for one in slices), writes) == ([50, 100], 2)
    more, writes = stored(web, [*many, backend("x", "10.1.2.1")], slices)
    assert (sorted(len(one.endpoints) for one in more), writes) == ([51, 100], 1)


@settings(max_examples=60)
@given(st.lists(st.sets(st.integers(0, 240), max_size=240), min_size=1, max_size=4), st.booleans())
def test_slices_have_exactly_the_pods_and_a_second_pass_writes_nothing(rounds: list[set[int]], ready: bool) -> None:
    web = service(HTTP)
    slices: list[EndpointSlice] = []
    for numbers in rounds:
        pods = [backend(f"p{i}", f"10.1.3.{i}", ready=ready) for i in sorted(numbers)]
        slices, _ = stored(web, pods, slices)
        assert names(slices) == sorted(one.name for one in pods)
        assert all(len(one.endpoints) <= 100 for one in slices)
        assert slices
        assert stored(web, pods, slices) == (slices, 0)


# Endpoints


def grouped(subsets: list[EndpointSubset]) -> list[tuple[list[str], list[str], list[str | None]]]:
    return [
        (
            [one.ip for one in subset.addresses],
            [one.ip for one in subset.not_ready_addresses],
            [port.name for port in subset.ports],
        )
        for subset in subsets
    ]


def test_addresses_are_grouped_by_the_ports_that_they_offer() -> None:
    web = service(HTTP, {"name": "extra", "port": 81, "targetPort": "extra"})
    containers = [{"name": "c", "ports": [{"name": "extra", "containerPort": 9, "protocol": "TCP"}]}]
    pods = [
        backend("a", "10.1.0.1"),
        backend("b", "10.1.0.2", spec={"containers": containers}),
        backend("c", "10.1.0.3", ready=False),
        backend("d", "10.1.0.4", deleting=NOW),
    ]
    assert grouped(subsets_of(web, pods)) == [
        (["10.1.0.2"], [], ["extra"]),
        (["10.1.0.1", "10.1.0.2"], ["10.1.0.3"], ["http"]),
    ]


def test_a_service_may_publish_what_is_not_ready() -> None:
    web = service(HTTP, publishNotReadyAddresses=True)
    pods = [backend("a", ready=False), backend("b", "10.1.0.2", deleting=NOW)]
    assert grouped(subsets_of(web, pods)) == [(["10.1.0.1", "10.1.0.2"], [], ["http"])]


def test_a_headless_service_may_have_no_ports() -> None:
    assert grouped(subsets_of(service(clusterIP="None"), [backend("a")])) == [(["10.1.0.1"], [], [])]
    assert subsets_of(service(), [backend("a")]) == []


def test_labels_of_endpoints() -> None:
    web = service(HTTP, labels={"team": "shop"}, clusterIP="None")
    assert labels_of(web) == {
        "team": "shop",
        "service.kubernetes.io/headless": "",
        "endpoints.kubernetes.io/managed-by": "endpoint-controller",
    }


def test_beyond_a_thousand_ready_addresses_stay_first() -> None:
    def subset(ready: int, waiting: int) -> EndpointSubset:
        return EndpointSubset(
            addresses=[EndpointAddress(ip=str(i)) for i in range(ready)],
            not_ready_addresses=[EndpointAddress(ip=str(i)) for i in range(waiting)],
        )

    def cut(*subsets: EndpointSubset) -> tuple[list[tuple[int, int]], bool]:
        found, was_cut = truncate(subsets)
        return [(len(one.addresses), len(one.not_ready_addresses)) for one in found], was_cut

    assert cut(subset(600, 400)) == ([(600, 400)], False)
    assert cut(subset(600, 600)) == ([(600, 400)], True)
    assert cut(subset(1500, 9), subset(500, 0)) == ([(750, 0), (250, 0)], True)


# Trigger times


def test_the_trigger_time_is_that_of_the_changed_pod() -> None:
    times, web = TriggerTimeTracker(), service(HTTP)
    assert times.last_change(web, [backend("a", ready=at(-50))]) == at(-3600)
    assert times.last_change(web, [backend("a", ready=at(-50))]) is None
    assert times.last_change(web, [backend("a", ready=at(-9)), backend("b", ready=at(-7))]) == at(-9)
    times.forget(web.key)
    assert times.last_change(web, []) == at(-3600)


def test_the_annotation_is_formatted_as_in_go() -> None:
    assert annotate({"x": "y", CHANGED: "old"}, at(0.5)) == {"x": "y", CHANGED: "2026-01-01T12:00:00.5Z"}
    assert annotate({CHANGED: "old"}, NOW) == {CHANGED: "2026-01-01T12:00:00Z"}
    assert annotate({CHANGED: "old"}, None) == {}


def test_a_slice_of_another_owner_is_deleted() -> None:
    web = service(HTTP)
    wire = {"metadata": metadata("web-x", ownerReferences=owned_by(backend("p"))), "addressType": "IPv4"}
    foreign = from_wire(EndpointSlice, wire)
    assert changes(web, [], [foreign]).delete == [foreign]
