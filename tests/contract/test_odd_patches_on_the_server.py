"""Invalid patches on a real API server and with the patch engines: the same errors with the same texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from konverge.testing import ControlPlane
from patch_writes import Json, PatchedResource, Server, Write, applied, compared, created, entry
from patched_resources import config_maps_on, deployments_on, things_on


@pytest.fixture(scope="module")
def server(control_plane: ControlPlane) -> Iterator[Server]:
    made = Server(control_plane)
    yield made
    made.close()


@pytest.fixture(scope="module")
def deployments(server: Server) -> PatchedResource:
    return deployments_on(server)


@pytest.fixture(scope="module")
def config_maps(server: Server) -> PatchedResource:
    return config_maps_on(server)


@pytest.fixture(scope="module")
def things(server: Server) -> PatchedResource:
    return things_on(server)


def template(**spec: Any) -> Json:
    return {"spec": {"template": {"spec": spec}}}


@pytest.mark.parametrize(
    "desired",
    [
        {"spec": {"bogus": 1}},
        {"bogus": {"a": 1}},
        {"metadata": {"bogus": 1}},
        {"spec": {"replicas": "3"}},
        {"spec": {"replicas": True}},
        {"spec": {"paused": "yes"}},
        {"spec": []},
        {"spec": "x"},
        {"spec": {"template": [1, "a", None]}},
        {"spec": {"strategy": {"type": 1}}},
        {"spec": {"strategy": {"type": {"a": ["b", 1.5, False]}}}},
        {"spec": {"strategy": {"rollingUpdate": {"maxSurge": {"a": 1}}}}},
        {"metadata": {"labels": {"a": 1}}},
        {"metadata": {"labels": "a"}},
        {"metadata": {"finalizers": ["a", "a"]}},
        {"metadata": {"finalizers": [{"a": 1}]}},
        {"metadata": {"finalizers": [None]}},
        {"metadata": {"finalizers": [["a"]]}},
        {"metadata": {"finalizers": {"a": 1}}},
        {"metadata": {"ownerReferences": [{"name": "a"}]}},
        {"metadata": {"creationTimestamp": None}},
        template(containers={"name": "a"}),
        template(containers=[{"name": "a"}, {"name": "a", "image": "b"}]),
        template(containers=[{"name": "a", "env": [{"name": "A"}, {"name": "A"}]}]),
        template(containers=[{"name": "a", "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}]}]),
        template(containers=[{"name": "a", "ports": [{}]}]),
        template(containers=[{"name": "a", "ports": [None]}]),
        template(containers=[{"name": "a", "ports": ["x"]}]),
        template(containers=[{"name": "a", "args": [1]}]),
        template(containers=[{"name": "a", "resources": {"limits": {"cpu": [1]}}}]),
        template(containers=[{"name": "a", "volumeMounts": [{"name": "v"}]}]),
        template(containers=[{"image": "b"}]),
        template(topologySpreadConstraints=[{"maxSkew": 1}]),
        template(hostAliases=[{"hostnames": ["a"]}]),
        {"metadata": {"managedFields": []}},
        {"metadata": {"managedFields": [entry("a", {})]}},
        {"metadata": {"managedFields": None}},
        {"kind": "Bogus"},
        {"kind": ""},
        {"apiVersion": "apps/v9"},
        {"apiVersion": ""},
        {"apiVersion": "v1"},
        {"apiVersion": "", "kind": ""},
    ],
)
def test_an_invalid_configuration_is_rejected_with_the_same_text(deployments: PatchedResource, desired: Json) -> None:
    base = deployments.fresh()
    write = applied(deployments, base["metadata"]["name"], desired)
    compared(deployments, None, write)
    live = compared(deployments, None, Write("POST", "m2", base, deployments.resource_paths[0]))
    compared(deployments, live, write)


@pytest.mark.parametrize(
    "desired",
    [
        {"spec": {"bogus": 1}},
        {"spec": {"items": [{"name": "a", "bogus": 1}]}},
        {"spec": {"items": [{"value": "1"}]}},
        {"spec": {"items": [{"name": None}]}},
        {"spec": {"ports": [{"protocol": "UDP"}]}},
        {"spec": {"ports": [{"port": 1}, {"port": 1.0}]}},
        {"spec": {"numbers": [1, 1.0]}},
        {"spec": {"tags": ["x", 1]}},
        {"spec": {"amount": [1]}},
        {"spec": {"amount": {"a": 1}}},
        {"spec": {"structs": {"a": 1}}},
        {"spec": {"embedded": {"bogus": {"a": 1}, "metadata": {"bogus": 1}}}},
        {"spec": {"name": None}},
        {"spec": None},
        {"status": {"bogus": 1}},
    ],
)
def test_an_invalid_custom_resource_is_rejected_with_the_same_text(things: PatchedResource, desired: Json) -> None:
    base = things.fresh()
    live = compared(things, None, Write("POST", "m2", base, things.resource_paths[0]))
    compared(things, live, applied(things, base["metadata"]["name"], desired))


@pytest.mark.parametrize(
    ("how", "body"),
    [
        ("json", {"op": "x"}),
        ("json", "x"),
        ("json", 1),
        ("json", True),
        ("json", None),
        ("json", []),
        ("json", [None]),
        ("json", [1]),
        ("json", ["x"]),
        ("json", [[]]),
        ("json", [{}]),
        ("json", [{"op": 1, "path": "/data/a"}]),
        ("json", [{"op": "add", "path": 1}]),
        ("json", [{"op": "move", "path": "/data/a", "from": ["x"]}]),
        ("json", [{"op": "add", "path": None, "value": "1"}]),
        ("json", [{"op": "add", "path": "", "value": "1"}]),
        ("json", [{"op": "replace", "path": "", "value": "1"}]),
        ("json", [{"op": "add", "path": "data/z", "value": {"a": "1"}}]),
        ("json", [{"op": "replace", "path": "/data/new", "value": "1"}]),
        ("json", [{"op": "copy", "from": "/data/nowhere", "path": "/data/a"}]),
        ("json", [{"op": "move", "from": "/data/nowhere", "path": "/data/a"}]),
        ("json", [{"op": "test", "path": "/data/nowhere", "value": None}]),
        ("json", [{"op": "test", "path": "/data/nowhere"}]),
        ("json", [{"op": "test", "path": "/nowhere/nowhere"}]),
        ("json", [{"op": "add", "path": "/data/a"}]),
        ("json", [{"op": "remove", "path": "/metadata/finalizers/-2"}]),
        ("json", [{"op": "add", "path": "/metadata/finalizers/-1", "value": "ex.io/z"}]),
        ("json", [{"op": "add", "path": "/metadata/finalizers/+1", "value": "ex.io/z"}]),
        ("json", [{"op": "add", "path": "/metadata/finalizers/01", "value": "ex.io/z"}]),
        ("json", [{"op": "add", "path": "/metadata/finalizers/2", "value": "ex.io/z"}]),
        ("json", [{"op": "add", "path": "/metadata/finalizers/3", "value": "ex.io/z"}]),
        ("json", [{"op": "add", "path": "/metadata/finalizers/ 1", "value": "ex.io/z"}]),
        ("json", [{"op": "replace", "path": "/metadata/finalizers/-", "value": "ex.io/z"}]),
        ("json", [{"op": "test", "path": "/data", "value": {"b": "1", "a": "1"}}]),
        ("json", [{"op": "test", "path": "/metadata/finalizers", "value": ["ex.io/a", "ex.io/b"]}]),
        ("json", [{"op": "add", "path": "/metadata/annotations/a~1b~0c", "value": "1"}]),
        ("json", [{"op": "copy", "from": "/data", "path": "/binaryData"}, {"op": "remove", "path": "/binaryData/a"}]),
        ("json", [{"op": "test", "path": "/data/a", "value": "1"}] * 10_001),
        ("merge", None),
        ("merge", []),
        ("merge", "x"),
        ("merge", 1),
        ("merge", {"data": None}),
        ("merge", {"data": "x"}),
        ("merge", {"data": {"a": None, "c": "1"}}),
        ("merge", {"immutable": False, "metadata": {"annotations": {"a": None}}}),
        ("strategic", None),
        ("strategic", []),
        ("strategic", "x"),
        ("strategic", {"$patch": "merge"}),
        ("strategic", {"$patch": 1}),
        ("strategic", {"$patch": None}),
        ("strategic", {"data": {"$patch": "replace", "z": "1"}}),
        ("strategic", {"data": {"$patch": "delete"}}),
        ("strategic", {"data": {"$patch": "bogus", "z": None}}),
        ("strategic", {"binaryData": {"$patch": "replace", "z": "AA=="}}),
        ("strategic", {"data": {"$retainKeys": ["a"]}}),
        ("strategic", {"data": {"$retainKeys": ["a", "c"], "c": "1"}}),
        ("strategic", {"data": {"$retainKeys": ["a"], "c": "1"}}),
        ("strategic", {"data": {"$retainKeys": "a"}}),
        ("strategic", {"metadata": {"$deleteFromPrimitiveList/finalizers": None}}),
        ("strategic", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["ex.io/a"]}}),
        ("strategic", {"metadata": {"$deleteFromPrimitiveList/finalizers": "ex.io/a"}}),
        ("strategic", {"metadata": {"$deleteFromPrimitiveList/finalizers": [1]}}),
        ("strategic", {"metadata": {"$deleteFromPrimitiveList": ["ex.io/a"]}}),
        ("strategic", {"metadata": {"$deleteFromPrimitiveListX/finalizers": ["ex.io/a"]}}),
        ("strategic", {"metadata": {"$deleteFromPrimitiveList/bogus": ["ex.io/a"]}}),
        ("strategic", {"metadata": {"$setElementOrder/finalizers": ["ex.io/b", "ex.io/a"]}}),
        ("strategic", {"metadata": {"$setElementOrder/finalizers": "x"}}),
        ("strategic", {"metadata": {"$setElementOrder": ["x"]}}),
        ("strategic", {"metadata": {"$setElementOrder/bogus": ["x"]}}),
        ("strategic", {"metadata": {"$setElementOrder/labels": ["x"]}}),
        ("strategic", {"metadata": {"$setElementOrder/ownerReferences": [{"uid": "x"}]}}),
        ("strategic", {"metadata": {"finalizers": [1]}}),
        ("strategic", {"metadata": {"finalizers": [["x"]]}}),
        ("strategic", {"metadata": {"FINALIZERS": ["ex.io/c"]}}),
        ("strategic", {"metadata": {"ownerReferences": [{"name": "x"}]}}),
        ("strategic", {"data": {"a": {"b": "c"}}}),
        ("strategic", {"data": {"a": ["b"]}}),
    ],
)
def test_unusual_patches_have_the_same_result(config_maps: PatchedResource, how: str, body: Any) -> None:
    finalizers = {"metadata": {"finalizers": ["ex.io/a", "ex.io/b"]}, "data": {"a": "1", "b": "1"}}
    live = created(config_maps, finalizers)
    compared(config_maps, live, Write(how, "m2", body, config_maps.resource_paths[0]))


@pytest.mark.parametrize(
    "body",
    [
        template(containers=[{"image": "x"}]),
        template(containers=[{"$patch": "delete"}]),
        template(containers=[{"name": "a", "$patch": "merge"}]),
        template(containers=[{"name": "a", "$patch": "bogus", "tty": None}]),
        template(containers=[{"name": "a"}, "x"]),
        template(containers=[{"name": "z", "image": "i", "env": [{"name": "A", "$patch": "delete"}, {"name": "B"}]}]),
        template(containers=[{"name": "z", "image": "i", "env": [{"name": "A", "value": None}]}]),
        template(containers=[{"$patch": "replace"}, {"name": "z", "image": "i"}]),
        template(containers=[{"name": "a", "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}]}]),
        template(**{"$setElementOrder/containers": [{"image": "x"}]}),
        template(**{"$setElementOrder/containers": ["x"]}),
        template(**{"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}),
        template(**{"$setElementOrder/restartPolicy": [{"name": "b"}]}),
        template(tolerations=[{"key": "a", "$patch": "delete"}]),
        {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
        {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}},
        {"spec": {"selector": {"$patch": "replace", "matchLabels": {"app": "x"}}}},
        {"spec": {"$patch": "delete"}},
        {"spec": {"template": {"$patch": "replace"}}},
        {"$patch": "replace"},
        {"$patch": "delete"},
    ],
)
def test_unusual_strategic_patches_of_pods_have_the_same_result(deployments: PatchedResource, body: Json) -> None:
    live = created(
        deployments, {"spec": {"template": {"spec": {"containers": [{"name": n, "image": "i"} for n in "ab"]}}}}
    )
    compared(deployments, live, Write("strategic", "m2", body, deployments.resource_paths[0]))
