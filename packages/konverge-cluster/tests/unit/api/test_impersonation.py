"""Impersonation: whom the headers name, which rights are needed, and what a denial says."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from konverge.wire.messages import Request
from konverge_cluster import EmbeddedServer
from konverge_cluster.api.authorization import AUTHENTICATED, Attributes, Decision, UserInfo
from konverge_cluster.api.impersonation import requested_user
from konverge_cluster.api.status_errors import StatusError

ALICE = UserInfo("alice", (AUTHENTICATED,))
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class Rights:
    """An authorizer with a rule; whoever is not the requesting user may do everything."""

    def __init__(self, rule: Callable[[Attributes], bool]) -> None:
        self._rule = rule
        self.asked: list[str] = []

    def authorize(self, attributes: Attributes) -> Decision:
        if attributes.user.name != "alice":
            return Decision(allowed=True)
        resource = "/".join(part for part in (attributes.resource, attributes.subresource) if part)
        self.asked.append(f"{attributes.verb} {attributes.group} {resource} {attributes.namespace} {attributes.name}")
        return Decision(self._rule(attributes))


async def act_as(headers: dict[str, str], rule: Callable[[Attributes], bool]) -> tuple[UserInfo | str, Rights]:
    """Return the user that alice acts as, or the error; and what was asked."""
    server = EmbeddedServer()
    rights = Rights(rule)
    server.cluster.authorizer = rights
    response = await server.handle(
        Request("POST", REVIEW, (), {"content-type": "application/json", **headers}, body=b"{}"), ALICE
    )
    document = json.loads(response.body)
    if response.status != 201:
        return f"{response.status} {document['message']}", rights
    info = document["status"]["userInfo"]
    extra = {key: tuple(values) for key, values in info.get("extra", {}).items()}
    return UserInfo(info["username"], tuple(info.get("groups", ())), info.get("uid", ""), extra), rights


def legacy(attributes: Attributes) -> bool:
    return attributes.verb == "impersonate"


async def test_the_legacy_right_is_asked_for_each_part() -> None:
    headers = {
        "impersonate-user": "bob",
        "impersonate-group": "a\nb",
        "impersonate-uid": "7",
        "impersonate-extra-acme.com%2fproject": "x\ny",
    }
    user, rights = await act_as(headers, legacy)

    assert user == UserInfo("bob", ("a", "b", AUTHENTICATED), "7", {"acme.com/project": ("x", "y")})
    assert [line for line in rights.asked if line.startswith("impersonate ")] == [
        "impersonate  users  bob",
        "impersonate authentication.k8s.io uids  7",
        "impersonate  groups  a",
        "impersonate  groups  b",
        "impersonate authentication.k8s.io userextras/acme.com/project  x",
        "impersonate authentication.k8s.io userextras/acme.com/project  y",
    ]


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("system:serviceaccount:shop:web", ("system:serviceaccounts", "system:serviceaccounts:shop", AUTHENTICATED)),
        ("system:serviceaccount:shop", (AUTHENTICATED,)),
        ("system:anonymous", ("system:unauthenticated",)),
    ],
)
async def test_groups_follow_from_the_name(name: str, groups: tuple[str, ...]) -> None:
    user, _ = await act_as({"impersonate-user": name}, legacy)
    assert user == UserInfo(name, groups)


async def test_a_constrained_right_needs_the_verb_of_the_request_too() -> None:
    def only_name(attributes: Attributes) -> bool:
        return attributes.verb == "impersonate:user-info"

    def both(attributes: Attributes) -> bool:
        return attributes.verb in ("impersonate:user-info", "impersonate-on:user-info:create")

    denied, _ = await act_as({"impersonate-user": "bob"}, only_name)
    assert denied == (
        '403 selfsubjectreviews.authentication.k8s.io is forbidden: User "alice" cannot impersonate-on:user-info:create'
        ' resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope'
    )
    allowed, rights = await act_as({"impersonate-user": "bob"}, both)
    assert allowed == UserInfo("bob", (AUTHENTICATED,))
    assert rights.asked[-1] == "impersonate:user-info authentication.k8s.io users  bob"


async def test_a_constrained_right_never_makes_an_admin() -> None:
    def constrained(attributes: Attributes) -> bool:
        return attributes.verb.startswith(("impersonate:", "impersonate-on:"))

    headers = {"impersonate-user": "bob", "impersonate-group": "system:masters"}
    denied, _ = await act_as(headers, constrained)
    assert denied == (
        '403 groups.authentication.k8s.io "system:masters" is forbidden: User "alice" cannot impersonate:user-info'
        ' resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters'
        " group is not allowed"
    )
    allowed, _ = await act_as(headers, legacy)
    assert isinstance(allowed, UserInfo)


async def test_a_node_gets_its_group_only_by_a_constrained_right() -> None:
    headers = {"impersonate-user": "system:node:a"}
    constrained, rights = await act_as(headers, lambda attributes: "arbitrary-node" in attributes.verb)
    assert constrained == UserInfo("system:node:a", ("system:nodes", AUTHENTICATED))
    assert rights.asked[-1] == "impersonate:arbitrary-node authentication.k8s.io nodes  a"
    user, _ = await act_as(headers, legacy)
    assert user == UserInfo("system:node:a", (AUTHENTICATED,))


async def test_extra_keys_of_a_constrained_right_have_a_domain() -> None:
    def constrained(attributes: Attributes) -> bool:
        return attributes.verb.startswith(("impersonate:", "impersonate-on:"))

    denied, _ = await act_as({"impersonate-user": "bob", "impersonate-extra-scopes": "a"}, constrained)
    assert isinstance(denied, str)
    assert denied.endswith(
        "impersonating an invalid key in extra is not allowed: extra.key: Invalid value:"
        ' "scopes": must be a domain-prefixed path (such as "acme.io/foo")'
    )


async def test_the_rights_of_the_impersonated_user_count_then() -> None:
    server = EmbeddedServer()

    class OnlyAlice:
        def authorize(self, attributes: Attributes) -> Decision:
            return Decision(attributes.user.name == "alice")

    server.cluster.authorizer = OnlyAlice()
    response = await server.handle(Request("GET", "/api/v1/pods", (), {"impersonate-user": "bob"}), ALICE)
    assert json.loads(response.body)["message"].startswith('pods is forbidden: User "bob" cannot list resource "pods"')


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        (
            {"impersonate-group": "a"},
            'Groups:[]string{"a"}, Extra:map[string][]string(nil)}',
        ),
        (
            {"impersonate-extra-y": "b\nc", "impersonate-extra-x": "a"},
            'Groups:[]string(nil), Extra:map[string][]string{"x":[]string{"a"}, "y":[]string{"b", "c"}}}',
        ),
    ],
)
def test_groups_and_extra_values_need_a_name(headers: dict[str, str], text: str) -> None:
    with pytest.raises(StatusError) as raised:
        requested_user(headers)
    assert str(raised.value) == (
        f'requested &user.DefaultInfo{{Name:"", UID:"", {text} without impersonating a user name'
    )


def test_other_headers_name_nobody() -> None:
    assert requested_user({"accept": "application/json", "impersonate-user": ""}) is None
