"""Requests about access, for tests that compare the embedded server with a real one: reviews, denials, escalations."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

AUTHORIZATION = "/apis/authorization.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"

_SELF = f"{AUTHORIZATION}/selfsubjectaccessreviews"
_OTHER = f"{AUTHORIZATION}/subjectaccessreviews"
_LOCAL = f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews"
_ELSEWHERE = f"{AUTHORIZATION}/namespaces/nowhere/localsubjectaccessreviews"
_RULES = f"{AUTHORIZATION}/selfsubjectrulesreviews"
_PODS = {"verb": "get", "resource": "pods", "namespace": "default"}
_PATH = {"verb": "get", "path": "/version"}


def _selectors(**selectors: Json) -> tuple[str, Json]:
    return _SELF, {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods", **selectors}}}


def _requirements(*requirements: tuple[str, str, list[str]]) -> Json:
    fields = ("key", "operator", "values")
    return {"requirements": [dict(zip(fields, each, strict=True)) for each in requirements]}


_INVALID: tuple[tuple[str, str, list[str]], ...] = (("", "Foo", ["x"]), ("k", "Exists", ["x"]), ("k", "In", []))

REVIEWS: list[tuple[str, Any]] = [
    (_SELF, {"spec": {"resourceAttributes": _PODS}}),
    (_SELF, {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}}),
    (_SELF, {"spec": {"nonResourceAttributes": _PATH}, "status": {"allowed": True, "reason": "mine"}}),
    (_SELF, {"spec": {"nonResourceAttributes": {}}}),
    (_SELF, {"spec": {"resourceAttributes": {}}}),
    (_SELF, {}),
    (_SELF, []),
    (_SELF, {"spec": {"resourceAttributes": {"verb": 7}}}),
    (_SELF, {"spec": {"unknown": 1, "nonResourceAttributes": _PATH}}),
    (_SELF, {"metadata": {"name": "x"}, "spec": {}}),
    (_SELF, {"metadata": {"namespace": "x"}, "spec": {"nonResourceAttributes": _PATH}}),
    (_SELF, {"metadata": {"labels": {"a": "b"}}, "spec": {"nonResourceAttributes": _PATH, "resourceAttributes": {}}}),
    (f"{_SELF}?dryRun=All&fieldManager=me&pretty=true", {"spec": {"nonResourceAttributes": _PATH}}),
    (f"{_SELF}?dryRun=some", {"spec": {"nonResourceAttributes": _PATH}}),
    _selectors(fieldSelector={"rawSelector": "metadata.name=x"}, labelSelector={"rawSelector": "a in (b)"}),
    _selectors(fieldSelector={"rawSelector": "foo"}, labelSelector={"rawSelector": "a in ("}),
    _selectors(labelSelector={"rawSelector": "a in ("}),
    _selectors(fieldSelector={}, labelSelector={}),
    _selectors(fieldSelector=_requirements(("a", "In", ["x"])) | {"rawSelector": "a=x"}),
    _selectors(fieldSelector=_requirements(*_INVALID), labelSelector=_requirements(*_INVALID)),
    _selectors(labelSelector=_requirements(("a", "In", ["x!"]))),
    _selectors(fieldSelector=_requirements(("a", "In", ["x", "y"])), labelSelector=_requirements(("a", "Foo", []))),
    _selectors(labelSelector=_requirements(("a", "Foo", ["x"]), ("b", "In", ["x"]))),
    (_OTHER, {"spec": {"resourceAttributes": _PODS}}),
    (_OTHER, {"spec": {"user": "bob"}}),
    (_OTHER, {"spec": {"user": "bob", "groups": ["system:masters"], "resourceAttributes": _PODS}}),
    (_OTHER, {"spec": {"groups": ["system:authenticated"], "nonResourceAttributes": {"verb": "get", "path": "/apis"}}}),
    (_OTHER, {"spec": {"user": "bob", "uid": "1", "extra": {"a": ["b"]}, "resourceAttributes": _PODS}}),
    (_LOCAL, {"spec": {"user": "bob", "resourceAttributes": _PODS}}),
    (_LOCAL, {"metadata": {"namespace": "default"}, "spec": {"user": "bob", "resourceAttributes": _PODS}}),
    (_LOCAL, {"metadata": {"namespace": "other"}, "spec": {"user": "bob", "resourceAttributes": _PODS}}),
    (_LOCAL, {"spec": {"user": "bob", "resourceAttributes": _PODS | {"namespace": "other"}}}),
    (_LOCAL, {"spec": {"user": "bob", "nonResourceAttributes": _PATH}}),
    (_LOCAL, {"metadata": {"name": "x"}, "spec": {"resourceAttributes": {}}}),
    (
        _LOCAL.replace("default", "nowhere"),
        {"spec": {"user": "b", "resourceAttributes": _PODS | {"namespace": "nowhere"}}},
    ),
    (f"{AUTHORIZATION}/localsubjectaccessreviews", {"spec": {"user": "bob", "resourceAttributes": _PODS}}),
    (_RULES, {"spec": {}}),
    (_RULES, {"metadata": {"name": "x"}, "spec": {}}),
]
"""Path and body of reviews, by the admin."""

DENIALS: list[tuple[str, str]] = [
    ("GET", "/api/v1/pods"),
    ("GET", "/api/v1/pods?watch=1"),
    ("GET", "/api/v1/watch/pods"),
    ("GET", "/api/v1/nodes/a"),
    ("GET", "/api/v1/namespaces/default"),
    ("GET", "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dx"),
    ("DELETE", "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dx"),
    ("GET", "/api/v1/namespaces/default/pods/x/log"),
    ("PUT", "/apis/apps/v1/namespaces/default/deployments/web/scale"),
    ("PATCH", "/apis/apps/v1/namespaces/default/deployments/web"),
    ("DELETE", "/apis/apps/v1/namespaces/default/deployments/web"),
    ("POST", "/api/v1/namespaces"),
    ("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"),
    ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
    ("GET", "/api/v1/nothing"),
    ("GET", "/apis/nothing.example.com/v1/things/a/b"),
    ("GET", "/nothing"),
    ("POST", "/version"),
    ("GET", "/metrics"),
    ("GET", "/logs/"),
]
"""Requests that a user without roles may not send."""


def role(name: str, *rules: Json, **more: Any) -> Json:
    """Return a role; a rule may be written as `rule(...)`."""
    return {"metadata": {"name": name}, "rules": list(rules), **more}


def rule(verbs: str, resources: str, group: str = "", **more: Any) -> Json:
    """Return a rule for resources of one group; verbs and resources are separated by spaces."""
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split(), **more}


def urls(verbs: str, paths: str) -> Json:
    """Return a rule for paths that are not resources."""
    return {"nonResourceURLs": paths.split(), "verbs": verbs.split()}


def binding(name: str, role_name: str, *subjects: Json, kind: str = "ClusterRole") -> Json:
    """Return a binding."""
    reference = {"apiGroup": GROUP, "kind": kind, "name": role_name}
    return {"metadata": {"name": name}, "roleRef": reference, "subjects": list(subjects)}


def user(name: str) -> Json:
    """Return the subject of a user."""
    return {"kind": "User", "name": name, "apiGroup": GROUP}
