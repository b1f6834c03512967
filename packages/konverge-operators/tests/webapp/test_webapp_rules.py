"""The rules of a WebApp beyond its schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_operators.webapp.rules import problems_of, repository_of
from webapps import webapp


@pytest.mark.parametrize(
    ("spec", "path", "words"),
    [
        ({"image": "nginx"}, ".spec.image", "needs a tag"),
        ({"image": "localhost:5000/nginx"}, ".spec.image", "needs a tag"),
        ({"image": "nginx:latest"}, ".spec.image", "latest"),
        ({"image": ":1"}, ".spec.image", "is no image"),
        ({"image": "ngi nx:1"}, ".spec.image", "is no image"),
        ({"replicas": 101}, ".spec.replicas", "101 replicas are more than the 100 allowed"),
        ({"autoscaling": {"maxReplicas": 101}}, ".spec.autoscaling.maxReplicas", "more than the 100"),
        ({"autoscaling": {"maxReplicas": 1, "minReplicas": 2}}, ".spec.autoscaling.minReplicas", "above maxReplicas 1"),
        ({"env": {"a=b": "c"}}, ".spec.env", "no name of a variable"),
        ({"ingress": {"host": "not a host"}}, ".spec.ingress.host", "RFC 1123"),
        ({"ingress": {"host": "a.example.com", "path": "x"}}, ".spec.ingress.path", "starts with a slash"),
        ({"resources": {"limits": {"cpu": "much"}}}, ".spec.resources.limits.cpu", "no amount"),
        ({"resources": {"limits": {"cpu": "-1"}}}, ".spec.resources.limits.cpu", "below zero"),
        (
            {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1500m"}}},
            ".spec.resources.requests.cpu",
            "above the limit",
        ),
    ],
)
def test_what_breaks_a_rule_is_said_with_its_path(spec: dict[str, Any], path: str, words: str) -> None:
    (problem,) = problems_of(webapp(**spec))
    assert problem.path == path
    assert words in problem.message


@pytest.mark.parametrize("name", ["1web", "w" * 64, "web.shop"])
def test_a_name_that_no_service_can_have_is_a_problem(name: str) -> None:
    assert {problem.path for problem in problems_of(webapp(name))} == {".metadata.name"}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"image": "localhost:5000/shop/nginx:1"},
        {"image": "nginx@sha256:" + "a" * 64},
        {"image": "nginx:latest@sha256:" + "a" * 64},
        {"replicas": 0},
        {"ingress": {"host": "*.example.com"}},
        {"resources": {"limits": {"cpu": 1}, "requests": {"cpu": "1000m"}}},
        {"env": {"A_B.c-d": "", "_x": "y"}},
    ],
)
def test_what_keeps_the_rules_has_no_problem(spec: dict[str, Any]) -> None:
    assert problems_of(webapp(**spec)) == []


@given(st.from_regex(r"([a-z]+(:[0-9]+)?/)?[a-z]+", fullmatch=True), st.from_regex(r"[a-z0-9.]+", fullmatch=True))
def test_a_repository_is_what_stays_when_tag_and_digest_go(repository: str, tag: str) -> None:
    assert repository_of(f"{repository}:{tag}") == repository
    assert repository_of(f"{repository}@sha256:{tag}") == repository
    assert repository_of(f"{repository}:{tag}@sha256:{tag}") == repository


@given(st.text(), st.dictionaries(st.text(), st.text()), st.dictionaries(st.text(), st.text()))
def test_no_spec_makes_the_rules_fail(image: str, env: dict[str, str], amounts: dict[str, str]) -> None:
    problems_of(webapp(image=image or "x", env=env, resources={"requests": amounts, "limits": amounts}))
