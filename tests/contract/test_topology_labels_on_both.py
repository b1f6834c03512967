"""Topology labels: a pod that is assigned to a node gets the same zone and region labels on both servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from two_servers import Api

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
PLACE = {ZONE: "z1", REGION: "r1", "topology.kubernetes.io/rack": "k1", "failure-domain.beta.kubernetes.io/zone": "z0"}


@pytest.fixture
def node(both: tuple[Api, Api]) -> Iterator[str]:
    """A node of the same name on both, which is in a place."""
    name = f"node-of-{both[1].namespace}"
    for api in both:
        made = api.request("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": PLACE}})
        assert made.status == 201, made.body
    yield name
    both[1].request("DELETE", f"/api/v1/nodes/{name}")


def pod(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": containers, **spec}}


def place(api: Api, made: dict[str, Any], node: str, *, old: bool = False, **metadata: Any) -> Any:
    """Create a pod and bind it; give the labels that it has then."""
    pods, name = f"/api/v1/namespaces/{api.namespace}/pods", made["metadata"]["name"]
    created = api.request("POST", pods, made)
    assert created.status == 201, created.body
    binding = {"metadata": {"name": name, **metadata}, "target": {"kind": "Node", "name": node}}
    path = f"/api/v1/namespaces/{api.namespace}/bindings" if old else f"{pods}/{name}/binding"
    answer = api.request("POST", path, {"apiVersion": "v1", "kind": "Binding", **binding})
    assert answer.status == 201, answer.body
    return api.request("GET", f"{pods}/{name}").json()["metadata"].get("labels")


def test_a_bound_pod_gets_the_topology_labels_and_those_of_its_binding(both: tuple[Api, Api], node: str) -> None:
    words = {"from": "binding", "app": "bound", REGION: "other"}
    ours, theirs = (
        {
            "plain": place(api, pod("plain"), node),
            "own": place(api, pod("own", {ZONE: "mine", "app": "web"}), node),
            "told": place(api, pod("told", {"app": "web"}), node, labels=words, annotations={"a": "1"}),
            "old way": place(api, pod("old"), node, old=True),
            "old way, told": place(api, pod("old-told"), node, old=True, labels=words),
            "nowhere": place(api, pod("nowhere"), "no-such-node"),
        }
        for api in both
    )
    assert ours == theirs
    assert ours["own"] == {"app": "web", ZONE: "z1", REGION: "r1"}


def test_a_pod_created_with_a_node_gets_the_topology_labels(both: tuple[Api, Api], node: str) -> None:
    wishes = (
        pod("plain", nodeName=node),
        pod("own", {ZONE: "mine"}, nodeName=node),
        pod("nowhere", nodeName="no-such-node"),
    )
    ours, theirs = ([api.make("pods", wish)["metadata"].get("labels") for wish in wishes] for api in both)
    assert ours == theirs == [{ZONE: "z1", REGION: "r1"}, {ZONE: "z1", REGION: "r1"}, None]
