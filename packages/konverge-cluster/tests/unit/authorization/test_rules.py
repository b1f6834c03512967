"""Rules: what one allows, and what several do not cover."""

from __future__ import annotations

import pytest

from konverge_cluster.api.authorization import Attributes, UserInfo
from konverge_cluster.authorization.rules import Rule, compact, uncovered

BOB = UserInfo("bob")
DEPLOYMENTS = Rule(("get", "list"), ("apps",), ("deployments", "*/scale"))


def resource(verb: str, resource: str, group: str = "apps", *, name: str = "") -> Attributes:
    plural, _, subresource = resource.partition("/")
    return Attributes(BOB, verb, "", group, "v1", plural, subresource, "default", name)


def path(verb: str, url: str) -> Attributes:
    return Attributes(BOB, verb, url, resource_request=False)


@pytest.mark.parametrize(
    ("rule", "attributes", "allowed"),
    [
        (DEPLOYMENTS, resource("get", "deployments"), True),
        (DEPLOYMENTS, resource("watch", "deployments"), False),
        (DEPLOYMENTS, resource("get", "deployments", ""), False),
        (DEPLOYMENTS, resource("get", "deployments/status"), False),
        (DEPLOYMENTS, resource("get", "statefulsets/scale"), True),
        (DEPLOYMENTS, resource("get", "scale"), False),
        (Rule(("*",), ("*",), ("*",)), resource("any", "thing/part", "other.io"), True),
        (Rule(("get",), ("",), ("pods/*",)), resource("get", "pods/log", ""), False),
        (Rule(("get",), ("",), ("pods",), ("a", "b")), resource("get", "pods", "", name="b"), True),
        (Rule(("get",), ("",), ("pods",), ("a", "b")), resource("get", "pods", "", name="c"), False),
        (Rule(("list",), ("",), ("pods",), ("a",)), resource("list", "pods", ""), False),
        (Rule(("*",), ("*",), ("*",)), path("get", "/version"), False),
        (Rule(("get",), urls=("/healthz/*",)), path("get", "/healthz/ping"), True),
        (Rule(("get",), urls=("/healthz/*",)), path("get", "/healthz"), False),
        (Rule(("get",), urls=("/healthz*",)), path("get", "/healthz"), True),
        (Rule(("get",), urls=("*",)), path("get", "/anything"), True),
        (Rule(("get",), urls=("*",)), path("post", "/anything"), False),
        (Rule(("get",), urls=("*",)), resource("get", "pods"), False),
    ],
)
def test_a_rule_allows_what_matches_in_every_part(rule: Rule, attributes: Attributes, allowed: bool) -> None:
    assert rule.allows(attributes) is allowed


@pytest.mark.parametrize(
    ("needed", "owned", "missing"),
    [
        (Rule(("get",), ("",), ("pods",)), Rule(("*",), ("*",), ("*",)), []),
        (Rule(("get", "list"), ("",), ("pods",)), Rule(("get",), ("",), ("pods",)), ["list pods"]),
        (Rule(("get",), ("",), ("pods/log",)), Rule(("get",), ("",), ("*/log",)), []),
        (Rule(("get",), ("",), ("pods",)), Rule(("get",), ("",), ("*/log",)), ["get pods"]),
        (Rule(("get",), ("",), ("pods",), ("a",)), Rule(("get",), ("",), ("pods",)), []),
        (Rule(("get",), ("",), ("pods",)), Rule(("get",), ("",), ("pods",), ("a",)), ["get pods"]),
        (Rule(("get",), ("",), ("pods",), ("a", "b")), Rule(("get",), ("",), ("pods",), ("a",)), ["get pods b"]),
        (Rule(("*",), ("",), ("pods",)), Rule(("get", "list"), ("",), ("pods",)), ["* pods"]),
        (Rule(("get",), urls=("/a/b", "/c")), Rule(("get",), urls=("/a/*",)), ["get /c"]),
        (Rule(("get",), urls=("*",)), Rule(("*",), urls=("*",)), []),
    ],
)
def test_what_is_not_covered_is_split_into_single_rules(needed: Rule, owned: Rule, missing: list[str]) -> None:
    found = [" ".join((*each.verbs, *each.resources, *each.names, *each.urls)) for each in uncovered([needed], [owned])]

    assert found == missing


def test_verbs_of_the_same_resource_are_merged_for_a_message() -> None:
    split = uncovered([Rule(("get", "list"), ("",), ("pods", "secrets")), Rule(("get",), urls=("/x",))], [])

    assert sorted(map(str, compact(split))) == [
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}',
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}',
        '{NonResourceURLs:["/x"], Verbs:["get"]}',
    ]
