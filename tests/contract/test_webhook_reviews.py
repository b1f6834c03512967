"""Admission reviews: both servers send the same reviews for the same writes.

Both servers call a webhook that allows everything, and receive the same requests. The reviews are compared without
uids, versions, times and the name of the user.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from both_servers import EmbeddedServerThread, RealServer, Server, ServerResponse
from konverge.testing import ControlPlane
from two_servers import masked
from webhook_endpoint import HookServer, patch_of

HOOKS = "/apis/admissionregistration.k8s.io/v1"
NAMESPACE = "reviews"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"

Asked = tuple[str, str, Any, dict[str, str]]


def create(path: str, body: Any) -> Asked:
    return "POST", path, body, {}


def patch(path: str, kind: str, body: Any) -> Asked:
    return "PATCH", path, body, {"content-type": f"application/{kind}"}


def config_map(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "data": {"a": "b"}}


def deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"containers": [{"name": "c", "image": "i"}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}}


Call = tuple[str, dict[str, str], dict[str, Any]]
"""The path, the headers and the review of one call of a webhook."""


class Pair:
    """Both servers with one webhook server behind them."""

    def __init__(self, servers: tuple[Server, Server], hooks: HookServer) -> None:
        self.servers = servers
        self.hooks = hooks
        self._marks = 0

    def configure(self, kind: str, hooks: list[dict[str, Any]]) -> None:
        """Give both servers a configuration, and wait until it counts."""
        self.hooks.responses["/ready"] = {"allowed": False}
        self._marks += 1
        marker = f"ready{self._marks}"
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
        last = self.hook("ready", "/ready", [rule], objectSelector={"matchLabels": {"ready": marker}})
        body = {"metadata": {"name": "reviews"}, "webhooks": [*hooks, last]}
        for server in self.servers:
            path = f"{HOOKS}/{kind}webhookconfigurations"
            server.request("DELETE", f"{path}/reviews")
            assert server.request("POST", path, body).status == 201
            give_up = time.monotonic() + 90
            while server.request("POST", f"{MAPS}?dryRun=All", config_map("ready", ready=marker)).status == 201:
                assert time.monotonic() < give_up, "the configuration never counts"

    def remove(self, kind: str) -> None:
        for server in self.servers:
            server.request("DELETE", f"{HOOKS}/{kind}webhookconfigurations/reviews")

    def wait_until_unseen(self, collection: str) -> None:
        """Wait until a dry run of a create below ``collection`` calls no webhook."""
        for server in self.servers:
            give_up = time.monotonic() + 90
            while self._calls_a_webhook(server, collection):
                assert time.monotonic() < give_up, f"a webhook is still called for {collection}"

    def _calls_a_webhook(self, server: Server, collection: str) -> bool:
        before = len(self.hooks.seen)
        assert server.request("POST", f"{collection}?dryRun=All", config_map("probe")).status == 201
        return len(self.hooks.seen) > before

    def hook(self, name: str, path: str, rules: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        config = {"url": f"https://{self.hooks.address}{path}", "caBundle": self.hooks.ca_bundle}
        return {
            "name": f"{name}.hooks.test",
            "clientConfig": config,
            "rules": rules,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **more,
        }

    def tell(self, requests: list[Asked], path: str) -> tuple[list[Any], list[Any]]:
        """Send requests to each server; return what the webhooks whose path begins so were sent by each."""
        told = []
        for server in self.servers:
            seen: list[Call] = []
            for method, target, body, headers in requests:
                before = len(self.hooks.seen)
                server.request(method, target, body, headers=headers)
                calls = [each for each in self.hooks.seen[before:] if not _is_its_own(each[2])]
                seen += [each for each in _last_attempt(calls) if each[0].startswith(path)]
            told.append([_seen(each) for each in seen])
        return told[0], told[1]


def _is_its_own(review: dict[str, Any]) -> bool:
    """Tell what a real server writes by itself, such as the state of an API that an earlier test took away."""
    return bool(review["request"]["userInfo"]["username"] == "system:apiserver")


def _last_attempt(calls: list[Call]) -> list[Call]:
    """Return the calls of the attempt that counted.

    The real server begins an update with the object in its cache; if that is stale, it begins again and reviews again.
    """
    last = {each[2]["request"]["name"]: _version_before(each) for each in calls if "name" in each[2]["request"]}
    return [each for each in calls if _version_before(each) == last.get(each[2]["request"].get("name"))]


def _version_before(call: Call) -> str | None:
    old = call[2]["request"].get("oldObject") or {}
    version: str | None = (old.get("metadata") or {}).get("resourceVersion")
    return version


def _seen(call: Call) -> Any:
    path, headers, review = call
    review = json.loads(json.dumps(review))
    review["request"]["userInfo"] = sorted(review["request"]["userInfo"]["groups"])
    _mask_generated(review["request"])
    for part in ("object", "oldObject"):
        # Their order depends on the second of each write.
        metadata = (review["request"].get(part) or {}).get("metadata") or {}
        metadata.get("managedFields", []).sort(key=lambda entry: json.dumps({**entry, "time": ""}, sort_keys=True))
    kept = {name: headers.get(name) for name in ("user-agent", "accept", "content-type", "accept-encoding")}
    return path, kept, masked(review)


def _mask_generated(request: dict[str, Any]) -> None:
    stem = ((request["object"] or {}).get("metadata") or {}).get("generateName")
    if stem and request.get("name"):
        assert len(request["name"]) == len(stem) + 5
        request["name"] = request["object"]["metadata"]["name"] = f"{stem}<generated>"


ALL = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}
HERE = {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, control_plane: ControlPlane) -> Iterator[Pair]:
    hooks = HookServer(tmp_path_factory.mktemp("hooks"))
    inner, real = EmbeddedServerThread(), RealServer(control_plane)
    for server in (inner, real):
        assert server.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}).status == 201
    yield Pair((inner, real), hooks)
    inner.close()
    real.close()
    hooks.close()


@pytest.fixture(scope="module")
def all_seen(pair: Pair) -> Iterator[Pair]:
    """Every write in the namespace is seen, before and after the server's own changes."""
    pair.hooks.responses["/see"] = {"allowed": True}
    pair.configure("validating", [pair.hook("see", "/see", [ALL], namespaceSelector=HERE)])
    pair.configure("mutating", [pair.hook("see", "/see", [ALL], namespaceSelector=HERE)])
    yield pair
    pair.remove("validating")
    pair.remove("mutating")


