"""Conversion webhooks: the same webhook behind the real API server and the embedded one, the same outcome."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from aiohttp import web

from both_servers import EmbeddedServerThread
from crd_cases import Json, definition, obj
from konverge.testing import ControlPlane
from server_pairs import DEFINITIONS, ServerPair, comparable
from two_servers import Api, ApiResponse, RealApi
from webhook_endpoint import HookServer

APPLY = {"content_type": "application/apply-patch+yaml"}
MERGE = {"content_type": "application/merge-patch+json"}
TRIES = 20

Change = Callable[[Json], Any]
Asked = tuple[str, str, Any, dict[str, str]]


def converted(document: Json, api_version: str) -> Json:
    """The number is called size in v1 and count in v2."""
    document = copy.deepcopy(document)
    spec = document.get("spec") or {}
    names = ("count", "size") if api_version.endswith("/v1") else ("size", "count")
    if names[0] in spec:
        spec[names[1]] = spec.pop(names[0])
    return {**document, "apiVersion": api_version}


def answer(asked: Json, change: Change | None = None, result: Json | None = None, **response: Any) -> web.Response:
    request = asked["request"]
    objects = [converted(each, request["desiredAPIVersion"]) for each in request["objects"]]
    for each in objects:
        if change is not None:
            change(each)
    body = {
        "apiVersion": asked["apiVersion"],
        "kind": "ConversionReview",
        "response": {
            "uid": request["uid"],
            "result": result or {"status": "Success"},
            "convertedObjects": objects,
            **response,
        },
    }
    return web.json_response(body, dumps=partial(json.dumps, separators=(",", ":"), sort_keys=True))


def _drop(*names: str) -> Change:
    def drop(document: Json) -> None:
        for name in names:
            document.pop(name, None)

    return drop


CHANGES: dict[str, Change] = {
    "good": lambda _document: None,
    "name": lambda document: document["metadata"].update(name="other"),
    "uid": lambda document: document["metadata"].update(uid="other"),
    "namespace": lambda document: document["metadata"].update(namespace="other"),
    "kind": lambda document: document.update(kind="Other"),
    "version": lambda document: document.update(apiVersion="a/b"),
    "nokind": _drop("kind"),
    "noversion": _drop("apiVersion"),
    "nometa": _drop("metadata"),
    "nullmeta": lambda document: document.update(metadata=None),
    "textmeta": lambda document: document.update(metadata="x"),
    "labels": lambda document: document["metadata"].update(labels={"a": "b"}),
    "nulllabels": lambda document: document["metadata"].update(labels=None),
    "annotations": lambda document: document["metadata"].update(annotations={"a": "b"}),
    "badlabel": lambda document: document["metadata"].update(labels={"a b": "c d"}),
    "badannotation": lambda document: document["metadata"].update(annotations={"a b": "c d"}),
    "numberlabel": lambda document: document["metadata"].update(labels={"a": 1}),
    "textlabels": lambda document: document["metadata"].update(labels="x"),
    "finalizers": lambda document: document["metadata"].update(finalizers=["a.b/c"]),
    "owners": lambda document: document["metadata"].update(ownerReferences=[]),
    "generation": lambda document: document["metadata"].update(generation=99, resourceVersion="1"),
    "extra": lambda document: document.setdefault("spec", {}).update(extra=1),
    "wrong": lambda document: document.update(spec={"size": "x", "count": "x"}),
    "nospec": _drop("spec"),
}

ANSWERS: dict[str, Any] = {
    "failed": lambda asked: answer(asked, result={"status": "Failure", "message": "it cannot be"}),
    "silent": lambda asked: answer(asked, result={"status": "Failure"}),
    "strange": lambda asked: answer(asked, result={"status": "Fine"}),
    "empty": lambda asked: answer(asked, result={"a": "b"}),
    "wronguid": lambda asked: answer(asked, uid="x"),
    "few": lambda asked: answer(asked, convertedObjects=[]),
    "null": lambda asked: answer(asked, convertedObjects=None),
    "texts": lambda asked: answer(asked, convertedObjects=["x" for _ in asked["request"]["objects"]]),
    "nulls": lambda asked: answer(asked, convertedObjects=[None for _ in asked["request"]["objects"]]),
    "noresponse": lambda asked: web.json_response({"apiVersion": asked["apiVersion"], "kind": "ConversionReview"}),
    "beta": lambda _asked: web.json_response(
        {"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "ConversionReview", "response": {}}
    ),
    "notyped": lambda asked: web.json_response({"response": {"uid": asked["request"]["uid"]}}),
    "c500": lambda _asked: web.Response(status=500, text="boom"),
    "c404": lambda _asked: web.Response(status=404, text="boom"),
    "notext": lambda _asked: web.Response(text=""),
}
NAMES = [*CHANGES, *ANSWERS]


def _definition(name: str, hooks: HookServer) -> Json:
    group = f"{name}.conversion.example.com"
    made = definition(obj(size={"type": "integer"}), group=group)
    second = copy.deepcopy(made["spec"]["versions"][0]) | {"name": "v2", "storage": False}
    second["schema"]["openAPIV3Schema"]["properties"]["spec"] = obj(count={"type": "integer"})
    made["spec"]["versions"].append(second)
    config = {"url": f"https://{hooks.address}/{name}", "caBundle": hooks.ca_bundle}
    webhook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
    made["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return made


class InnerApi(Api):
    """The embedded server on a loop of its own: it must call a server that is not of this loop."""

    name = "embedded"

    def __init__(self, server: EmbeddedServerThread) -> None:
        super().__init__()
        self._server = server

    def send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> ApiResponse:
        response = self._server.request(method, path, body, headers=headers)
        return ApiResponse(response.status, response.headers, response.warnings, response.body)


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HookServer]:
    server = HookServer(tmp_path_factory.mktemp("hooks"))
    server.responses |= {f"/{name}": partial(answer, change=change) for name, change in CHANGES.items()}
    server.responses |= {f"/{name}": made for name, made in ANSWERS.items()}
    yield server
    server.close()


@pytest.fixture(scope="module")
def pair(control_plane: ControlPlane, hooks: HookServer) -> Iterator[ServerPair]:
    """Both servers, with a resource for every way in which the webhook answers."""
    inner, real = EmbeddedServerThread(), RealApi(control_plane)
    made = ServerPair(InnerApi(inner), real)
    definitions = [_definition(name, hooks) for name in NAMES]
    made.install(*definitions)
    yield made
    with ThreadPoolExecutor(len(NAMES)) as pool:
        for each in definitions:
            pool.submit(real.request, "DELETE", f"{DEFINITIONS}/{each['metadata']['name']}")
    inner.close()


def _path(name: str, version: str, thing: str = "") -> str:
    collection = f"/apis/{name}.conversion.example.com/{version}/namespaces/default/things"
    return f"{collection}/{thing}" if thing else collection


def _thing(name: str, version: str, thing: str, **spec: Any) -> Json:
    metadata = {"name": thing, "labels": {"own": thing}}
    api_version = f"{name}.conversion.example.com/{version}"
    return {"apiVersion": api_version, "kind": "Thing", "metadata": metadata, "spec": spec}


def _ask_all(pair: ServerPair, steps: list[Asked]) -> None:
    for number, (method, where, body, headers) in enumerate(steps):
        ours, theirs = pair.request(method, where, body, **headers)

        assert ours == theirs, f"step {number}: {method} {where}"


def _life(name: str) -> list[Asked]:
    """Two objects made, read, listed, changed and deleted in both versions."""
    return [
        ("POST", _path(name, "v1"), _thing(name, "v1", "one", size=1), {}),
        ("GET", _path(name, "v1", "one"), None, {}),
        ("GET", _path(name, "v2", "one"), None, {}),
        ("GET", _path(name, "v2"), None, {}),
        ("POST", _path(name, "v2"), _thing(name, "v2", "two", count=2), {}),
        ("GET", _path(name, "v1"), None, {}),
        ("GET", _path(name, "v2"), None, {}),
        ("PATCH", _path(name, "v2", "one"), {"spec": {"count": 3}}, MERGE),
        ("GET", _path(name, "v1", "one"), None, {}),
        ("PATCH", _path(name, "v1", "one"), {"spec": {"size": 4}}, MERGE),
        ("DELETE", _path(name, "v2", "one"), None, {}),
        ("DELETE", _path(name, "v2"), None, {}),
        ("DELETE", _path(name, "v1"), None, {}),
    ]


def _answers(api: Api, name: str) -> list[Any]:
    return [comparable(_reply(api, step)) for step in _life(name)]


def _reply(api: Api, step: Asked) -> ApiResponse:
    """Ask; and again where a busy real server lists from a cache that has not seen yet what was made before."""
    method, where, body, headers = step
    for _ in range(TRIES):
        reply = api.request(method, where, body, **headers)
        if method != "GET" or reply.status != 200 or reply.json().get("items") != []:
            break
        time.sleep(0.5)
    return reply


@pytest.fixture(scope="module")
def real_answers(pair: ServerPair) -> dict[str, list[Any]]:
    """What the real server says to the life of each resource.

    It waits three seconds for each list that cannot be converted, so the lives run side by side.
    """
    with ThreadPoolExecutor(len(NAMES)) as pool:
        return dict(zip(NAMES, pool.map(partial(_answers, pair.servers[1]), NAMES), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_webhook_converts_for_both_alike(pair: ServerPair, real_answers: dict[str, list[Any]], name: str) -> None:
    told = zip(_life(name), _answers(pair.servers[0], name), real_answers[name], strict=True)

    for number, ((method, where, _, _), ours, theirs) in enumerate(told):
        assert ours == theirs, f"step {number}: {method} {where}"


@pytest.mark.parametrize("name", ["good", "labels", "annotations"])
def test_owners_of_fields_are_kept_through_conversions(pair: ServerPair, name: str) -> None:
    new, old = _path(name, "v2", "owned"), _path(name, "v1", "owned")
    _ask_all(
        pair,
        [
            ("POST", _path(name, "v1"), _thing(name, "v1", "owned", size=1), {}),
            ("PATCH", f"{new}?fieldManager=x", _thing(name, "v2", "owned", count=5), APPLY),
            ("PATCH", f"{new}?fieldManager=x&force=1", _thing(name, "v2", "owned", count=5), APPLY),
            ("PATCH", f"{old}?fieldManager=x", _thing(name, "v1", "owned", size=6), APPLY),
            ("PATCH", f"{old}?fieldManager=x", _thing(name, "v1", "owned"), APPLY),
            ("PATCH", f"{new}?fieldManager=y", {"spec": {"count": 7}}, MERGE),
            ("PATCH", f"{new}?fieldManager=x", _thing(name, "v2", "owned", count=5), APPLY),
            ("DELETE", old, None, {}),
        ],
    )
