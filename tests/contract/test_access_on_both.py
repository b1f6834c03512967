"""Access: default roles, reviews, denials, escalation and bind checks are those of the real server, word for word."""

from __future__ import annotations

import json
from typing import Any

import pytest

from access_cases import AUTHORIZATION, DENIALS, RBAC, REVIEWS, binding, role, rule, urls, user
from access_settling import grant, wait_for_access
from two_servers import Api, masked

pytestmark = pytest.mark.control_plane

DEFAULTS = "labelSelector=kubernetes.io/bootstrapping%3Drbac-defaults"
NOBODY = "nobody-has-roles"


@pytest.mark.parametrize("plural", ["clusterroles", "clusterrolebindings", "roles", "rolebindings"])
def test_default_roles_and_bindings_are_equal(both: tuple[Api, Api], plural: str) -> None:
    ours, theirs = (masked(api.request("GET", f"{RBAC}/{plural}?{DEFAULTS}").json()["items"]) for api in both)

    assert len(theirs) > 5
    assert ours == theirs


@pytest.mark.parametrize("index", range(len(REVIEWS)))
def test_reviews_are_answered_alike(both: tuple[Api, Api], index: int) -> None:
    path, body = REVIEWS[index]

    ours, theirs = (api.request("POST", path, body) for api in both)

    assert (ours.status, masked(ours.json())) == (theirs.status, masked(theirs.json()))
    assert ours.warnings == theirs.warnings


@pytest.mark.parametrize(("method", "path"), DENIALS)
def test_denials_have_equal_texts(both: tuple[Api, Api], method: str, path: str) -> None:
    ours, theirs = (api.as_user(NOBODY).request(method, path) for api in both)

    assert theirs.status == 403
    assert (ours.status, ours.body) == (theirs.status, theirs.body)


def test_html_in_a_user_name_is_escaped(both: tuple[Api, Api]) -> None:
    ours, theirs = (api.as_user("<b>&").request("GET", "/api/v1/pods") for api in both)

    assert ours.json() == theirs.json()


def sorted_rules(status: Any) -> Any:
    """Sort rules: their order is that of bindings, which the real server reads from a hash table."""
    return {
        name: sorted(value, key=lambda each: json.dumps(each, sort_keys=True)) if isinstance(value, list) else value
        for name, value in status.items()
    }


def test_the_rules_of_a_user_are_listed_with_what_cannot_be_resolved(both: tuple[Api, Api]) -> None:
    name = f"lister-{both[0].namespace}"
    for api in both:
        grant(api, name, rule("get list", "pods", resourceNames=["a"]), urls("get", "/x"))
        api.request("POST", f"{RBAC}/clusterrolebindings", binding(f"{name}-gone", f"{name}-gone", user(name)))
        wait_for_access(api)

    found = []
    for api in both:
        for body in ({"spec": {"namespace": "default"}}, {"spec": {"namespace": api.namespace}}):
            reply = api.as_user(name).request("POST", f"{AUTHORIZATION}/selfsubjectrulesreviews", body)
            found.append((reply.status, {**reply.json(), "status": sorted_rules(reply.json()["status"])}))
    assert found[:2] == found[2:]
    assert "evaluationError" in found[0][1]["status"]


ESCALATIONS: list[tuple[str, str, Any]] = [
    ("POST", "clusterroles", role("a", rule("get", "pods"))),
    ("POST", "clusterroles", role("a", rule("get list", "pods secrets"), urls("get", "/x"))),
    ("POST", "clusterroles", role("a", rule("get", "pods", resourceNames=["x"]))),
    ("POST", "clusterroles", role("a", rule("get list", "secrets", resourceNames=["q", "r"]))),
    ("POST", "clusterroles", {"metadata": {"generateName": "a-"}, "rules": [rule("get", "secrets")]}),
    ("POST", "clusterroles", role("a", rule("*", "*", "*"))),
    ("POST", "clusterroles", role("named", rule("get", "secrets"))),
    ("PUT", "clusterroles/named", role("named", rule("get", "secrets"))),
    ("PUT", "clusterroles/other", role("other", rule("get", "secrets"))),
    ("POST", "clusterroles", role("a", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})),
    ("POST", "clusterroles", role("a", {"verbs": [], "apiGroups": [""], "resources": ["secrets"]})),
    ("POST", "clusterrolebindings", binding("a", "missing", user("x"))),
    ("POST", "clusterrolebindings", binding("a", "cluster-admin", user("x"))),
    ("POST", "clusterrolebindings", binding("a", "system:discovery", user("x"))),
    ("POST", "clusterrolebindings", binding("a", "bindable", user("x"))),
    ("POST", "clusterrolebindings", binding("a", "x", user("x"), kind="Strange")),
    ("POST", "namespaces/default/rolebindings", binding("a", "missing", user("x"), kind="Role")),
    ("POST", "namespaces/default/rolebindings", binding("a", "cluster-admin", user("x"))),
    ("POST", "namespaces/default/rolebindings", binding("a", "bindable", user("x"))),
    ("POST", "namespaces/default/roles", role("a", rule("get", "pods"))),
    ("POST", "namespaces/default/roles", role("a", rule("get", "configmaps"))),
]