WRITES: dict[str, list[Asked]] = {
    "create": [create(MAPS, config_map("created"))],
    "create with options": [create(f"{MAPS}?fieldManager=me&fieldValidation=Strict", config_map("managed"))],
    "create for rehearsal": [create(f"{MAPS}?dryRun=All", config_map("rehearsed"))],
    "create by a prefix": [create(MAPS, {"metadata": {"generateName": "many-"}})],
    "create what is invalid": [create(MAPS, config_map("A_B"))],
    "create what is there": [create(MAPS, config_map("twice")), create(MAPS, config_map("twice"))],
    "update": [create(MAPS, config_map("put")), ("PUT", f"{MAPS}/put", config_map("put", a="b"), {})],
    "update what is not there": [("PUT", f"{MAPS}/missing", config_map("missing"), {})],
    "update without a change": [create(MAPS, config_map("same")), ("PUT", f"{MAPS}/same", config_map("same"), {})],
    "merge patch": [
        create(MAPS, config_map("merged")),
        patch(f"{MAPS}/merged?fieldManager=me", "merge-patch+json", {"data": {"a": "c"}}),
    ],
    "json patch": [
        create(MAPS, config_map("patched")),
        patch(f"{MAPS}/patched", "json-patch+json", [{"op": "remove", "path": "/data/a"}]),
    ],
    "apply that creates": [
        patch(
            f"{MAPS}/applied?fieldManager=me",
            "apply-patch+yaml",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "b"}},
        )
    ],
    "apply by force": [
        create(MAPS, config_map("forced")),
        patch(
            f"{MAPS}/forced?fieldManager=me&force=true",
            "apply-patch+yaml",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "forced"}, "data": {"a": "c"}},
        ),
    ],
    "delete": [create(MAPS, config_map("gone")), ("DELETE", f"{MAPS}/gone", None, {})],
    "delete with options": [
        create(MAPS, config_map("soon")),
        ("DELETE", f"{MAPS}/soon?propagationPolicy=Foreground", {"gracePeriodSeconds": 5}, {}),
    ],
    "delete what is not there": [("DELETE", f"{MAPS}/missing", None, {})],
    "delete many": [
        create(MAPS, config_map("one", batch="many")),
        create(MAPS, config_map("two", batch="many")),
        ("DELETE", f"{MAPS}?labelSelector=batch%3Dmany", None, {}),
    ],
    "deployment with its status and scale": [
        create(DEPLOYMENTS, deployment("web")),
        patch(f"{DEPLOYMENTS}/web/status", "merge-patch+json", {"status": {"replicas": 3}}),
        patch(f"{DEPLOYMENTS}/web/scale", "merge-patch+json", {"spec": {"replicas": 5}}),
        ("DELETE", f"{DEPLOYMENTS}/web", None, {}),
    ],
    "reads": [("GET", MAPS, None, {}), ("GET", f"{MAPS}/created", None, {})],
}


