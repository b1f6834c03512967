"""Validation against a topology, and its error texts."""

from __future__ import annotations

from typing import Any

import pytest

from konverge_cluster.patches import Topology
from konverge_cluster.patches.validation import ValidationError, validate


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"bogus": 1}, ".spec.bogus: field not declared in schema"),
        ({"items": [{"name": "a", "bogus": 1}]}, '.spec.items[name="a"].bogus: field not declared in schema'),
        ({"items": {"name": "a"}}, ".spec.items: expected list, got &{map[name:a]}"),
        ({"labels": ["a"]}, ".spec.labels: expected map, got &{[a]}"),
        ({"size": True}, ".spec.size: expected numeric (int or float), got bool"),
        ({"size": [1]}, ".spec.size: expected numeric (int or float), got []interface {}"),
        (
            {"name": {"a": "b"}},
            '.spec.name: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":"b"}}',
        ),
        ({"atoms": ["a", 1]}, ".spec.atoms[1]: expected string, got &value.valueUnstructured{Value:1}"),
        ({"tags": ["a", "a"]}, '.spec.tags: duplicate entries for key [="a"]'),
        (
            {"tags": [None]},
            ".spec.tags: element 0: associative list without keys has an element that's an explicit null",
        ),
        ({"tags": [{}]}, ".spec.tags: element 0: associative list without keys has an element that's a map type"),
        ({"tags": [[]]}, ".spec.tags: element 0: not supported: associative list with lists as elements"),
        ({"items": [None]}, ".spec.items: element 0: associative list with keys may not have a null element"),
        ({"items": [1]}, ".spec.items: element 0: associative list with keys may not have non-map elements"),
        (
            {"items": [{"value": "x"}]},
            '.spec.items: element 0: associative list with keys has an element that omits all key fields ["name"] '
            "(and doesn't have default values for any key fields)",
        ),
        (
            {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]},
            '.spec.ports: duplicate entries for key [port=1,protocol="TCP"]',
        ),
    ],
)
def test_validation_errors_have_a_path(widget_topology: Topology, spec: Any, text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        validate(widget_topology.root, {"spec": spec})
    assert str(caught.value) == text


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {"size": None, "items": None, "labels": None},
        {"free": [1, {"a": None}]},
        {"ports": [{"note": "x"}]},
        {"size": 1.5},
    ],
)
def test_nulls_and_open_values_are_valid(widget_topology: Topology, spec: Any) -> None:
    validate(widget_topology.root, {"spec": spec})


def test_duplicates_can_be_allowed(widget_topology: Topology) -> None:
    validate(widget_topology.root, {"spec": {"tags": ["a", "a"]}}, allow_duplicates=True)


def test_several_errors_are_listed(widget_topology: Topology) -> None:
    with pytest.raises(ValidationError) as caught:
        validate(widget_topology.root, {"spec": {"size": "1"}, "status": {"phase": 1}})
    assert str(caught.value).splitlines() == [
        "errors:",
        "  .spec.size: expected numeric (int or float), got string",
        "  .status.phase: expected string, got &value.valueUnstructured{Value:1}",
    ]
