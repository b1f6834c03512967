"""Invalid, huge, deeply nested and wrongly typed input: the right error, and nothing is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.testing.virtual_time import run_in_virtual_time
from virtual_server import CONFIG_MAPS, VirtualTimeServer, config_map

MERGE = "application/merge-patch+json"
PATCHES = [
    MERGE,
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
]
DEEP = b'{"metadata":{"name":"x"},"data":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001


@pytest.mark.parametrize(
    ("body", "content_type", "code"),
    [
        (b"\x00\xff\xfe", "application/json", 400),
        (b"", "application/json", 400),
        (b"{" * 1000, "application/json", 400),
        (DEEP, "application/json", 400),
        (DEEP, "application/yaml", 400),
        (b'{"metadata":{"name":"x"},"data":{"a":"' + b"x" * 3_145_728 + b'"}}', "application/json", 413),
        (b"a: &a [*a]", "application/yaml", 400),
        (b"\t- :", "application/yaml", 400),
        (b"!!python/object/apply:os.system ['true']", "application/yaml", 400),
        (b"k8s\x00\x01", "application/vnd.kubernetes.protobuf", 400),
        (b"k8s\x00" + b"\x0a\xff\xff\xff\xff\x0f", "application/vnd.kubernetes.protobuf", 400),
        (b"k8s\x00" + b"\x12\x00" * 10, "application/vnd.kubernetes.protobuf", 422),
        (b'{"metadata":{"name":"x"}}', "application/cbor", 415),
    ],
)
async def test_an_undecodable_body_is_rejected(body: bytes, content_type: str, code: int) -> None:
    plane = VirtualTimeServer()
    version = plane.server.cluster.storage.revision

    response = await plane.send("POST", CONFIG_MAPS, body, content_type=content_type)

    status = json.loads(await response.read())
    assert (response.status, status["kind"], status["status"]) == (code, "Status", "Failure")
    assert plane.server.cluster.storage.revision == version


@pytest.mark.parametrize("kind", PATCHES)
@pytest.mark.parametrize("body", [b"\xff", b"", b"1", b'"x"', b"[[]]", b"{" * 300, DEEP, b"null"])
async def test_an_invalid_patch_is_rejected(kind: str, body: bytes) -> None:
    plane = VirtualTimeServer()
    await plane.good("POST", CONFIG_MAPS, config_map("a"))
    version = plane.server.cluster.storage.revision

    response = await plane.send("PATCH", f"{CONFIG_MAPS}/a?fieldManager=m", body, content_type=kind)

    assert response.status in ((400, 422) if body != b"null" else (200, 400, 422, 500))
    assert plane.server.cluster.storage.revision == version


@pytest.mark.parametrize(
    "path",
    [
        "/api",
        "//",
        "/api//",
        "/api/v1//",
        "/api/v1/namespaces//configmaps",
        "/api/v1/namespaces/default/configmaps/",
        "/api/v1/namespaces/default/configmaps/../secrets",
        "/api/v1/namespaces/default/configmaps/" + "x" * 5000,
        "/apis/" + "/".join("x" * 50),
        "/api/v1/watch",
        "/api/v1/watch/",
        "/openapi/v3/../../etc/passwd",
        "/\x00",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PATCH", "WEIRD"])
async def test_a_malformed_path_gets_a_response(path: str, method: str) -> None:
    plane = VirtualTimeServer()
    version = plane.server.cluster.storage.revision

    response = await plane.send(method, path)
    await response.close()

    assert response.status < 500
    assert plane.server.cluster.storage.revision == version


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "name", "labels"]), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = ["name", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "managedFields", "generation"]
NAMES += [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generateName",
]
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.dictionaries(st.sampled_from(NAMES), JSON_VALUES, max_size=4) | JSON_VALUES,
        "data": JSON_VALUES,
        "spec": JSON_VALUES,
        "kind": JSON_VALUES,
        "apiVersion": JSON_VALUES,
    },
)
PLANE = VirtualTimeServer()


@settings(max_examples=150, deadline=None)
@given(OBJECTS, st.sampled_from(["configmaps", "pods", "services"]))
def test_values_of_any_type_anywhere_never_break_the_server(body: Any, plural: str) -> None:
    code, found = run_in_virtual_time(PLANE.request("POST", f"/api/v1/namespaces/default/{plural}?dryRun=All", body))

    assert code < 500 or "reason" not in found, found


@settings(max_examples=150, deadline=None)
@given(OBJECTS, st.sampled_from(PATCHES[:1] + PATCHES[2:]))
def test_patches_of_any_shape_never_break_the_server(patch: Any, kind: str) -> None:
    path = "/api/v1/namespaces/default/services/kubernetes?dryRun=All&fieldManager=m"
    code, found = run_in_virtual_time(PLANE.request("PATCH", path, patch, content_type=kind))

    assert code < 500 or "reason" not in found, found
