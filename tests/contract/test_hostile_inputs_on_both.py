"""What the real server responds to hostile requests, and that the embedded one responds the same."""

from __future__ import annotations

import json

import pytest

from hostile_inputs import DEFINITION, FORMATS, HOSTILE, MAPS
from server_pairs import ServerPair
from two_servers import Api


@pytest.fixture
def pair(both: tuple[Api, Api]) -> ServerPair:
    pair = ServerPair(*both)
    pair.install(DEFINITION)
    for api in both:
        api.request("POST", MAPS, {"metadata": {"name": "target"}})
    return pair


def test_hostile_requests_get_the_same_response(pair: ServerPair) -> None:
    differences = []
    for name, hostile in HOSTILE.items():
        path = f"{hostile.path}?{hostile.query}"
        ours, theirs = pair.request(hostile.method, path, hostile.body, content_type=hostile.content_type)
        if ours != theirs:
            differences.append(f"{name}: {str(ours)[:300]} {str(theirs)[:300]}")

    assert not differences, "\n".join(differences)


def test_long_texts_in_cel_are_cut_alike(both: tuple[Api, Api]) -> None:
    pair = ServerPair(*both)
    rules = [{"rule": "self.number < 1.0", "messageExpression": text} for text in FORMATS]
    spec = {"type": "object", "properties": {"number": {"type": "number"}}, "x-kubernetes-validations": rules}
    text = json.dumps(DEFINITION).replace("trap", "format").replace("Trap", "Format")
    definition = json.loads(text)
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec
    pair.install(definition)

    document = {
        "apiVersion": "hostile.example/v1",
        "kind": "Format",
        "metadata": {"name": "a"},
        "spec": {"number": 2.5},
    }
    ours, theirs = pair.request("POST", "/apis/hostile.example/v1/namespaces/default/formats", document)

    assert ours == theirs
    assert ours[0] == 422
