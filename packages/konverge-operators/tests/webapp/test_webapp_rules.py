"""The rules of a WebApp beyond its schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_operators.webapp.rules import find_violations, repository_of
from webapps import webapp


@pytest.mark.parametrize(
    ("spec", "path", "text"),
    [
        ({"image": "nginx"}, ".spec.image", "needs a tag"),
        ({"image": "localhost:5000/nginx"}, ".spec.image", "needs a tag"),
        ({"image": "nginx:latest"}, ".spec.image", "latest"),
        ({"image": ":1"}, ".spec.image", "is not a valid image"),
        ({"image": "ngi nx:1"}, ".spec.image", "is not a valid image"),
        (
            {"autoscaling": {"maxReplicas": 1, "minReplicas": 2}},
            ".spec.autoscaling.minReplicas",
            "greater than maxReplicas 1",
        ),
        ({"env": {"a=b": "c"}}, ".spec.env", "not a valid variable name"),
        ({"ingress": {"host": "not a host"}}, ".spec.ingress.host", "RFC 1123"),
        ({"ingress": {"host": "a.example.com", "path": "x"}}, ".spec.ingress.path", "must start with a slash"),
        ({"resources": {"limits": {"cpu": "much"}}}, ".spec.resources.limits.cpu", "not a valid quantity"),
        ({"resources": {"limits": {"cpu": "-1"}}}, ".spec.resources.limits.cpu", "is negative"),
        (
            {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1500m"}}},
            ".spec.resources.requests.cpu",
            "greater than the limit",
        ),
    ],
)
def test_a_violation_has_a_path_and_a_message(spec: dict[str, Any], path: str, text: str) -> None:
    (violation,) = find_violations(webapp(**spec))
    assert violation.path == path
    assert text in violation.message


@pytest.mark.parametrize("name", ["1web", "w" * 64, "web.shop"])
def test_a_name_that_no_service_can_have_is_a_violation(name: str) -> None:
    assert {violation.path for violation in find_violations(webapp(name))} == {".metadata.name"}


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
def test_a_valid_spec_has_no_violation(spec: dict[str, Any]) -> None:
    assert find_violations(webapp(**spec)) == []


@given(st.from_regex(r"([a-z]+(:[0-9]+)?/)?[a-z]+", fullmatch=True), st.from_regex(r"[a-z0-9.]+", fullmatch=True))
def test_the_repository_is_the_image_without_tag_and_digest(repository: str, tag: str) -> None:
    assert repository_of(f"{repository}:{tag}") == repository
    assert repository_of(f"{repository}@sha256:{tag}") == repository
    assert repository_of(f"{repository}:{tag}@sha256:{tag}") == repository


@given(st.text(), st.dictionaries(st.text(), st.text()), st.dictionaries(st.text(), st.text()))
def test_the_rules_raise_for_no_spec(image: str, env: dict[str, str], amounts: dict[str, str]) -> None:
    find_violations(webapp(image=image or "x", env=env, resources={"requests": amounts, "limits": amounts}))
