"""Protobuf of the real server decodes into the same document as its JSON; both servers reject the same bytes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from builtin_cases import Case, cases, masked, merged, tables
from konverge_cluster.builtins.protobuf import read_protobuf
from protobuf_messages import enveloped, text
from two_servers import Api, RealApi
from two_servers import masked as without_volatile

PROTOBUF = "application/vnd.kubernetes.protobuf"
CONFIG_MAP = text(1, text(1, b"x"))


def _in_protobuf(value: Any, *, inner: bool = False) -> Any:
    """Return the part of a document that protobuf can express: no nulls, and no kinds of nested objects."""
    if isinstance(value, dict):
        omitted = ("apiVersion", "kind") if inner and "metadata" in value else ()
        present = {key: each for key, each in value.items() if each is not None and key not in omitted}
        return {key: _in_protobuf(each, inner=True) for key, each in present.items()}
    return [_in_protobuf(each, inner=True) for each in value] if isinstance(value, list) else value


def _created(api: Api, case: Case, accept: str) -> Any:
    """Create an object in a dry run; return the masked result, or None if it is rejected."""
    path = case.path.replace("{namespace}", api.namespace)
    valid = json.loads(json.dumps(case.valid).replace("{namespace}", api.namespace))
    reply = api.request("POST", f"{path}?dryRun=All", merged(valid, case.change), accept=accept)
    if reply.status != 201:
        return None
    if accept == PROTOBUF:
        reply = replace(reply, body=json.dumps(read_protobuf(reply.body, "", "")).encode())
    return _in_protobuf(masked(reply, api.namespace)["body"])


# Schemas cannot be decoded from protobuf, and all cases of CertificateSigningRequest are rejected.
@pytest.mark.parametrize("kind", sorted(tables().keys() - {"CustomResourceDefinition", "CertificateSigningRequest"}))
def test_objects_decode_into_the_same_document_as_json(real_api: RealApi, kind: str) -> None:
    valid = Case(kind, "create", "valid", tables()[kind]["path"], tables()[kind]["valid"], {})
    count = 0

    for case in (valid, *(each for each in cases(kind) if each.verb == "create")):
        decoded = _created(real_api, case, PROTOBUF)
        count += decoded is not None
        assert decoded == _created(real_api, case, "application/json"), case.title
    assert count


BODIES = {
    "no magic": b"\x00\x01",
    "nothing": b"",
    "magic only": b"k8s\x00",
    "an envelope that is cut": b"k8s\x00\xff\xff\xff",
    "a message that is cut": enveloped("v1", "ConfigMap", b"\x0a\xff"),
    "an endless number": enveloped("v1", "ConfigMap", b"\xff" * 12),
    "another kind": enveloped("v1", "Secret", CONFIG_MAP),
    "an unknown kind": enveloped("v1", "Bogus", CONFIG_MAP),
    "an unknown version": enveloped("v9", "ConfigMap", CONFIG_MAP),
    "no kind": enveloped("", "", CONFIG_MAP),
    "an unknown field": enveloped("v1", "ConfigMap", CONFIG_MAP + b"\x78\x01"),
    "a map with half an entry": enveloped("v1", "ConfigMap", CONFIG_MAP + text(2, text(1, b"k"))),
    "a false that is set": enveloped("v1", "ConfigMap", CONFIG_MAP + b"\x20\x00"),
    "JSON": b'{"metadata":{"name":"x"}}',
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_both_servers_accept_and_reject_the_same_bytes(both: tuple[Api, Api], method: str, name: str) -> None:
    responses = []
    for api in both:
        api.make("configmaps", {"metadata": {"name": "x"}})
        path = api.at("configmaps", "" if method == "POST" else "x")
        reply = api.request(method, f"{path}?dryRun=All", BODIES[name], content_type=PROTOBUF)
        responses.append((reply.status, without_volatile(reply.json())))

    assert responses[0] == responses[1]
