"""Protobuf: what the real server writes is read here as the JSON that it writes, and bad bytes are refused alike."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from builtin_cases import Case, cases, masked, merged, tables
from konverge_cluster.builtins.protobuf import read_protobuf
from protobuf_messages import enveloped, text
from two_servers import Api, RealApi
from two_servers import masked as without_chance

PROTOBUF = "application/vnd.kubernetes.protobuf"
CONFIG_MAP = text(1, text(1, b"x"))


def _in_protobuf(value: Any, *, inner: bool = False) -> Any:
    """What of a document can be said in protobuf: no nulls, and no kind of an object inside of another."""
    if isinstance(value, dict):
        unsaid = ("apiVersion", "kind") if inner and "metadata" in value else ()
        said = {key: each for key, each in value.items() if each is not None and key not in unsaid}
        return {key: _in_protobuf(each, inner=True) for key, each in said.items()}
    return [_in_protobuf(each, inner=True) for each in value] if isinstance(value, list) else value


def _created(api: Api, case: Case, accept: str) -> Any:
    """What would become of an object, masked; None when it is refused."""
    path = case.path.replace("{namespace}", api.namespace)
    sound = json.loads(json.dumps(case.sound).replace("{namespace}", api.namespace))
    reply = api.ask("POST", f"{path}?dryRun=All", merged(sound, case.change), accept=accept)
    if reply.status != 201:
        return None
    if accept == PROTOBUF:
        reply = replace(reply, body=json.dumps(read_protobuf(reply.body, "", "")).encode())
    return _in_protobuf(masked(reply, api.namespace)["body"])


# Schemas are not read from protobuf, and every case of a request for a certificate is one that is refused.
@pytest.mark.parametrize("kind", sorted(tables().keys() - {"CustomResourceDefinition", "CertificateSigningRequest"}))
def test_objects_are_read_as_the_real_server_means_them(real_api: RealApi, kind: str) -> None:
    sound = Case(kind, "create", "sound", tables()[kind]["path"], tables()[kind]["sound"], {})
    written = 0

    for case in (sound, *(each for each in cases(kind) if each.verb == "create")):
        read = _created(real_api, case, PROTOBUF)
        written += read is not None
        assert read == _created(real_api, case, "application/json"), case.title
    assert written


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
def test_bytes_are_taken_and_refused_alike(both: tuple[Api, Api], method: str, name: str) -> None:
    told = []
    for api in both:
        api.make("configmaps", {"metadata": {"name": "x"}})
        path = api.at("configmaps", "" if method == "POST" else "x")
        reply = api.ask(method, f"{path}?dryRun=All", BODIES[name], content_type=PROTOBUF)
        told.append((reply.status, without_chance(reply.json())))

    assert told[0] == told[1]
