"""Admission webhooks: the real API server and the embedded one call the same webhook server, with the same results.

The texts are those of the real server. `{at}` is the address of the webhook server.
"""

from __future__ import annotations

import base64
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from both_servers import EmbeddedServerThread, RealServer, Server, ServerResponse
from konverge.testing import ControlPlane
from konverge.testing.certificates import Authority
from webhook_endpoint import JSON, HookServer, Review, patch_of, review

HOOKS = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
CONFIG_MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def plain(status: int, body: object, content_type: str = "text/plain") -> Any:
    """An answer that is no review."""
    text = body if isinstance(body, str) else json.dumps(body)
    return lambda _asked: web.Response(status=status, text=text, content_type=content_type)


def odd(**document: Any) -> Any:
    """A review that is not as it should be."""
    return lambda asked: web.json_response(review(asked["request"]["uid"], **document))


# What a validating webhook answers, and what becomes of the write: the code and the message.
REFUSALS: dict[str, tuple[Any, int, str]] = {
    "deny": ({"allowed": False, "status": {"message": "nope"}}, 400, "denied the request: nope"),
    "reason": ({"allowed": False, "status": {"reason": "Forbidden"}}, 400, "denied the request: Forbidden"),
    "silent": ({"allowed": False}, 400, "denied the request without explanation"),
    "coded": ({"allowed": False, "status": {"message": "m", "code": 418}}, 418, "denied the request: m"),
    "success": (
        {"allowed": False, "status": {"status": "Success", "code": 200}},
        400,
        "denied the request without explanation",
    ),
}

FAILURES: dict[str, tuple[Any, str]] = {
    "c500": (plain(500, "boom\n"), 'an error on the server ("boom") has prevented the request from succeeding'),
    "c500j": (plain(500, {}, JSON), 'an error on the server ("unknown") has prevented the request from succeeding'),
    "c500s": (plain(500, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "own"}, JSON), "own"),
    "c403": (plain(403, "not you"), "not you"),
    "c404": (plain(404, "x"), "the server could not find the requested resource"),
    "c409": (plain(409, "x"), "the server reported a conflict"),
    "c418": (plain(418, "x"), "the server responded with the status code 418 but did not return more information"),
    "c429": (
        plain(429, "x"),
        "the server has received too many requests and has asked us to try again later",
    ),
    "c503": (plain(503, "x"), "the server is currently unable to handle the request"),
    "text": (
        plain(200, "hello"),
        f"couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type {TYPE_META}",
    ),
    "empty": (plain(200, ""), "0-length response with status code: 200 and content type: text/plain; charset=utf-8"),
    "broken": (
        plain(200, '{"kind":', JSON),
        "couldn't get version/kind; json parse error: unexpected end of JSON input",
    ),
    "array": (
        plain(200, [], JSON),
        f"couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type {TYPE_META}",
    ),
    "pod": (
        plain(200, {"kind": "Pod", "apiVersion": "v1"}, JSON),
        'no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
    ),
    "status": (
        plain(200, {"kind": "Status", "apiVersion": "v1", "status": "Failure"}, JSON),
        "converting (v1.Status) to (v1.AdmissionReview): unknown conversion",
    ),
    "old": (
        odd(apiVersion="admission.k8s.io/v1beta1", response={"allowed": True}),
        "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
    ),
    "typed": (
        {"allowed": "yes"},
        "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
    ),
    "code": (
        {"allowed": True, "status": {"code": "a"}},
        "json: cannot unmarshal string into Go struct field Status.response.status.code of type int32",
    ),
    "base64": ({"allowed": True, "patch": "###"}, "illegal base64 data at input byte 0"),
    "slow": (None, 'Post "https://{at}/slow?timeout=1s": context deadline exceeded'),
    "cut": (None, 'Post "https://{at}/cut?timeout=10s": EOF'),
}

INVALID: dict[str, tuple[Any, str]] = {
    "unkind": (
        lambda asked: web.json_response({"response": {"uid": asked["request"]["uid"], "allowed": True}}),
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
    ),
    "absent": (
        plain(200, {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}, JSON),
        "webhook response was absent",
    ),
    "uid": (lambda _: web.json_response(review("x", response={"allowed": True})), 'expected response.uid="*", got "x"'),
    "patch": (patch_of([]), "validating webhook may not return response.patch"),
    "type": ({"allowed": True, "patchType": "JSONPatch"}, "validating webhook may not return response.patchType"),
}

ADDITION = {"op": "add", "path": "/data/added", "value": "by the hook"}