@pytest.mark.parametrize("name", WRITES)
def test_both_servers_send_the_same_reviews(all_seen: Pair, name: str) -> None:
    embedded, real = all_seen.tell(WRITES[name], "/see")

    assert embedded == real


NAMESPACES = "/api/v1/namespaces"

RULES: dict[str, dict[str, Any]] = {
    "this version": {"apiVersions": ["v1"]},
    "another version": {"apiVersions": ["v2"]},
    "another group": {"apiGroups": ["batch"]},
    "any resource": {"resources": ["*"]},
    "any subresource": {"resources": ["deployments/*"], "apiGroups": ["apps"]},
    "a subresource of any": {"resources": ["*/scale"], "apiGroups": ["*"]},
    "the object only": {"resources": ["deployments"], "apiGroups": ["apps"]},
    "namespaced": {"resources": ["*"], "apiGroups": ["*"], "scope": "Namespaced"},
    "of the cluster": {"resources": ["*"], "apiGroups": ["*"], "scope": "Cluster"},
    "deletions": {"operations": ["DELETE"]},
    "updates and deletions": {"operations": ["UPDATE", "DELETE"]},
}

CHANGES: list[Asked] = [
    create(MAPS, config_map("ruled")),
    patch(f"{MAPS}/ruled", "merge-patch+json", {"data": {"a": "c"}}),
    ("DELETE", f"{MAPS}/ruled", None, {}),
    create(DEPLOYMENTS, deployment("ruled")),
    patch(f"{DEPLOYMENTS}/ruled/status", "merge-patch+json", {"status": {"replicas": 3}}),
    patch(f"{DEPLOYMENTS}/ruled/scale", "merge-patch+json", {"spec": {"replicas": 5}}),
    ("DELETE", f"{DEPLOYMENTS}/ruled", None, {}),
    patch(f"{NAMESPACES}/{NAMESPACE}", "merge-patch+json", {"metadata": {"labels": {"ruled": "yes"}}}),
    patch(f"{NAMESPACES}/{NAMESPACE}", "merge-patch+json", {"metadata": {"labels": {"ruled": None}}}),
]


def test_rules_select_the_same_writes(pair: Pair) -> None:
    plain = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
    hooks = []
    for index, (name, changes) in enumerate(RULES.items()):
        path = "/rule-" + name.replace(" ", "-")
        pair.hooks.responses[path] = {"allowed": True}
        # Mutating ones are called one after the other, so that the order can be compared.
        hooks.append(pair.hook(f"r{index}", path, [{**plain, **changes}], namespaceSelector=HERE))
    pair.configure("mutating", hooks)

    embedded, real = pair.tell(CHANGES, "/rule")

    pair.remove("mutating")
    shown = [[(path, review["request"]["operation"]) for path, _, review in each] for each in (embedded, real)]
    assert shown[0] == shown[1]
    assert {path.partition("?")[0] for path, _ in shown[0]} == {
        "/rule-" + name.replace(" ", "-") for name in RULES if name not in ("another version", "another group")
    }


