"""Authorization: what the authorizer is asked about a request, and how a denial is reported."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from konverge.wire.messages import Request
from konverge_cluster import EmbeddedServer
from konverge_cluster.api.authorization import AUTHENTICATED, Attributes, Decision, UserInfo
from konverge_cluster.api.request_info import request_attributes
from konverge_cluster.api.routes import route

ALICE = UserInfo("alice", ("devs", AUTHENTICATED))
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Allowed:
    """An authorizer that allows some verbs and records what it was asked."""

    def __init__(self, verbs: Iterable[str] = (), reason: str = "") -> None:
        self.verbs = set(verbs)
        self.reason = reason
        self.asked: list[Attributes] = []

    def authorize(self, attributes: Attributes) -> Decision:
        self.asked.append(attributes)
        return Decision(attributes.verb in self.verbs, self.reason)


def server_with(authorizer: Allowed) -> EmbeddedServer:
    server = EmbeddedServer(seed=1)
    server.cluster.authorizer = authorizer
    return server


async def send(
    server: EmbeddedServer, method: str, path: str, body: Any = None, *, content_type: str = "application/json"
) -> tuple[int, Any]:
    content = b"" if body is None else json.dumps(body).encode()
    query = (("fieldManager", "m"),) if method == "PATCH" else ()
    response = await server.handle(Request(method, path, query, {"content-type": content_type}, body=content), ALICE)
    return response.status, json.loads(await response.read())


def attributes(method: str, url: str) -> str:
    """Return the attributes of a request as one line, without what is empty."""
    path, _, query = url.partition("?")
    pairs = tuple(tuple(each.split("=", 1)) for each in query.split("&") if each)
    found = request_attributes(Request(method, path, pairs, {}), route(path), ALICE)  # type: ignore[arg-type]
    assert found.user is ALICE
    if not found.resource_request:
        return f"{found.verb} {found.path}"
    resource = f"{found.resource}/{found.subresource}".rstrip("/")
    where = f"{found.group}/{found.version} {resource} ns={found.namespace} name={found.name}"
    return f"{found.verb} {where} {found.field_selector} {found.label_selector}".rstrip()


@pytest.mark.parametrize(
    ("method", "url", "expected"),
    [
        ("GET", "/api/v1/namespaces/a/pods/x", "get /v1 pods ns=a name=x"),
        ("HEAD", "/api/v1/namespaces/a/pods/x", "get /v1 pods ns=a name=x"),
        ("GET", "/api/v1/pods", "list /v1 pods ns= name="),
        ("GET", "/api/v1/pods?watch=1", "watch /v1 pods ns= name="),
        ("GET", "/api/v1/pods?watch=false", "list /v1 pods ns= name="),
        ("GET", "/api/v1/watch/namespaces/a/pods", "watch /v1 pods ns=a name="),
        ("DELETE", "/api/v1/namespaces/a/pods", "deletecollection /v1 pods ns=a name="),
        ("DELETE", "/api/v1/namespaces/a/pods/x", "delete /v1 pods ns=a name=x"),
        ("PUT", "/apis/apps/v1/namespaces/a/deployments/x/status", "update apps/v1 deployments/status ns=a name=x"),
        ("PATCH", "/apis/apps/v1/namespaces/a/deployments/x/scale", "patch apps/v1 deployments/scale ns=a name=x"),
        ("POST", "/apis/example.com/v1/unknowns", "create example.com/v1 unknowns ns= name="),
        ("OPTIONS", "/api/v1/pods", " /v1 pods ns= name="),
        # A namespace is in itself.
        ("GET", "/api/v1/namespaces/a", "get /v1 namespaces ns=a name=a"),
        ("PUT", "/api/v1/namespaces/a/finalize", "update /v1 namespaces/finalize ns=a name=a"),
        ("GET", "/api/v1/namespaces", "list /v1 namespaces ns= name="),
        # A rule for one name allows a list and a watch of that name.
        (
            "GET",
            "/api/v1/pods?fieldSelector=metadata.name=x&labelSelector=a",
            "list /v1 pods ns= name=x metadata.name=x a",
        ),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name!=x", "list /v1 pods ns= name= metadata.name!=x"),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name=a/b", "list /v1 pods ns= name= metadata.name=a/b"),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name", "list /v1 pods ns= name= metadata.name"),
        (
            "DELETE",
            "/api/v1/namespaces/a/pods?fieldSelector=metadata.name=x",
            "deletecollection /v1 pods ns=a name= metadata.name=x",
        ),
        ("GET", "/api/v1/namespaces/a/pods/x?labelSelector=a", "get /v1 pods ns=a name=x"),
        ("GET", "/apis/apps/v1", "get /apis/apps/v1"),
        ("GET", "/api/v1", "get /api/v1"),
        ("POST", "/healthz", "post /healthz"),
    ],
)
def test_the_attributes_of_a_request(method: str, url: str, expected: str) -> None:
    assert attributes(method, url) == expected


async def test_a_denial_has_the_text_of_the_real_server() -> None:
    server = server_with(Allowed())

    code, status = await send(server, "GET", CONFIG_MAPS)
    assert code == 403
    assert status["message"] == (
        'configmaps is forbidden: User "alice" cannot list resource "configmaps" in API group ""'
        ' in the namespace "default"'
    )
    assert status["details"] == {"kind": "configmaps"}
    assert status["reason"] == "Forbidden"

    _, status = await send(server, "GET", "/apis/apps/v1/namespaces/a/deployments/x/status")
    assert status["message"] == (
        'deployments.apps "x" is forbidden: User "alice" cannot get resource "deployments/status" in API group "apps"'
        ' in the namespace "a"'
    )
    _, status = await send(server, "DELETE", "/api/v1/nodes/x")
    assert status["message"].endswith('cannot delete resource "nodes" in API group "" at the cluster scope')
    _, status = await send(server, "GET", "/a<b")
    assert status["message"] == 'forbidden: User "alice" cannot get path "/a&lt;b"'
    assert status["details"] == {}


async def test_the_reason_of_a_denial_follows_the_text() -> None:
    _, status = await send(server_with(Allowed(reason="not today")), "GET", "/api/v1/nodes/x")
    assert status["message"].endswith("at the cluster scope: not today")


async def test_a_denied_user_does_not_learn_what_is_served_or_stored() -> None:
    server = server_with(Allowed())
    paths = ("/apis/example.com/v1/unknowns", "/apis/apps/v1/unknowns", f"{CONFIG_MAPS}/missing")
    assert [(await send(server, "GET", path))[0] for path in paths] == [403, 403, 403]
    assert (await send(server, "POST", CONFIG_MAPS, "not an object"))[0] == 403


async def test_an_apply_that_creates_needs_the_right_to_create() -> None:
    authorizer = Allowed({"patch", "update"})
    server = server_with(authorizer)
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}

    code, status = await send(
        server, "PATCH", f"{CONFIG_MAPS}/a", document, content_type="application/apply-patch+yaml"
    )
    assert code == 403
    assert status["message"] == (
        'configmaps "a" is forbidden: User "alice" cannot create resource "configmaps" in API group ""'
        ' in the namespace "default"'
    )
    assert [each.verb for each in authorizer.asked] == ["patch", "create"]
    assert authorizer.asked[-1].name == "a"


async def test_an_update_that_creates_needs_the_right_to_create() -> None:
    authorizer = Allowed({"update"})
    server = server_with(authorizer)
    role = {"metadata": {"name": "a"}, "rules": []}
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/a"

    assert (await send(server, "PUT", path, role))[0] == 403
    authorizer.verbs.add("create")
    assert (await send(server, "PUT", path, role))[0] == 201
    authorizer.verbs.remove("create")
    assert (await send(server, "PUT", path, role))[0] == 200