@pytest.fixture
def writers(both: tuple[Api, Api]) -> list[Api]:
    """Both servers as a user who may write all roles and bindings, and has few other rights."""
    name = f"writer-{both[0].namespace}"
    rules = [
        rule("create update patch get delete", "*", "rbac.authorization.k8s.io"),
        rule("get", "pods"),
        rule("escalate", "clusterroles", "rbac.authorization.k8s.io", resourceNames=["named"]),
        rule("bind", "clusterroles", "rbac.authorization.k8s.io", resourceNames=["bindable"]),
    ]
    for api in both:
        grant(api, name, *rules)
        wait_for_access(api)
    return [api.as_user(name) for api in both]


def test_escalation_and_bind_are_checked_alike(writers: list[Api]) -> None:
    ours_of, theirs_of = writers
    statuses = set()
    for method, path, body in ESCALATIONS:
        ours, theirs = (api.request(method, f"{RBAC}/{path}?dryRun=All", body) for api in (ours_of, theirs_of))
        assert (ours.status, masked(ours.json())["message" if ours.status > 299 else "kind"]) == (
            theirs.status,
            masked(theirs.json())["message" if theirs.status > 299 else "kind"],
        ), (method, path, body)
        if ours.status > 299:
            assert ours.json() == theirs.json()
        statuses.add(theirs.status)
    assert statuses == {201, 403, 404, 422, 500}


def test_only_what_changes_is_checked(writers: list[Api], both: tuple[Api, Api]) -> None:
    name = f"kept-{both[0].namespace}"
    for api in both:
        body = role(
            name, rule("get", "secrets"), aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": name}}]}
        )
        assert api.request("POST", f"{RBAC}/clusterroles", body).status == 201

    for patch in ({"metadata": {"finalizers": ["example.com/f"]}}, {"metadata": {"labels": {"a": "b"}}}):
        ours, theirs = (
            api.request("PATCH", f"{RBAC}/clusterroles/{name}", patch, content_type="application/merge-patch+json")
            for api in writers
        )
        assert (ours.status, masked(ours.json())) == (theirs.status, masked(theirs.json()))
    for api in both:
        removed = {"metadata": {"finalizers": None}}
        api.request("PATCH", f"{RBAC}/clusterroles/{name}", removed, content_type="application/merge-patch+json")
        api.request("DELETE", f"{RBAC}/clusterroles/{name}")


EMPTY_ROLES: list[tuple[str, str, Any]] = [
    ("POST", "clusterroles", {}),
    ("POST", "clusterroles", {"rules": []}),
    ("POST", "clusterroles", {"rules": None}),
    ("POST", "clusterroles", {"rules": [], "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}),
    ("POST", "namespaces/default/roles", {}),
    ("POST", "namespaces/default/roles", {"rules": []}),
    ("PATCH", "clusterroles", {}),
    ("PATCH", "clusterroles", {"rules": []}),
    ("PATCH", "clusterroles", {"rules": None}),
]


@pytest.mark.parametrize(("method", "plural", "more"), EMPTY_ROLES)
def test_roles_without_rules_have_equal_managed_fields(
    both: tuple[Api, Api], method: str, plural: str, more: Any
) -> None:
    name = f"empty-{both[0].namespace}"
    body = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}, **more}
    body["kind"] = "ClusterRole" if plural == "clusterroles" else "Role"
    found = []
    for api in both:
        if method == "PATCH":
            path = f"{RBAC}/{plural}/{name}?fieldManager=me"
            reply = api.request("PATCH", path, body, content_type="application/apply-patch+yaml")
        else:
            reply = api.request("POST", f"{RBAC}/{plural}", body)
        read = api.request("GET", f"{RBAC}/{plural}/{name}").json()
        removed = api.request("DELETE", f"{RBAC}/{plural}/{name}")
        assert (reply.status, removed.status) == (201, 200)
        found.append([_managed(reply.json()), _managed(read)])
    assert found[0] == found[1]


def _managed(obj: Any) -> Any:
    return obj["rules"], [(each["operation"], each["fieldsV1"]) for each in obj["metadata"].get("managedFields", ())]


def test_the_role_of_a_binding_cannot_be_changed(both: tuple[Api, Api]) -> None:
    name = f"fixed-{both[0].namespace}"
    found = []
    for api in both:
        api.request("POST", f"{RBAC}/clusterrolebindings", binding(name, "view", user("x")))
        reply = api.request("PUT", f"{RBAC}/clusterrolebindings/{name}", binding(name, "edit", user("x")))
        api.request("DELETE", f"{RBAC}/clusterrolebindings/{name}")
        found.append((reply.status, reply.json()))
    assert found[0] == found[1]
    assert found[0][0] == 422