# What a mutating webhook answers, and the message after `Internal error occurred: `.
BAD_PATCHES: dict[str, tuple[Any, str]] = {
    "place": (
        patch_of([{"op": "replace", "path": "/spec/x/y", "value": 1}]),
        "replace operation does not apply: doc is missing path: /spec/x/y: missing value",
    ),
    "nowhere": (
        patch_of([{"op": "add", "path": "/spec/x/y", "value": 1}]),
        'add operation does not apply: doc is missing path: "/spec/x/y": missing value',
    ),
    "gone": (
        patch_of([{"op": "remove", "path": "/data/nope"}]),
        "error in remove for path: '/data/nope': Unable to remove nonexistent key: nope: missing value",
    ),
    "test": (
        patch_of([{"op": "test", "path": "/data/a", "value": "zz"}]),
        "testing value /data/a failed: test failed",
    ),
    "kind": (patch_of([{"op": "bogus", "path": "/data/a"}]), "Unexpected kind: bogus"),
    "typed": (
        patch_of([{"op": "add", "path": "/data/a", "value": 5}]),
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
    ),
    "object": (
        patch_of({}),
        'failed calling webhook "{hook}": received undecodable patch in webhook response:'
        " json: cannot unmarshal object into Go value of type jsonpatch.Patch",
    ),
    "broken": (
        patch_of(b"[{"),
        'failed calling webhook "{hook}": received undecodable patch in webhook response: unexpected end of JSON input',
    ),
    "typeless": (
        {"allowed": True, "patch": "W10="},
        'failed calling webhook "{hook}": received invalid webhook response:'
        " webhook returned response.patch but not response.patchType",
    ),
    "patchless": (
        {"allowed": True, "patchType": "JSONPatch"},
        'failed calling webhook "{hook}": received invalid webhook response:'
        " webhook returned response.patchType but not response.patch",
    ),
    "merge": (
        patch_of([ADDITION]) | {"patchType": "Merge"},
        'failed calling webhook "{hook}": unsupported patch type "Merge"',
    ),
    "untyped": (
        patch_of([]) | {"patchType": ""},
        'failed calling webhook "{hook}": received invalid webhook response:'
        ' webhook returned invalid response.patchType of ""',
    ),
}

GOOD_PATCHES: dict[str, Any] = {
    "add": patch_of([ADDITION]),
    "none": patch_of([]),
    "null": patch_of(b"null"),
    "unknown": patch_of([ADDITION, {"op": "add", "path": "/bogus", "value": "x"}]),
    "warn": {**patch_of([ADDITION]), "warnings": ["careful", 'with "quotes"', "careful"]},
}


class Scene:
    """One API server with the webhook server behind it."""

    def __init__(self, server: Server, hooks: HookServer) -> None:
        self.server = server
        self.hooks = hooks
        self._names = itertools.count()

    def hook(self, name: str, path: str, **more: Any) -> dict[str, Any]:
        """A webhook for ConfigMaps that carry the label `hook: <name>`."""
        config = {"url": f"https://{self.hooks.address}{path}", "caBundle": self.hooks.ca_bundle}
        return {
            "name": f"{name}.hooks.test",
            "clientConfig": config,
            "rules": [CONFIG_MAPS],
            "objectSelector": {"matchLabels": {"hook": name}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 1 if path == "/slow" else 10,  # time for all the others, on a busy machine too
            **more,
        }

    def configure(self, kind: str, name: str, hooks: list[dict[str, Any]]) -> None:
        """Store a configuration, and wait until it counts: a webhook that is always added last refuses."""
        self.hooks.responses["/ready"] = {"allowed": False, "status": {"message": "ready"}}
        marker = f"ready{next(self._names)}"
        body = {"metadata": {"name": name}, "webhooks": [*hooks, self.hook(marker, "/ready")]}
        stored = self.server.request("POST", f"{HOOKS}/{kind}webhookconfigurations", body)
        assert stored.status == 201, stored.body
        give_up = time.monotonic() + 90
        while self.create(marker).status == 201:
            assert time.monotonic() < give_up, "the configuration never counts"

    def remove(self, kind: str, name: str) -> None:
        self.server.request("DELETE", f"{HOOKS}/{kind}webhookconfigurations/{name}")

    def create(self, hook: str, **query: str) -> ServerResponse:
        """Create a ConfigMap that the hook of this name sees."""
        target = MAPS + ("?" + "&".join(f"{key}={value}" for key, value in query.items()) if query else "")
        name = f"{hook}-{next(self._names)}"
        return self.server.request(
            "POST", target, {"metadata": {"name": name, "labels": {"hook": hook}}, "data": {"a": "b"}}
        )


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HookServer]:
    server = HookServer(tmp_path_factory.mktemp("hooks"))
    yield server
    server.close()


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=pytest.mark.control_plane)])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    if request.param == "embedded":
        made: Server = EmbeddedServerThread()
    else:
        plane: ControlPlane = request.getfixturevalue("control_plane")
        made = RealServer(plane)
    yield made
    made.close()


