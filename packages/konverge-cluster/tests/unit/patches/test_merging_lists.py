"""The order of merged lists."""

from __future__ import annotations

from typing import Any

import pytest

from konverge_cluster.patches import Topology
from konverge_cluster.patches.merging import merge, remove


def merged(topology: Topology, live: str, config: str) -> str:
    result = merge(topology.root, {"spec": {"tags": list(live)}}, {"spec": {"tags": list(config)}})
    return "".join(result["spec"]["tags"])


@pytest.mark.parametrize(
    ("live", "config", "result"),
    [
        ("abc", "b", "abc"),
        ("abc", "cb", "acb"),
        ("abc", "xb", "axbc"),
        ("abc", "bx", "abcx"),
        ("abc", "", "abc"),
        ("", "ba", "ba"),
        ("ab", "cd", "abcd"),
        ("adbc", "cab", "dcab"),
        ("aab", "ac", "acb"),
    ],
)
def test_items_keep_the_order_of_both_lists(widget_topology: Topology, live: str, config: str, result: str) -> None:
    assert merged(widget_topology, live, config) == result


def test_shared_items_are_merged_in_the_order_of_the_configuration(widget_topology: Topology) -> None:
    live = {"spec": {"items": [{"name": "a", "value": "1"}, {"name": "b"}]}}
    config = {"spec": {"items": [{"name": "b", "value": "2"}, {"name": "a"}]}}
    assert merge(widget_topology.root, live, config)["spec"]["items"] == [
        {"name": "b", "value": "2"},
        {"name": "a", "value": "1"},
    ]


@pytest.mark.parametrize("nothing", [None, {}, []])
def test_an_empty_granular_container_changes_nothing(widget_topology: Topology, nothing: Any) -> None:
    name = "tags" if nothing == [] else "labels"
    live = {"spec": {"labels": {"a": "1"}, "tags": ["x"]}}
    assert merge(widget_topology.root, live, {"spec": {name: nothing}}) is live


def test_a_container_that_loses_all_its_parts_is_null(widget_topology: Topology) -> None:
    live = {"spec": {"labels": {"a": "1"}, "items": [{"name": "a", "words": ["x"]}], "size": 1}}
    fields = {"f:spec": {"f:labels": {"f:a": {}}, "f:items": {'k:{"name":"a"}': {"f:words": {'v:"x"': {}}}}}}
    assert remove(widget_topology.root, live, fields) == {
        "spec": {"labels": None, "items": [{"name": "a", "words": None}], "size": 1}
    }
