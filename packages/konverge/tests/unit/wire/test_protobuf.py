"""Protobuf decodes into the same document as JSON; invalid bytes raise an error with a path."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.errors import DecodeError
from konverge.wire.protobuf import ProtobufDecoder, ProtobufError
from protobuf_messages import enveloped, number, text

NAMED = text(1, text(1, b"x"))


def decode(api_version: str, kind: str, message: bytes) -> dict[str, Any]:
    document = ProtobufDecoder().decode(enveloped(api_version, kind, message))
    assert (document.pop("apiVersion"), document.pop("kind")) == (api_version, kind)
    return document


def test_empty_strings_and_zeros_are_omitted_where_go_omits_them() -> None:
    metadata = text(1, b"x") + text(2, b"") + number(7, 0) + text(8, b"")

    assert decode("v1", "ConfigMap", text(1, metadata)) == {"metadata": {"name": "x"}}


def test_a_zero_that_a_pointer_holds_is_kept() -> None:
    spec = number(1, 0) + number(6, 0)

    assert decode("apps/v1", "Deployment", text(2, spec)) == {"spec": {"replicas": 0, "revisionHistoryLimit": 0}}


def test_fields_of_embedded_structs_are_inlined() -> None:
    volume = text(1, b"data") + text(2, text(2, b""))
    pod = text(2, text(1, volume))

    assert decode("v1", "Pod", pod) == {"spec": {"volumes": [{"name": "data", "emptyDir": {}}]}}


def test_maps_hold_strings_and_bytes() -> None:
    assert decode("v1", "ConfigMap", text(2, text(1, b"k") + text(2, b"v")) + text(2, text(1, b"empty"))) == {
        "data": {"k": "v", "empty": ""}
    }
    assert decode("v1", "Secret", text(2, text(1, b"k") + text(2, b"\xff\x00"))) == {"data": {"k": "/wA="}}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (number(1, 0) + number(2, 80) + text(3, b""), 80),
        (number(1, 0) + number(2, -1), -1),
        (number(1, 1) + number(2, 0) + text(3, b"http"), "http"),
        (b"", 0),
    ],
)
def test_a_port_is_a_number_or_a_name(message: bytes, expected: int | str) -> None:
    port = number(3, 80) + text(4, message)

    assert decode("v1", "Service", text(2, text(1, port))) == {
        "spec": {"ports": [{"port": 80, "targetPort": expected}]}
    }


def test_quantities_are_strings() -> None:
    hard = text(1, text(1, b"pods") + text(2, text(1, b"2"))) + text(1, text(1, b"cpu") + text(2, b""))

    assert decode("v1", "ResourceQuota", text(2, hard)) == {"spec": {"hard": {"pods": "2", "cpu": "0"}}}


def test_times_are_whole_seconds_or_microseconds() -> None:
    moment = number(1, 1_767_225_600) + number(2, 123_456_789)

    assert decode("v1", "ConfigMap", text(1, text(9, moment))) == {
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    }
    assert decode("coordination.k8s.io/v1", "Lease", text(2, text(3, moment))) == {
        "spec": {"acquireTime": "2026-01-01T00:00:00.123456Z"}
    }


def test_json_inside_a_message_is_decoded() -> None:
    entry = text(1, b"m") + text(7, text(1, b'{"f:data":{}}'))

    assert decode("v1", "ConfigMap", text(1, text(17, entry))) == {
        "metadata": {"managedFields": [{"manager": "m", "fieldsV1": {"f:data": {}}}]}
    }
    assert decode("apps/v1", "ControllerRevision", text(2, text(1, b'{"a":[1]}')) + number(3, 4)) == {
        "data": {"a": [1]},
        "revision": 4,
    }


def test_delete_options_are_decoded_in_every_group() -> None:
    options = number(1, 0) + text(2, text(1, b"u")) + text(4, b"Orphan") + text(5, b"All")

    for api_version in ("v1", "apps/v1", "policy/v1"):
        assert decode(api_version, "DeleteOptions", options) == {
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u"},
            "propagationPolicy": "Orphan",
            "dryRun": ["All"],
        }


def test_an_unknown_kind_decodes_into_its_type_only() -> None:
    assert decode("v1", "Bogus", NAMED) == {}


def test_the_default_kind_applies_where_the_envelope_has_none() -> None:
    document = ProtobufDecoder().decode(enveloped("", "", NAMED), "v1", "ConfigMap")

    assert document == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}


def test_a_custom_resource_definition_is_rejected() -> None:
    with pytest.raises(ProtobufError, match="JSON or YAML only"):
        decode("apiextensions.k8s.io/v1", "CustomResourceDefinition", NAMED)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "empty data"),
        (b"k8s\x00", "empty body"),
        (b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b"k8s\x00\xff", "unexpected EOF"),
        (b"k8s\x00" + number(1, 5), "proto: wrong wireType = 0"),
    ],
)
def test_an_invalid_envelope_is_an_error_without_a_kind(body: bytes, reason: str) -> None:
    with pytest.raises(ProtobufError) as caught:
        ProtobufDecoder().decode(body, "v1", "ConfigMap")

    assert (caught.value.reason, caught.value.kind) == (reason, "")
    assert str(caught.value) == f"decode protobuf: {reason}"


@pytest.mark.parametrize(
    ("message", "reason", "path"),
    [
        (b"\x0a\xff", "unexpected EOF", ""),
        (b"\xff" * 12, "proto: integer overflow", ""),
        (number(1, 5), "proto: wrong wireType = 0 for field Metadata", ".metadata"),
        (text(4, b"x"), "proto: wrong wireType = 2 for field Immutable", ".immutable"),
        (b"\x0b", "proto: illegal wireType 3", ""),
        (text(1, text(9, number(1, 2**62))), "a time that is out of range", ".metadata.deletionTimestamp"),
        (text(1, number(2, 1)), "proto: wrong wireType = 0 for field GenerateName", ".metadata.generateName"),
    ],
)
def test_an_invalid_object_is_an_error_with_kind_and_path(message: bytes, reason: str, path: str) -> None:
    with pytest.raises(ProtobufError) as caught:
        decode("v1", "ConfigMap", message)

    error = caught.value
    assert (error.reason, error.path, error.kind, error.api_version) == (reason, path, "ConfigMap", "v1")
    assert str(error) == f"decode ConfigMap: {reason}" + (f", at {path}" if path else "")


def test_invalid_json_inside_a_message_is_an_error_with_a_path() -> None:
    with pytest.raises(DecodeError, match=r"at \.metadata\.managedFields\.fieldsV1$"):
        decode("v1", "ConfigMap", text(1, text(17, text(7, text(1, b"{")))))


@settings(max_examples=200, deadline=None)
@given(message=st.binary(max_size=60), kind=st.sampled_from(["v1/Pod", "apps/v1/Deployment", "v1/Event"]))
def test_arbitrary_bytes_raise_nothing_but_a_decode_error(message: bytes, kind: str) -> None:
    api_version, _, name = kind.rpartition("/")
    for body in (enveloped(api_version, name, message), b"k8s\x00" + message):
        with contextlib.suppress(DecodeError):
            ProtobufDecoder().decode(body, api_version, name)


def test_importing_the_framework_does_not_import_the_decoder() -> None:
    program = "import sys, konverge, konverge.wire; sys.exit('konverge.wire.protobuf' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