@pytest.fixture(scope="module")
def scene(server: Server, hooks: HookServer) -> Iterator[Scene]:
    """The webhooks of the tables above: each sees only the objects that ask for it by a label."""
    made = Scene(server, hooks)
    validating, mutating = [], []
    for name, answer in {
        **{name: answer for name, (answer, *_) in REFUSALS.items()},
        **{name: answer for name, (answer, _) in FAILURES.items()},
        **{name: answer for name, (answer, _) in INVALID.items()},
    }.items():
        hooks.responses[f"/{name}"] = answer
        validating.append(made.hook(name, f"/{name}"))
        validating.append(made.hook(f"{name}-ignored", f"/{name}", failurePolicy="Ignore"))
    for name, answer in {**{n: a for n, (a, _) in BAD_PATCHES.items()}, **GOOD_PATCHES}.items():
        hooks.responses[f"/patch-{name}"] = answer
        mutating.append(made.hook(f"m-{name}", f"/patch-{name}"))
    made.configure("validating", "verdicts", validating)
    made.configure("mutating", "verdicts", mutating)
    yield made
    made.remove("validating", "verdicts")
    made.remove("mutating", "verdicts")


def internal(message: str) -> dict[str, Any]:
    """The Status of an internal error."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {message}",
        "reason": "InternalError",
        "details": {"causes": [{"message": message}]},
        "code": 500,
    }


@pytest.mark.parametrize("name", REFUSALS)
def test_a_denial_is_returned_with_the_name_of_the_webhook(scene: Scene, name: str) -> None:
    _, code, text = REFUSALS[name]

    heard = scene.create(name)

    assert heard.status == code
    assert heard.json()["message"] == f'admission webhook "{name}.hooks.test" {text}'
    assert heard.json()["code"] == code
    assert heard.json()["status"] == "Failure"


@pytest.mark.parametrize("name", FAILURES)
def test_a_call_that_fails_is_an_internal_error(scene: Scene, name: str) -> None:
    text = FAILURES[name][1].replace("{at}", scene.hooks.address)

    heard = scene.create(name)

    assert heard.json() == internal(f'failed calling webhook "{name}.hooks.test": failed to call webhook: {text}')


@pytest.mark.parametrize("name", [*FAILURES, *INVALID])
def test_an_ignored_failure_allows_the_write(scene: Scene, name: str) -> None:
    assert scene.create(f"{name}-ignored").status == 201


@pytest.mark.parametrize("name", REFUSALS)
def test_a_denial_counts_whatever_the_failure_policy(scene: Scene, name: str) -> None:
    assert scene.create(f"{name}-ignored").status == REFUSALS[name][1]


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_review_response_is_an_internal_error(scene: Scene, name: str) -> None:
    heard = scene.create(name)

    prefix = f'Internal error occurred: failed calling webhook "{name}.hooks.test": received invalid webhook response: '
    assert heard.status == 500
    text = heard.json()["message"].removeprefix(prefix)
    uid = text.split('"')[1] if name == "uid" else ""
    assert text == INVALID[name][1].replace("*", uid)


@pytest.mark.parametrize("name", BAD_PATCHES)
def test_a_patch_that_does_not_apply_is_an_internal_error(scene: Scene, name: str) -> None:
    heard = scene.create(f"m-{name}")

    assert heard.json() == internal(BAD_PATCHES[name][1].replace("{hook}", f"m-{name}.hooks.test"))


@pytest.mark.parametrize("name", GOOD_PATCHES)
def test_a_patch_changes_the_stored_object(scene: Scene, name: str) -> None:
    heard = scene.create(f"m-{name}")

    assert heard.status == 201
    added = {} if name in ("none", "null") else {"added": "by the hook"}
    assert heard.json()["data"] == {"a": "b", **added}
    assert "bogus" not in heard.json()


def test_each_warning_of_a_webhook_is_returned_once(scene: Scene) -> None:
    assert scene.create("m-warn").warnings == ('299 - "careful"', '299 - "with \\"quotes\\""')


def test_nothing_is_stored_when_a_webhook_denies(scene: Scene) -> None:
    scene.create("deny")

    listed = scene.server.request("GET", f"{MAPS}?labelSelector=hook%3Ddeny")
    assert listed.json()["items"] == []


def test_the_error_of_an_unreachable_webhook_has_its_address(scene: Scene) -> None:
    other = {"url": "https://127.0.0.1:1/x", "caBundle": scene.hooks.ca_bundle}
    scene.configure("validating", "unreachable", [scene.hook("refused", "/", clientConfig=other)])

    heard = scene.create("refused")

    scene.remove("validating", "unreachable")
    dial = 'Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'
    assert heard.json() == internal(f'failed calling webhook "refused.hooks.test": failed to call webhook: {dial}')


def test_an_untrusted_certificate_is_not_accepted(scene: Scene, tmp_path: Path) -> None:
    url = f"https://{scene.hooks.address}/add"
    stranger = base64.b64encode(Authority(tmp_path, "stranger").ca.cert.read_bytes()).decode()
    garbage = base64.b64encode(b"garbage").decode()
    bundles = {"stranger": stranger, "garbage": garbage, "system": ""}
    hooks = [scene.hook(name, "/", clientConfig={"url": url, "caBundle": each}) for name, each in bundles.items()]
    scene.configure("validating", "untrusted", hooks)

    messages = {name: scene.create(name).json()["message"] for name in bundles}

    scene.remove("validating", "untrusted")
    unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    prefix = 'Internal error occurred: failed calling webhook "{}.hooks.test": {}'
    called = f'failed to call webhook: Post "{url}?timeout=10s": {unknown}'
    root = "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block"
    assert messages == {
        "stranger": prefix.format("stranger", called),
        "system": prefix.format("system", called),
        "garbage": prefix.format("garbage", root),
    }


def test_a_service_without_a_backend_is_not_found(scene: Scene) -> None:
    service = {"namespace": "test", "name": "nobody", "path": "/x"}
    scene.configure("validating", "nobody", [scene.hook("nobody", "/", clientConfig={"service": service})])

    heard = scene.create("nobody")

    scene.remove("validating", "nobody")
    text = 'Post "https://nobody.test.svc:443/x?timeout=10s": service "nobody" not found'
    assert heard.json() == internal(f'failed calling webhook "nobody.hooks.test": failed to call webhook: {text}')


def appending(letter: str) -> Any:
    """A webhook that adds a letter to `data.word`, or starts it."""

    def answer(asked: Review) -> web.StreamResponse:
        word = asked["request"]["object"].get("data", {}).get("word", "")
        patch = patch_of([{"op": "add", "path": "/data/word", "value": word + letter}])
        return web.json_response(review(asked["request"]["uid"], response=patch))

    return answer


def once(letter: str) -> Any:
    """A webhook that adds its letter unless it is there."""

    def answer(asked: Review) -> web.StreamResponse:
        word = asked["request"]["object"].get("data", {}).get("word", "")
        response = (
            {"allowed": True}
            if letter in word
            else patch_of([{"op": "add", "path": "/data/word", "value": word + letter}])
        )
        return web.json_response(review(asked["request"]["uid"], response=response))

    return answer


def words(scene: Scene, configurations: dict[str, list[tuple[str, Any, str]]]) -> tuple[str, str]:
    """Configure webhooks (letter, answer, reinvocation policy) and create an object: its word, and who was called."""
    for name, hooks in configurations.items():
        listed = []
        for index, (letter, answer, policy) in enumerate(hooks):
            path = f"/order-{name}-{index}-{letter}"
            scene.hooks.responses[path] = answer
            selector = {"matchLabels": {"hook": "word"}}
            listed.append(scene.hook(f"{letter}{index}", path, objectSelector=selector, reinvocationPolicy=policy))
        scene.configure("mutating", name, listed)
    before = len(scene.hooks.seen)
    heard = scene.create("word")
    called = "".join(path.partition("?")[0][-1] for path, _, _ in scene.hooks.seen[before:])
    for name in configurations:
        scene.remove("mutating", name)
    return heard.json()["data"].get("word", ""), called


def test_mutating_webhooks_run_in_the_order_of_names_then_as_listed(scene: Scene) -> None:
    never = "Never"
    hooks = {
        "order-b": [("c", appending("c"), never), ("d", appending("d"), never)],
        "order-a": [("b", appending("b"), never), ("a", appending("a"), never)],
    }

    assert words(scene, hooks) == ("bacd", "bacd")


def test_a_webhook_is_reinvoked_once_when_a_later_one_changed_the_object(scene: Scene) -> None:
    hooks = {"again": [("a", appending("a"), "IfNeeded"), ("b", appending("b"), "Never")]}

    assert words(scene, hooks) == ("aba", "aba")


def test_a_change_in_the_second_pass_reinvokes_the_webhooks_after_it(scene: Scene) -> None:
    hooks = {"again": [("a", appending("a"), "IfNeeded"), ("b", appending("b"), "IfNeeded")]}

    assert words(scene, hooks) == ("abab", "abab")


def test_no_webhook_is_reinvoked_when_nothing_changed_afterwards(scene: Scene) -> None:
    hooks = {"again": [("a", once("a"), "IfNeeded"), ("b", {"allowed": True}, "IfNeeded")]}

    assert words(scene, hooks) == ("a", "ab")


def test_a_reinvocation_that_changes_nothing_ends_the_second_pass(scene: Scene) -> None:
    hooks = {"again": [("a", once("a"), "IfNeeded"), ("b", once("b"), "IfNeeded"), ("c", once("c"), "Never")]}

    assert words(scene, hooks) == ("abc", "abcab")
