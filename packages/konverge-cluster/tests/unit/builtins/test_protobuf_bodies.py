"""Bodies in protobuf: they become the JSON that says the same, and bytes that are none are refused."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.wire.messages import Request
from konverge_cluster.api.bodies import BadObject, BadText
from konverge_cluster.api.cluster import encode
from konverge_cluster.builtins.protobuf import read_protobuf
from konverge_cluster.embedded_server import EmbeddedServer
from messages import enveloped, number, text

PROTOBUF = "application/vnd.kubernetes.protobuf"
NAMED = text(1, text(1, b"x"))


def read(api_version: str, kind: str, message: bytes) -> dict[str, Any]:
    document = read_protobuf(enveloped(api_version, kind, message), "", "")
    assert (document.pop("apiVersion"), document.pop("kind")) == (api_version, kind)
    return document


def test_empty_texts_and_numbers_are_left_out_where_go_leaves_them_out() -> None:
    metadata = text(1, b"x") + text(2, b"") + number(7, 0) + text(8, b"")

    assert read("v1", "ConfigMap", text(1, metadata)) == {"metadata": {"name": "x"}}


def test_a_zero_that_a_pointer_holds_is_kept() -> None:
    spec = number(1, 0) + number(6, 0)

    assert read("apps/v1", "Deployment", text(2, spec)) == {"spec": {"replicas": 0, "revisionHistoryLimit": 0}}


def test_fields_of_embedded_structs_come_one_level_higher() -> None:
    volume = text(1, b"data") + text(2, text(2, b""))
    pod = text(2, text(1, volume))

    assert read("v1", "Pod", pod) == {"spec": {"volumes": [{"name": "data", "emptyDir": {}}]}}


def test_maps_hold_texts_and_bytes() -> None:
    assert read("v1", "ConfigMap", text(2, text(1, b"k") + text(2, b"v")) + text(2, text(1, b"empty"))) == {
        "data": {"k": "v", "empty": ""}
    }
    assert read("v1", "Secret", text(2, text(1, b"k") + text(2, b"\xff\x00"))) == {"data": {"k": "/wA="}}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (number(1, 0) + number(2, 80) + text(3, b""), 80),
        (number(1, 0) + number(2, -1), -1),
        (number(1, 1) + number(2, 0) + text(3, b"http"), "http"),
        (b"", 0),
    ],
)
def test_a_port_is_a_number_or_a_name(said: bytes, meant: int | str) -> None:
    port = number(3, 80) + text(4, said)

    assert read("v1", "Service", text(2, text(1, port))) == {"spec": {"ports": [{"port": 80, "targetPort": meant}]}}


def test_quantities_are_texts() -> None:
    hard = text(1, text(1, b"pods") + text(2, text(1, b"2"))) + text(1, text(1, b"cpu") + text(2, b""))

    assert read("v1", "ResourceQuota", text(2, hard)) == {"spec": {"hard": {"pods": "2", "cpu": "0"}}}


def test_times_are_whole_seconds_or_microseconds() -> None:
    moment = number(1, 1_767_225_600) + number(2, 123_456_789)

    assert read("v1", "ConfigMap", text(1, text(9, moment))) == {
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    }
    assert read("coordination.k8s.io/v1", "Lease", text(2, text(3, moment))) == {
        "spec": {"acquireTime": "2026-01-01T00:00:00.123456Z"}
    }


def test_json_inside_of_a_message_is_part_of_the_object() -> None:
    entry = text(1, b"m") + text(7, text(1, b'{"f:data":{}}'))

    assert read("v1", "ConfigMap", text(1, text(17, entry))) == {
        "metadata": {"managedFields": [{"manager": "m", "fieldsV1": {"f:data": {}}}]}
    }
    assert read("apps/v1", "ControllerRevision", text(2, text(1, b'{"a":[1]}')) + number(3, 4)) == {
        "data": {"a": [1]},
        "revision": 4,
    }


def test_options_of_a_deletion_are_read_in_every_group() -> None:
    options = number(1, 0) + text(2, text(1, b"u")) + text(4, b"Orphan") + text(5, b"All")

    for api_version in ("v1", "apps/v1", "policy/v1"):
        assert read(api_version, "DeleteOptions", options) == {
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u"},
            "propagationPolicy": "Orphan",
            "dryRun": ["All"],
        }


def test_a_kind_that_is_not_known_is_only_named() -> None:
    assert read("v1", "Bogus", NAMED) == {}


def test_a_definition_of_custom_resources_is_refused() -> None:
    with pytest.raises(BadObject, match="JSON or YAML only"):
        read("apiextensions.k8s.io/v1", "CustomResourceDefinition", NAMED)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"\x0a\xff", "unexpected EOF"),
        (b"\xff" * 12, "proto: integer overflow"),
        (number(1, 5), "proto: wrong wireType = 0 for field Metadata"),
        (text(4, b"x"), "proto: wrong wireType = 2 for field Immutable"),
        (b"\x0b", "proto: illegal wireType 3"),
        (text(1, text(9, number(1, 2**62))), "a time that is out of range"),
        (text(1, text(17, text(7, text(1, b"{")))), "unexpected end of JSON input"),
    ],
)
def test_an_object_that_cannot_be_read_is_refused(message: bytes, why: str) -> None:
    with pytest.raises(BadObject, match=f"^{why}$") as caught:
        read("v1", "ConfigMap", message)

    assert (caught.value.kind, caught.value.api_version) == ("ConfigMap", "v1")


@settings(max_examples=200, deadline=None)
@given(message=st.binary(max_size=60), kind=st.sampled_from(["v1/Pod", "apps/v1/Deployment", "v1/Event"]))
def test_no_bytes_upset_the_reader(message: bytes, kind: str) -> None:
    api_version, _, name = kind.rpartition("/")
    for body in (enveloped(api_version, name, message), b"k8s\x00" + message):
        with contextlib.suppress(BadText):
            read_protobuf(body, api_version, name)


async def test_an_object_in_protobuf_is_stored_as_the_same_in_json() -> None:
    server = EmbeddedServer()
    headers = {"content-type": PROTOBUF}
    path = "/api/v1/namespaces/default/configmaps"
    body = enveloped("v1", "ConfigMap", NAMED + text(2, text(1, b"k") + text(2, b"v")))

    made = await server.handle(Request("POST", path, headers=headers, body=body))
    found = await server.handle(Request("GET", f"{path}/x"))

    assert (made.status, found.status) == (201, 200)
    assert b'"data":{"k":"v"}' in await found.read()


async def test_a_custom_resource_does_not_come_in_protobuf() -> None:
    server = EmbeddedServer()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": "a.example", "scope": "Cluster", "names": names, "versions": [version]}
    document = {"metadata": {"name": "things.a.example"}, "spec": spec}
    made = await server.handle(Request("POST", path, body=encode(document)))
    assert made.status == 201

    body = enveloped("a.example/v1", "Thing", NAMED)
    told = await server.handle(
        Request("POST", "/apis/a.example/v1/things", headers={"content-type": PROTOBUF}, body=body)
    )

    assert told.status == 415
