"""Request bodies in protobuf: stored like the same object in JSON, or rejected with the real server's texts."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.wire.messages import Request
from konverge_cluster.api.bodies import BodyDecodeError, ObjectDecodeError
from konverge_cluster.api.cluster import encode
from konverge_cluster.builtins.protobuf import read_protobuf
from konverge_cluster.embedded_server import EmbeddedServer
from protobuf_messages import enveloped, number, text

PROTOBUF = "application/vnd.kubernetes.protobuf"
NAMED = text(1, text(1, b"x"))


def read(api_version: str, kind: str, message: bytes) -> dict[str, Any]:
    return read_protobuf(enveloped(api_version, kind, message), "", "")


def test_a_custom_resource_definition_is_rejected() -> None:
    with pytest.raises(ObjectDecodeError, match="JSON or YAML only"):
        read("apiextensions.k8s.io/v1", "CustomResourceDefinition", NAMED)


@pytest.mark.parametrize(
    ("message", "reason"),
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
def test_an_invalid_object_is_rejected(message: bytes, reason: str) -> None:
    with pytest.raises(ObjectDecodeError, match=f"^{reason}$") as caught:
        read("v1", "ConfigMap", message)

    assert (caught.value.kind, caught.value.api_version) == ("ConfigMap", "v1")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "empty data"),
        (b"k8s\x00", "empty body"),
        (b"k8s\x00\xff", "unexpected EOF"),
    ],
)
def test_an_invalid_envelope_is_rejected_without_a_kind(body: bytes, reason: str) -> None:
    with pytest.raises(BodyDecodeError, match=f"^{reason}$") as caught:
        read_protobuf(body, "v1", "ConfigMap")

    assert not isinstance(caught.value, ObjectDecodeError)


async def test_an_object_in_protobuf_is_stored_like_the_same_object_in_json() -> None:
    server = EmbeddedServer()
    headers = {"content-type": PROTOBUF}
    path = "/api/v1/namespaces/default/configmaps"
    body = enveloped("v1", "ConfigMap", NAMED + text(2, text(1, b"k") + text(2, b"v")))

    created = await server.handle(Request("POST", path, headers=headers, body=body))
    found = await server.handle(Request("GET", f"{path}/x"))

    assert (created.status, found.status) == (201, 200)
    assert b'"data":{"k":"v"}' in await found.read()


async def test_a_custom_resource_in_protobuf_is_rejected() -> None:
    server = EmbeddedServer()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": "a.example", "scope": "Cluster", "names": names, "versions": [version]}
    document = {"metadata": {"name": "things.a.example"}, "spec": spec}
    created = await server.handle(Request("POST", path, body=encode(document)))
    assert created.status == 201

    body = enveloped("a.example/v1", "Thing", NAMED)
    response = await server.handle(
        Request("POST", "/apis/a.example/v1/things", headers={"content-type": PROTOBUF}, body=body)
    )

    assert response.status == 415