def test_selectors_match_the_new_and_the_old_labels(pair: Pair) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
    pair.hooks.responses["/selected"] = {"allowed": True}
    selector = {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}]}
    pair.configure("mutating", [pair.hook("s", "/selected", [rule], objectSelector=selector)])

    embedded, real = pair.tell(
        [
            create(MAPS, config_map("labelled")),
            patch(f"{MAPS}/labelled", "merge-patch+json", {"metadata": {"labels": {"tier": "a"}}}),
            patch(f"{MAPS}/labelled", "merge-patch+json", {"data": {"x": "y"}}),
            patch(f"{MAPS}/labelled", "merge-patch+json", {"metadata": {"labels": {"tier": "c"}}}),
            patch(f"{MAPS}/labelled", "merge-patch+json", {"data": {"x": "z"}}),
            ("DELETE", f"{MAPS}/labelled", None, {}),
        ],
        "/selected",
    )

    pair.remove("mutating")
    assert embedded == real
    assert [review["request"]["operation"] for _, _, review in embedded] == ["UPDATE"] * 3


def test_a_namespace_selector_matches_the_labels_of_the_namespace(pair: Pair) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps", "namespaces"], "operations": ["*"]}
    pair.hooks.responses["/chosen"] = {"allowed": True}
    chosen = {"matchLabels": {"chosen": "yes"}}
    pair.configure("mutating", [pair.hook("n", "/chosen", [rule], namespaceSelector=chosen)])

    inside = f"{NAMESPACES}/chosen-one/configmaps"
    embedded, real = pair.tell(
        [
            create(MAPS, config_map("unseen")),
            create(NAMESPACES, {"metadata": {"name": "chosen-one", "labels": {"chosen": "yes"}}}),
            create(inside, config_map("seen")),
            create(f"{NAMESPACES}/not-there/configmaps", config_map("lost")),
            patch(f"{NAMESPACES}/chosen-one", "merge-patch+json", {"metadata": {"labels": {"chosen": "no"}}}),
        ],
        "/chosen",
    )
    # The real server reads the labels of a namespace from its cache.
    pair.wait_until_unseen(inside)
    embedded_later, real_later = pair.tell([create(inside, config_map("later"))], "/chosen")

    pair.remove("mutating")
    assert embedded == real
    assert [review["request"]["resource"]["resource"] for _, _, review in embedded] == ["namespaces", "configmaps"]
    assert embedded_later == real_later == []


CONDITIONS: dict[str, str] = {
    "by name": "object.metadata.name == 'seen'",
    "by operation": "request.operation == 'UPDATE'",
    "by old labels": "oldObject != null && has(oldObject.metadata.labels) && oldObject.metadata.labels.tier == 'a'",
    "by user": "request.userInfo.groups.exists(each, each == 'system:masters')",
    "by resource": "request.resource.group == '' && request.requestKind.kind == 'ConfigMap' && request.namespace != ''",
    "that fails": "object.data.missing == 'x'",
}


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_match_conditions_have_the_same_result(pair: Pair, name: str, policy: str) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
    pair.hooks.responses["/conditional"] = {"allowed": True}
    unready = {"matchExpressions": [{"key": "ready", "operator": "DoesNotExist"}]}
    condition = [{"name": "decides", "expression": CONDITIONS[name]}]
    more = {"objectSelector": unready, "matchConditions": condition, "failurePolicy": policy}
    pair.configure("mutating", [pair.hook("c", "/conditional", [rule], namespaceSelector=HERE, **more)])
    requests = [
        create(MAPS, config_map("seen", tier="a")),
        patch(f"{MAPS}/seen", "merge-patch+json", {"data": {"x": "y"}}),
        create(MAPS, config_map("other")),
        ("DELETE", f"{MAPS}/seen", None, {}),
        ("DELETE", f"{MAPS}/other", None, {}),
    ]

    embedded, real = pair.tell(requests, "/conditional")
    told = [outcome(server.request("POST", f"{MAPS}?dryRun=All", config_map("told"))) for server in pair.servers]

    pair.remove("mutating")
    for server in pair.servers:
        for left in ("seen", "other"):
            server.request("DELETE", f"{MAPS}/{left}")
    assert embedded == real
    assert told[0] == told[1]


