"""Request scripts: requests that are sent to two servers in order; the responses must be equal.

A script is a list of steps; a step is a method, a path and optionally a body and headers. In paths `{ns}` is the test's
namespace, `{cm}` its ConfigMaps and `{dep}` its Deployments.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

__all__ = ["SCRIPTS", "Step"]

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@dataclass(frozen=True)
class Step:
    """One request."""

    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


def get(path: str, **headers: str) -> Step:
    return Step("GET", path, None, headers)


def post(path: str, body: Any, **headers: str) -> Step:
    return Step("POST", path, body, headers)


def put(path: str, body: Any, **headers: str) -> Step:
    return Step("PUT", path, body, headers)


def patch(path: str, body: Any, kind: str = MERGE) -> Step:
    return Step("PATCH", path, body, {"content_type": kind})


def delete(path: str, body: Any = None) -> Step:
    return Step("DELETE", path, body)


def until(path: str) -> Step:
    """Repeat a GET until it succeeds: the real server does some things asynchronously."""
    return Step("UNTIL", path)


def named(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **more}


def config(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "data": {"k": "v"}}


DEPLOYMENT = {
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 0,
        "selector": {
            "matchLabels": {"a": "b"},
            "matchExpressions": [{"key": "z", "operator": "In", "values": ["2", "1"]}],
        },
        "template": {
            "metadata": {"labels": {"a": "b", "z": "1"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "s"}}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
PODS = "/api/v1/namespaces/{ns}/pods"
EVENTS = "/api/v1/namespaces/{ns}/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/{ns}/events"
ABOUT = {"kind": "ConfigMap", "namespace": "{ns}", "name": "c"}

GROUP = "{ns}.ex.io"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/widgets"


def widget(name: str, version: str = "v1", **more: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Widget", "metadata": {"name": name}, **more}


def widget_version(name: str, **more: Any) -> dict[str, Any]:
    fields = {"size": {"type": "integer", "maximum": 10}, "color": {"type": "string", "default": "red"}}
    spec = {"type": "object", "description": name, "properties": fields}
    status = {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    return {"name": name, "served": True, "schema": {"openAPIV3Schema": schema}, **more}


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wi"], "categories": ["all"]},
        "versions": [
            widget_version(
                "v1",
                storage=True,
                subresources={
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.size",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                selectableFields=[{"jsonPath": ".spec.color"}],
                additionalPrinterColumns=[{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
            ),
            widget_version("v2", storage=False, deprecated=True),
        ],
    },
}

SCRIPTS: dict[str, list[Step]] = {
    "bodies that are no object": [
        post("{cm}", "{bad json"),
        post("{cm}", "[]"),
        post("{cm}", "null"),
        post("{cm}", "1"),
        post("{cm}", ""),
        post("{cm}", '"x"'),
        post("{cm}", '{"metadata":{"name":"x"}} x'),
        post("{cm}", '{"metadata":{"name":"x"}'),
        post("{cm}", '{"metadata":{"name":"x",}}'),
        post("{cm}", '{"metadata":{"name":"x"} "a"}'),
        post("{cm}", '{"metadata":{"name" "x"}}'),
        post("{cm}", '{"metadata":[1 2]}'),
        post("{cm}", '{"metadata":01}'),
        post("{cm}", '{"metadata":1.}'),
        post("{cm}", '{"metadata":1e}'),
        post("{cm}", '{"metadata":-}'),
        post("{cm}", '{"metadata":trux}'),
        post("{cm}", '{"metadata":nul'),
        post("{cm}", '{"metadata":"a\nb"}'),
        post("{cm}", '{"metadata":"\\x"}'),
        post("{cm}", '{"metadata":"\\u12g4"}'),
        post("{cm}", "{'a':1}"),
        post("{cm}", '{"metadata":' * 100),
        post("{cm}", "metadata: {name: yy\n", content_type="application/yaml"),
        post("{cm}", "<x/>", content_type="application/xml"),
        post("{cm}", "a", content_type="text/plain"),
        get("{cm}"),
    ],
    "kinds that do not fit": [
        post("{cm}", named("x", kind="Foo", apiVersion="v1")),
        post("{cm}", named("x", kind="ConfigMap", apiVersion="v2")),
        post("{cm}", named("x", kind="Deployment", apiVersion="apps/v1")),
        post("{cm}", named("x", kind="Pod", apiVersion="v1")),
        post("{dep}", named("x", kind="Pod", apiVersion="v1")),
        post("{cm}", named("x", kind=1)),
        post("{cm}", named("x", apiVersion={})),
        post("{cm}", named("only-kind", kind="ConfigMap")),
        post("{cm}", named("only-version", apiVersion="v1")),
    ],
    "metadata of the wrong type": [
        post("{cm}", {"metadata": {"name": "x", "labels": {"a": 1}}}),
        post("{cm}", {"metadata": {"name": "x", "labels": []}}),
        post("{cm}", {"metadata": {"name": 1}}),
        post("{cm}", {"metadata": "x"}),
        post("{cm}", {"metadata": []}),
        post("{cm}", {"metadata": {"name": "x", "creationTimestamp": "foo"}}),
        post("{cm}", {"metadata": {"name": "x", "creationTimestamp": 1}}),
        post("{cm}", {"metadata": {"name": "x", "generation": 1.5}}),
        post("{cm}", {"metadata": {"name": "x", "generation": "1"}}),
        post("{cm}", {"metadata": {"name": "x", "generation": -1}}),
        post("{cm}", {"metadata": {"name": "x", "ownerReferences": [{"apiVersion": 1, "foo": 1}]}}),
        post("{cm}", {"metadata": {"name": "x", "ownerReferences": {}}}),
        post("{cm}", {"metadata": {"name": "x", "ownerReferences": [1]}}),
        post("{cm}", {"metadata": {"name": "x", "ownerReferences": [{"controller": "x"}]}}),
        post("{cm}", {"metadata": {"name": "x", "finalizers": "a"}}),
        post("{cm}", {"metadata": {"name": "x", "finalizers": [1]}}),
        post("{cm}", {"metadata": {"name": "x", "managedFields": [{"manager": 1}]}}),
        post("{cm}", {"metadata": {"name": "x", "annotations": {"a": {}}}}),
        post("{cm}", {"metadata": None}),
        post("{cm}", {"metadata": {"name": "nulls", "labels": {"a": None}, "annotations": None, "finalizers": None}}),
        get("{cm}"),
    ],
    "metadata that is not valid": [
        post("{cm}", named("A_B")),
        post("{cm}", named("a" * 254)),
        post("{cm}", named("a..b")),
        post("{cm}", {"metadata": {}}),
        post("{cm}", config("c", namespace="other")),
        post("{cm}", config("c", resourceVersion="5")),
        post("{cm}", config("d", labels={"bad label!": "x"})),
        post("{cm}", config("d", labels={"a/b/c": "x"})),
        post("{cm}", config("d", labels={"/a": "x"})),
        post("{cm}", config("d", labels={"A_/a": "x"})),
        post("{cm}", config("d", labels={"a/": "x"})),
        post("{cm}", config("d", labels={"a": "x" * 64})),
        post("{cm}", config("d", labels={"a" * 64: "x"})),
        post("{cm}", config("d", annotations={"bad ann!": "x"})),
        post("{cm}", config("d", annotations={"A/b": "x"})),
        post("{cm}", config("d", annotations={"a": "x" * 262144})),
        post("{cm}", config("d", finalizers=["a"])),
        post("{cm}", config("d", finalizers=["a b/c"])),
        post("{cm}", config("d", finalizers=["orphan", "foregroundDeletion"])),
        post("{cm}", config("d", ownerReferences=[{"apiVersion": "v1"}])),
        post("{cm}", config("d", ownerReferences=[{"kind": "x", "name": "n", "uid": "1"}])),
        post("{cm}", config("d", ownerReferences=[{"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "1"}])),
        post(
            "{cm}",
            config(
                "d",
                ownerReferences=[
                    {"apiVersion": "v1", "kind": "Pod", "name": "n", "uid": uid, "controller": True} for uid in "12"
                ],
            ),
        ),
        post("{cm}", config("d", managedFields=[{"operation": "Foo", "apiVersion": "v1", "fieldsType": "X"}])),
        post("{cm}", config("d", selfLink="/x", generation=7, uid="u", creationTimestamp="2020-01-01T00:00:00Z")),
        post("{cm}", config("e", deletionTimestamp="2020-01-01T00:00:00Z", deletionGracePeriodSeconds=3)),
        post(
            "{cm}",
            config(
                "f",
                ownerReferences=[
                    {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "1", "blockOwnerDeletion": False}
                    for name in "aba"
                ],
            ),
        ),
        get("{cm}"),
    ],
    "strictness": [
        post("{cm}?fieldValidation=Strict", {"metadata": {"name": "x", "foo": 1}, "bogus": 1}),
        post("{cm}?fieldValidation=Warn", {"metadata": {"name": "x", "foo": 1}, "bogus": 1}),
        post("{cm}?fieldValidation=Ignore", {"metadata": {"name": "y", "foo": 1}, "bogus": 1}),
        post("{cm}", {"metadata": {"name": "z", "ownerReferences": [{"foo": 1}]}}),
        post("{cm}", '{"metadata":{"name":"dup"},"data":{"a":"1","a":"2"}}'),
        post("{cm}?fieldValidation=Strict", '{"metadata":{"name":"dup2"},"data":{"a":"1","a":"2"}}'),
        post("{cm}?fieldValidation=Ignore", '{"metadata":{"name":"dup3"},"data":{"a":"1","a":"2"}}'),
        post("{cm}", "metadata: {name: yy}\nmetadata: {name: y2}\n", content_type="application/yaml"),
        post("{cm}", "metadata: {name: y3}\ndata: {a: 1, b: yes}\n", content_type="application/yaml"),
        post("{cm}", "metadata: {name: y4}\ndata: {a: 2026-01-01}\n", content_type="application/yaml"),
        post("{cm}", "---\nmetadata: {name: y5}\n---\n{}", content_type="application/yaml"),
        post("{cm}?fieldValidation=Bogus", named("x")),
        put("{cm}/x?fieldValidation=Strict", {"metadata": {"name": "x"}, "bogus": 1}),
        patch("{cm}/x?fieldValidation=Warn", {"bogus": 1}),
        get("{cm}"),
    ],
    "options of writes": [
        post("{cm}?dryRun=Bogus", named("x")),
        post("{cm}?dryRun=All&dryRun=All", named("x")),
        post("{cm}?fieldManager=" + "a" * 129, named("x")),
        post("{cm}?fieldManager=a%0Ab", named("x")),
        post("{cm}?fieldManager=me", config("m")),
        put("{cm}/m?dryRun=All", {"metadata": {"name": "m"}, "data": {"k": "v2"}}),
        patch("{cm}/m?dryRun=All", {"data": {"k": "v3"}}),
        patch("{cm}/m?force=true", {"data": {"k": "v3"}}),
        patch("{cm}/m", {"data": {"k": "v3"}}, APPLY),
        put("{cm}/m?dryRun=Bogus&fieldValidation=Bogus", named("m")),
        delete("{cm}/m?dryRun=All"),
        delete("{cm}/m?dryRun=Bogus"),
        get("{cm}"),
    ],
    "replacing": [
        post("{cm}", config("a")),
        put("{cm}/a", {"metadata": {"name": "a"}, "data": {"k": "v2"}}),
        put("{cm}/a", {"metadata": {"name": "a"}, "data": {"k": "v2"}}),
        put("{cm}/a", {"metadata": {"name": "a", "resourceVersion": "1"}, "data": {}}),
        put("{cm}/a", {"metadata": {"name": "a", "resourceVersion": "abc"}, "data": {}}),
        put("{cm}/a", {"metadata": {"name": "a", "resourceVersion": "0"}, "data": {"k": "v3"}}),
        put("{cm}/a", {"metadata": {"name": "a", "uid": "1234"}, "data": {}}),
        put("{cm}/a", {"metadata": {"name": "b"}, "data": {}}),
        put("{cm}/a", {"metadata": {}, "data": {}}),
        put("{cm}/a", {"metadata": {"name": "a", "namespace": "other"}}),
        put("{cm}/nope", named("nope")),
        put("{cm}/nope", {"metadata": {"name": "nope", "uid": "1"}}),
        put("{cm}/a", {"metadata": {"name": "a", "labels": {"x!": "1"}}}),
        put("{cm}/a", {"metadata": {"name": "a", "generation": 5, "creationTimestamp": "2001-01-01T00:00:00Z"}}),
        put("{cm}/a", {"metadata": {"name": "a", "deletionTimestamp": "2001-01-01T00:00:00Z"}}),
        get("{cm}/a"),
    ],
    "patching": [
        post("{cm}", config("a")),
        patch("{cm}/a", {"data": {"k": "p1", "n": None}}),
        patch("{cm}/a", {"data": {"k": "p1"}}),
        patch("{cm}/a", [{"op": "test", "path": "/data/k", "value": "zzz"}], JSON_PATCH),
        patch("{cm}/a", [{"op": "remove", "path": "/data/missing"}], JSON_PATCH),
        patch("{cm}/a", [{"op": "replace", "path": "/data/k", "value": "r"}], JSON_PATCH),
        patch("{cm}/a", {"op": "x"}, JSON_PATCH),
        patch("{cm}/a", "{bad", JSON_PATCH),
        patch("{cm}/a", "{bad", MERGE),
        patch("{cm}/a", "{bad", STRATEGIC),
        patch("{cm}/a", "[]", MERGE),
        patch("{cm}/a", "[]", STRATEGIC),
        patch("{cm}/a", {"data": {"k": "s"}}, STRATEGIC),
        patch("{cm}/a", {"data": {}}, "application/json"),
        patch("{cm}/a", {"metadata": {"resourceVersion": "1"}, "data": {"q": "1"}}),
        patch("{cm}/a", {"metadata": {"uid": "1"}}),
        patch("{cm}/a", {"metadata": {"name": "q"}}),
        patch("{cm}/a", {"metadata": {"namespace": "q"}}),
        patch("{cm}/a", {"metadata": {"name": None}}),
        patch("{cm}/zzz", {"data": {}}),
        patch("{cm}/a", {"metadata": {"labels": {"a": "!"}}}),
        patch("{cm}/a", [{"op": "add", "path": "/metadata/labels", "value": {}}] * 10001, JSON_PATCH),
        get("{cm}/a"),
    ],
    "applying": [
        patch("{cm}/a?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "1"}}, APPLY),
        patch("{cm}/a?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", **config("a")}, APPLY),
        patch("{cm}/a?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", **config("a")}, APPLY),
        patch("{cm}/a?fieldManager=n", {"apiVersion": "v1", "kind": "ConfigMap", **named("a", data={"k": "2"})}, APPLY),
        patch(
            "{cm}/a?fieldManager=n&force=true",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: '2'}",
            APPLY,
        ),
        patch("{cm}/a?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", **named("a")}, APPLY),
        patch("{cm}/a?fieldManager=m", {"metadata": {"name": "a"}}, APPLY),
        patch("{cm}/a?fieldManager=m", {"apiVersion": "v2", "kind": "ConfigMap", **named("a")}, APPLY),
        patch("{cm}/a?fieldManager=m", "{bad", APPLY),
        patch("{cm}/a?fieldManager=m", "a string", APPLY),
        patch("{cm}/a?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", **named("b")}, APPLY),
        patch(
            "{cm}/a?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", **config("a", managedFields=[])}, APPLY
        ),
        patch("{cm}/c?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", **config("c", uid="1")}, APPLY),
        patch(
            "{cm}/c?fieldManager=m",
            {"apiVersion": "v1", "kind": "ConfigMap", **config("c", resourceVersion="1")},
            APPLY,
        ),
        get("{cm}"),
    ],
    "deleting": [
        post("{cm}", config("a")),
        delete("{cm}/nope"),
        delete("{cm}/a", {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "bad"}}),
        delete("{cm}/a", {"preconditions": {"resourceVersion": "1"}}),
        delete("{cm}/a", {"propagationPolicy": "Bogus"}),
        delete("{cm}/a", {"orphanDependents": True, "propagationPolicy": "Orphan"}),
        delete("{cm}/a", {"kind": "Foo", "apiVersion": "v1"}),
        delete("{cm}/a", "{bad"),
        delete("{cm}/a", {"gracePeriodSeconds": "1"}),
        delete("{cm}/a", {"foo": 1, "dryRun": ["All"]}),
        delete("{cm}/a?gracePeriodSeconds=a"),
        delete("{cm}/a?propagationPolicy=Foo"),
        delete("{cm}/a"),
        delete("{cm}/a"),
        post("{cm}", config("b")),
        delete("{cm}/b", {"propagationPolicy": "Foreground"}),
        get("{cm}/b"),
        delete("{cm}/b"),
        patch("{cm}/b", {"metadata": {"finalizers": None}}),
        get("{cm}/b"),
        post("{cm}", config("o")),
        delete("{cm}/o", {"propagationPolicy": "Orphan"}),
        delete("{cm}/o", {"propagationPolicy": "Background"}),
        get("{cm}/o"),
        delete("{cm}?labelSelector=a%3Db"),
        post("{cm}", config("l1", labels={"a": "b"})),
        post("{cm}", config("l2", labels={"a": "b"})),
        delete("{cm}?labelSelector=a%3Db&dryRun=All"),
        delete("{cm}?labelSelector=a%3Db"),
        get("{cm}?labelSelector=a%3Db"),
    ],
    "finalizers": [
        post("{cm}", config("f", finalizers=["ex.io/a", "ex.io/b"])),
        delete("{cm}/f"),
        delete("{cm}/f"),
        post("{cm}", config("f")),
        patch("{cm}/f", {"metadata": {"finalizers": ["ex.io/a", "ex.io/b", "ex.io/c"]}}),
        patch("{cm}/f", {"data": {"edited": "yes"}}),
        patch("{cm}/f", {"metadata": {"deletionTimestamp": None}}),
        patch("{cm}/f", {"metadata": {"finalizers": ["ex.io/a"]}}),
        patch("{cm}/f?dryRun=All", {"metadata": {"finalizers": None}}),
        get("{cm}/f"),
        patch("{cm}/f", {"metadata": {"finalizers": None}}),
        get("{cm}/f"),
    ],
    "selectors": [
        post("{cm}", config("a", labels={"app": "w", "n": "1"})),
        post("{cm}", config("b", labels={"app": "w", "n": "2"})),
        post("{cm}", config("c")),
        get("{cm}?labelSelector=app%3Dw"),
        get("{cm}?labelSelector=app%3Dw,n!%3D1"),
        get("{cm}?labelSelector=!app"),
        get("{cm}?labelSelector=app"),
        get("{cm}?labelSelector=n+in+(1,3)"),
        get("{cm}?labelSelector=n+notin+(1,3)"),
        get("{cm}?labelSelector=n>1"),
        get("{cm}?labelSelector=a%3D%3D%3Db"),
        get("{cm}?labelSelector=a!b"),
        get("{cm}?labelSelector=a+in+1"),
        get("{cm}?labelSelector=A_/b"),
        get("{cm}?labelSelector=,"),
        get("{cm}?fieldSelector=metadata.name%3Da"),
        get("{cm}?fieldSelector=metadata.name!%3Da"),
        get("{cm}?fieldSelector=metadata.namespace%3Dx"),
        get("{cm}?fieldSelector=data.k%3Db"),
        get("{cm}?fieldSelector=foo"),
        get("{cm}?fieldSelector=metadata.name%3Da,metadata.name%3Db"),
    ],
    "options of lists": [
        get("{cm}?limit=abc"),
        get("{cm}?limit=99999999999999999999"),
        get("{cm}?limit=-1"),
        get("{cm}?continue=abc"),
        get("{cm}?continue=!!"),
        get("{cm}?continue=e30"),
        get("{cm}?resourceVersion=0&resourceVersionMatch=Exact"),
        get("{cm}?resourceVersionMatch=NotOlderThan"),
        get("{cm}?resourceVersionMatch=Bogus&resourceVersion=1"),
        get("{cm}?resourceVersion=1&resourceVersionMatch=Exact&continue=abc"),
        get("{cm}?resourceVersion=abc"),
        get("{cm}?resourceVersion=-1"),
        get("{cm}?sendInitialEvents=true"),
        get("{cm}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
        get("{cm}?watch=1&sendInitialEvents=true"),
        get("{cm}?watch=1&resourceVersion=5&resourceVersionMatch=Exact"),
        get("{cm}?watch=1&resourceVersion=abc"),
        get("{cm}?watch=1&labelSelector=a%3D%3D%3Db"),
        get("{cm}?watch=1&timeoutSeconds=abc"),
        get("{cm}?watch=1&continue=abc&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
    ],
    "pages": [
        *[post("{cm}", config(f"w{index}", labels={"app": "w"})) for index in range(5)],
        get("{cm}?limit=2"),
        get("{cm}?limit=5"),
        get("{cm}?limit=6"),
        get("{cm}?limit=2&labelSelector=app%3Dw"),
        get("{cm}?limit=2&resourceVersion=0"),
    ],
    "paths and methods": [
        get("/api/v1/nonexist"),
        get("/apis/foo.example.com/v1"),
        get("/apis/foo.example.com/v1/things"),
        get("/nonsense"),
        get("/api/v2"),
        get("/api/v2/pods"),
        get("/apis/apps/v2"),
        get("/apis/apps/v2/deployments"),
        get("{cm}/nope"),
        get("{dep}/nope"),
        get("{dep}/nope/scale"),
        get("{dep}/nope/status"),
        get("{dep}/d/nope"),
        get("{cm}/x/status"),
        post("/api/v1/configmaps", {}),
        delete("/api/v1/configmaps"),
        put("{cm}", {}),
        patch("{cm}", {}),
        post("{cm}/a", {}),
        get("/api/v1/namespaces/{ns}/namespaces"),
        get("/api/v1/configmaps/x"),
        get("/api/v1/namespaces/{ns}/nodes"),
        Step("FOO", "{cm}/x"),
        Step("OPTIONS", "{cm}/x"),
        post("/api", {}),
        post("/version", {}),
        post("/apis/apps/v1", {}),
        get("/healthz"),
        get("/livez/ping"),
        get("/healthz/nope"),
        post("/api/v1/namespaces/nons/configmaps", named("x")),
        get("/api/v1/namespaces/nons/configmaps"),
        get("/api/v1/namespaces/nons/configmaps/x"),
        delete("/api/v1/namespaces/default"),
        post("/api/v1/namespaces", named("A_B")),
        post("/api/v1/namespaces", named("a.b")),
    ],
    "forms of answers": [
        post("{cm}", config("a", labels={"l": "1"})),
        get("{cm}", accept="application/foo"),
        get("{cm}/a", accept="application/yaml"),
        get("{cm}", accept=PARTIALS),
        get("{cm}/a", accept=PARTIAL),
        get("{cm}", accept=PARTIAL),
        get("{cm}/a", accept=PARTIALS),
        get("{cm}/a", accept="application/json;as=Foo;v=v1;g=meta.k8s.io"),
        get("{cm}", accept=TABLE),
        get("{cm}/a", accept=TABLE),
        get("{cm}?includeObject=None", accept=TABLE),
        get("{cm}?includeObject=Object", accept=TABLE),
        get("{cm}?includeObject=Bogus", accept=TABLE),
        get("{cm}", accept=TABLE.replace("v=v1", "v=v1beta1")),
        get("{cm}/a?pretty=true"),
        get("{cm}/a", user_agent="curl/8"),
        get("{cm}/a?pretty=false", user_agent="curl/8"),
        get("{cm}/a", accept="*/*"),
        get("{cm}/a", accept="application/*"),
        get("{cm}/a", accept="text/html, application/json;q=0.5, */*;q=0.1"),
        get("{cm}/nope", accept="application/yaml"),
        get("{cm}/nope", user_agent="curl/8"),
        get("{cm}/nope?pretty=1"),
        get("{cm}?watch=1", accept="application/yaml"),
        get("{cm}/a?watch=1"),
        delete("{cm}/a"),
    ],
    "scale": [
        post("{dep}", DEPLOYMENT),
        get("{dep}/d/scale"),
        put("{dep}/d/scale", named("d", spec={"replicas": 3})),
        put("{dep}/d/scale", named("d", spec={"replicas": 3})),
        put("{dep}/d/scale", named("d", spec={"replicas": -1})),
        put("{dep}/d/scale", named("d")),
        put("{dep}/d/scale", named("x")),
        put("{dep}/d/scale", {"metadata": {"name": "d", "resourceVersion": "1"}}),
        put("{dep}/d/scale", {"metadata": {"name": "d", "uid": "1"}}),
        put("{dep}/d/scale?fieldValidation=Strict", named("d", spec={"replicas": 3, "foo": 1})),
        patch("{dep}/d/scale", {"spec": {"replicas": 5}}),
        patch("{dep}/d/scale", {"spec": {"replicas": 5}}, STRATEGIC),
        patch("{dep}/d/scale", [{"op": "replace", "path": "/spec/replicas", "value": 4}], JSON_PATCH),
        patch(
            "{dep}/d/scale?fieldManager=x",
            named("d", apiVersion="autoscaling/v1", kind="Scale", spec={"replicas": 6}),
            APPLY,
        ),
        patch(
            "{dep}/d/scale?fieldManager=x&force=true",
            named("d", apiVersion="autoscaling/v1", kind="Scale", spec={"replicas": 6}),
            APPLY,
        ),
        get("{dep}/d"),
        get("{dep}/d/scale", accept=TABLE),
        put("{dep}/nope/scale", named("nope", spec={"replicas": 3})),
        post("{dep}/d/scale", {}),
        delete("{dep}/d/scale"),
    ],
    "status": [
        post("{dep}", json.loads(json.dumps(DEPLOYMENT)) | {"status": {"replicas": 9}}),
        patch("{dep}/d", {"status": {"replicas": 7}}),
        patch(
            "{dep}/d/status", {"status": {"replicas": 7}, "spec": {"replicas": 9}, "metadata": {"labels": {"a": "b"}}}
        ),
        patch("{dep}/d/status", {"metadata": {"annotations": {"a": "b"}}}),
        patch("{dep}/d", {"spec": {"replicas": 2}}),
        patch("{dep}/d", {"metadata": {"labels": {"x": "y"}}}),
        get("{dep}/d/status"),
        put("{dep}/d/status", {"metadata": {"name": "d", "resourceVersion": "1"}}),
        post("{dep}/d/status", {}),
        delete("{dep}/d", {"propagationPolicy": "Foreground"}),
        get("{dep}/d"),
    ],
    "pods": [
        post("/api/v1/namespaces/{ns}/serviceaccounts", named("s")),
        post(PODS, POD),
        get(f"{PODS}/p"),
        post(f"{PODS}/p/binding", {"metadata": {"name": "x"}, "target": {"name": "n"}}),
        post(f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {}}),
        post(f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}),
        post(f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n2"}}),
        post(f"{PODS}/nope/binding", {"metadata": {"name": "nope"}, "target": {"kind": "Node", "name": "n2"}}),
        get(f"{PODS}?fieldSelector=spec.nodeName%3Dn1,status.phase%3DPending"),
        get(f"{PODS}?fieldSelector=spec.nope%3Dn1"),
        patch(f"{PODS}/p/status", {"status": {"phase": "Running"}}),
        post(f"{PODS}/nope/eviction", {"metadata": {"name": "nope"}}),
        post(f"{PODS}/p/eviction", {"metadata": {"name": "p"}}),
        get(f"{PODS}/p"),
        delete(f"{PODS}/p", {"gracePeriodSeconds": 40}),
        delete(f"{PODS}/p", {"gracePeriodSeconds": 10}),
        delete(f"{PODS}/p", {"gracePeriodSeconds": 0}),
        get(f"{PODS}/p"),
        post(PODS, POD),
        delete(f"{PODS}/p"),
        get(f"{PODS}/p"),
        delete(PODS),
    ],
    "leases": [
        put(f"{LEASES}/l", named("l", spec={"holderIdentity": "me", "leaseDurationSeconds": 15})),
        put(f"{LEASES}/l", named("l", spec={"holderIdentity": "you"})),
        patch(f"{LEASES}/l", {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}),
        put(f"{LEASES}/l", named("l", spec={"renewTime": "2026-01-01T00:00:00Z"})),
        put(f"{LEASES}/l", {"metadata": {"name": "l", "resourceVersion": "1"}}),
        put(f"{LEASES}/m", {"metadata": {"name": "m", "resourceVersion": "1"}, "spec": {}}),
        put(f"{LEASES}/n", {"metadata": {"name": "n", "uid": "1"}, "spec": {}}),
        get(LEASES),
        get(LEASES, accept=TABLE),
    ],
    "events": [
        post(EVENTS, named("a", involvedObject=ABOUT, reason="R", message="m", type="Normal")),
        get(f"{NEW_EVENTS}/a"),
        post(EVENTS, named("b", involvedObject=ABOUT | {"namespace": "other"})),
        post(NEW_EVENTS, named("c", regarding=ABOUT, reason="R", note="n", type="Normal", action="A")),
        post(
            NEW_EVENTS,
            named(
                "c",
                regarding=ABOUT,
                reason="R",
                note="n",
                type="Warning",
                action="A",
                eventTime="2026-01-01T00:00:00.000000Z",
                reportingController="ex.io/c",
                reportingInstance="i",
            ),
        ),
        get(f"{EVENTS}/c"),
        get(f"{EVENTS}?fieldSelector=involvedObject.name%3Dc,type%3DWarning"),
        get(f"{NEW_EVENTS}?fieldSelector=regarding.name%3Dc"),
        get(f"{EVENTS}?fieldSelector=nope%3Dc"),
        delete(f"{NEW_EVENTS}/a"),
        get(f"{EVENTS}/a"),
    ],
    "namespaces": [
        post("/api/v1/namespaces", named("{ns}-x", spec={"finalizers": ["ex.io/f"]})),
        get("/api/v1/namespaces/{ns}-x"),
        post("/api/v1/namespaces/{ns}-x/configmaps", named("a")),
        delete("/api/v1/namespaces/{ns}-x"),
        get("/api/v1/namespaces/{ns}-x"),
        post("/api/v1/namespaces/{ns}-x/configmaps", named("b")),
        put("/api/v1/namespaces/{ns}-x/configmaps/a", named("a", data={"k": "v"})),
        delete("/api/v1/namespaces/{ns}-x/configmaps/a"),
        delete("/api/v1/namespaces/{ns}-x"),
        put("/api/v1/namespaces/{ns}-x/finalize", named("{ns}-x", spec={"finalizers": ["kubernetes"]})),
        put("/api/v1/namespaces/{ns}-x/finalize", named("{ns}-x", spec={})),
        get("/api/v1/namespaces/{ns}-x"),
        delete("/api/v1/namespaces"),
    ],
    "custom resources": [
        post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION),
        until(WIDGETS),
        get(f"/apis/{GROUP}"),
        get(f"/apis/{GROUP}/v1"),
        get(f"/apis/{GROUP}/v2"),
        get(f"/apis/{GROUP}/v3"),
        get(f"/apis/{GROUP}/v3/widgets"),
        get(f"/apis/{GROUP}/v1/gadgets"),
        get(f"/apis/{GROUP}/v1/widgets/w"),
        get(WIDGETS),
        post(WIDGETS, widget("w", spec={"size": 2}, status={"replicas": 3})),
        post(WIDGETS, widget("w", spec={"size": 2})),
        post(WIDGETS, widget("A_B", spec={"size": 2})),
        post(WIDGETS, {"metadata": {"name": "x"}}),
        post(WIDGETS, {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": "x"}}),
        post(WIDGETS, widget("x", "v2")),
        post(WIDGETS, widget("x", "v9", spec={"size": 1})),
        post(WIDGETS, widget("x", spec={"size": "big"})),
        post(f"{WIDGETS}?fieldValidation=Strict", widget("x", spec={"bogus": 1}) | {"metadata": {"name": "x", "y": 1}}),
        post(WIDGETS, widget("x", spec={"bogus": 1})),
        post(WIDGETS, "{bad"),
        post(WIDGETS, "[]"),
        post(WIDGETS, "", content_type="text/plain"),
        post(WIDGETS, widget("x") | {"metadata": {"name": "y", "labels": {"a": 1}}}),
        post(WIDGETS, widget("x") | {"metadata": {"name": "y", "finalizers": ["odd"]}}),
        get(WIDGETS),
        get(f"{WIDGETS}?limit=1"),
        get(f"{WIDGETS}?fieldSelector=spec.color%3Dred"),
        get(f"{WIDGETS}?fieldSelector=spec.size%3D2"),
        get(WIDGETS, accept=TABLE),
        get(WIDGETS, accept=PARTIALS),
        get(f"{WIDGETS}/w", accept=PARTIAL),
        get(f"{WIDGETS}/w", accept="application/yaml"),
        get(WIDGETS, accept="application/foo"),
        get(f"{WIDGETS}/w".replace("/v1/", "/v2/")),
        get(WIDGETS.replace("/v1/", "/v2/")),
        put(f"{WIDGETS}/w", widget("w", spec={"size": 3})),
        put(f"{WIDGETS}/w", widget("w", spec={"size": 3}) | {"metadata": {"name": "w", "resourceVersion": "1"}}),
        put(f"{WIDGETS}/nope", widget("nope")),
        put(WIDGETS, {}),
        patch(f"{WIDGETS}/w", {"spec": {"size": 4}}),
        patch(f"{WIDGETS}/w", {"spec": {"size": 4}}),
        patch(f"{WIDGETS}/w", {"spec": {"size": 99}}),
        patch(f"{WIDGETS}/w", {"spec": {"size": 5}}, STRATEGIC),
        patch(f"{WIDGETS}/w", {"status": {"replicas": 5}}),
        patch(f"{WIDGETS}/w", {"metadata": {"labels": {"a": "b"}}}),
        patch(f"{WIDGETS}/w/status", {"status": {"replicas": 5, "selector": "a=b"}, "spec": {"size": 9}}),
        patch(f"{WIDGETS}/w/status", {"metadata": {"labels": {"c": "d"}}}),
        get(f"{WIDGETS}/w/status"),
        get(f"{WIDGETS}/w/scale"),
        put(f"{WIDGETS}/w/scale", named("w", kind="Scale", apiVersion="autoscaling/v1", spec={"replicas": 6})),
        patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 7}}),
        get(f"{WIDGETS}/x/scale"),
        get(f"{WIDGETS}/w/nope"),
        patch(f"{WIDGETS}/w?fieldManager=m&force=true", widget("w", spec={"size": 6}), APPLY),
        patch(f"{WIDGETS}/w?fieldManager=n", widget("w", spec={"size": 8}), APPLY),
        patch(f"{WIDGETS}/w?fieldManager=n&force=true", widget("w", spec={"size": 8}), APPLY),
        patch(f"{WIDGETS}/new?fieldManager=n", widget("new", spec={"size": 1}), APPLY),
        patch(f"{WIDGETS}/new?fieldManager=n", widget("new", "v2", spec={"size": 1}), APPLY),
        get(f"{WIDGETS}/w"),
        patch(f"{WIDGETS}/w", {"metadata": {"finalizers": ["ex.io/f"]}}),
        delete(f"{WIDGETS}/w"),
        patch(f"{WIDGETS}/w", {"metadata": {"finalizers": None}}),
        get(f"{WIDGETS}/w"),
        delete(f"{WIDGETS}/x", {"propagationPolicy": "Foreground"}),
        patch(f"{WIDGETS}/x", {"metadata": {"finalizers": []}}),
        delete(WIDGETS),
        delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{GROUP}"),
    ],
}