def outcome(heard: ServerResponse) -> Any:
    return heard.status, masked(heard.json()), heard.warnings


PATCHES: dict[str, tuple[Any, list[Asked]]] = {
    "of a deletion": (
        patch_of([{"op": "add", "path": "/data", "value": {}}]),
        [create(f"{MAPS}?fieldManager=first", config_map("stays", seen="no")), ("DELETE", f"{MAPS}/stays", None, {})],
    ),
    "of the name": (
        patch_of([{"op": "replace", "path": "/metadata/name", "value": "other"}]),
        [create(MAPS, config_map("named")), patch(f"{MAPS}/other", "merge-patch+json", {"data": {"x": "y"}})],
    ),
    "of the namespace": (
        patch_of([{"op": "replace", "path": "/metadata/namespace", "value": "default"}]),
        [create(MAPS, config_map("moved"))],
    ),
    "of the version": (
        patch_of([{"op": "add", "path": "/metadata/resourceVersion", "value": "1"}]),
        [create(MAPS, config_map("aged"))],
    ),
    "of the uid": (
        patch_of([{"op": "add", "path": "/metadata/uid", "value": "5d5cf5ab-9ca1-4f4d-9a2b-6ad5dbe1d8e0"}]),
        [create(MAPS, config_map("forged"))],
    ),
    "that makes it invalid": (
        patch_of([{"op": "add", "path": "/metadata/labels", "value": {"a b": "c"}}]),
        [create(MAPS, config_map("spoiled"))],
    ),
    "that undoes an update": (
        patch_of([{"op": "add", "path": "/data", "value": {"fixed": "yes"}}]),
        [
            create(MAPS, config_map("fixed")),
            patch(f"{MAPS}/fixed", "merge-patch+json", {"data": {"b": "c"}}),
            patch(
                f"{MAPS}/fixed?fieldManager=me",
                "apply-patch+yaml",
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fixed"}, "data": {"b": "c"}},
            ),
        ],
    ),
    "of a scale": (
        patch_of([{"op": "replace", "path": "/spec/replicas", "value": 7}]),
        [
            create(DEPLOYMENTS, deployment("scaled")),
            patch(f"{DEPLOYMENTS}/scaled/scale", "merge-patch+json", {"spec": {"replicas": 5}}),
            ("GET", f"{DEPLOYMENTS}/scaled", None, {}),
        ],
    ),
    "of a deployment, with its defaults": (
        patch_of(
            [
                {
                    "op": "add",
                    "path": "/spec/template/spec/containers/-",
                    "value": {"name": "sidecar", "image": "side:1", "ports": [{"containerPort": 80}]},
                }
            ]
        ),
        [create(DEPLOYMENTS, deployment("sidecar")), ("DELETE", f"{DEPLOYMENTS}/sidecar", None, {})],
    ),
}


@pytest.mark.parametrize("name", PATCHES)
def test_a_patch_has_the_same_effect_on_both(pair: Pair, name: str) -> None:
    answer, requests = PATCHES[name]
    pair.hooks.responses["/changing"] = answer
    kinds = ["configmaps", "deployments/scale"] if "scale" in name else ["configmaps", "deployments"]
    rule = {"apiGroups": ["", "apps"], "apiVersions": ["v1"], "resources": kinds, "operations": ["*"]}
    unready = {"matchExpressions": [{"key": "ready", "operator": "DoesNotExist"}]}
    pair.configure("mutating", [pair.hook("p", "/changing", [rule], objectSelector=unready)])

    heard = []
    for server in pair.servers:
        heard.append([outcome(server.request(method, path, body, headers=h)) for method, path, body, h in requests])

    pair.remove("mutating")
    assert heard[0] == heard[1]


def test_webhooks_with_side_effects_are_not_called_on_a_dry_run(pair: Pair) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
    pair.hooks.responses["/rehearsal"] = {"allowed": True}
    hooks = [pair.hook("d", "/rehearsal", [rule], sideEffects="NoneOnDryRun", namespaceSelector=HERE)]
    pair.configure("mutating", hooks)

    embedded, real = pair.tell([create(f"{MAPS}?dryRun=All", config_map("rehearsed"))], "/rehearsal")

    pair.remove("mutating")
    assert embedded == real
    assert [review["request"]["dryRun"] for _, _, review in embedded] == [True]


def _version(name: str, *, storage: bool) -> dict[str, Any]:
    spec = {"type": "object", "properties": {"size": {"type": "integer"}, "mode": {"type": "string", "default": "a"}}}
    status = {"type": "object", "properties": {"size": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "subresources": {"status": {}, "scale": scale},
        "schema": {"openAPIV3Schema": schema},
    }


CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.reviews.test"},
    "spec": {
        "group": "reviews.test",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [_version("v1", storage=True), _version("v2", storage=False)],
    },
}


def widgets(version: str) -> str:
    return f"/apis/reviews.test/{version}/namespaces/{NAMESPACE}/widgets"


def widget(version: str, name: str) -> dict[str, Any]:
    kind = {"apiVersion": f"reviews.test/{version}", "kind": "Widget"}
    return {**kind, "metadata": {"name": name}, "spec": {"size": 1}}


@pytest.fixture(scope="module")
def with_widgets(pair: Pair) -> Pair:
    """Both servers serve a custom resource in two versions."""
    for server in pair.servers:
        assert server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD).status == 201
        for version in ("v1", "v2"):
            give_up = time.monotonic() + 90
            while server.request("POST", f"{widgets(version)}?dryRun=All", widget(version, "probe")).status != 201:
                assert time.monotonic() < give_up, "the resource is never served"
    return pair


@pytest.mark.parametrize("policy", ["Equivalent", "Exact"])
@pytest.mark.parametrize("kind", ["mutating", "validating"])
def test_custom_resources_are_sent_in_the_version_of_the_rule(with_widgets: Pair, kind: str, policy: str) -> None:
    resources = ["widgets", "widgets/*"]
    rule = {"apiGroups": ["reviews.test"], "apiVersions": ["v2"], "resources": resources, "operations": ["*"]}
    with_widgets.hooks.responses["/widget"] = {"allowed": True}
    with_widgets.configure(kind, [with_widgets.hook("w", "/widget", [rule], matchPolicy=policy)])
    requests: list[Asked] = []
    for version in ("v1", "v2"):
        name = f"{kind}-{policy}-{version}".lower()
        requests += [
            create(widgets(version), widget(version, name)),
            patch(f"{widgets(version)}/{name}", "merge-patch+json", {"spec": {"size": 2}}),
            patch(f"{widgets(version)}/{name}/status", "merge-patch+json", {"status": {"size": 2}}),
            patch(f"{widgets(version)}/{name}/scale", "merge-patch+json", {"spec": {"replicas": 4}}),
            ("DELETE", f"{widgets(version)}/{name}", None, {}),
        ]

    embedded, real = with_widgets.tell(requests, "/widget")

    with_widgets.remove(kind)
    assert embedded == real
    assert len(embedded) == (10 if policy == "Equivalent" else 5)


def test_a_patch_in_another_version_is_converted_to_that_of_the_request(with_widgets: Pair) -> None:
    rule = {"apiGroups": ["reviews.test"], "apiVersions": ["v2"], "resources": ["widgets"], "operations": ["CREATE"]}
    changes = [{"op": "replace", "path": "/spec/size", "value": 9}, {"op": "add", "path": "/spec/bogus", "value": 1}]
    with_widgets.hooks.responses["/widget"] = patch_of(changes)
    with_widgets.configure("mutating", [with_widgets.hook("w", "/widget", [rule])])

    told = [outcome(server.request("POST", widgets("v1"), widget("v1", "changed"))) for server in with_widgets.servers]

    with_widgets.remove("mutating")
    assert told[0] == told[1]
    assert told[0][1]["spec"] == {"size": 9, "mode": "a"}
