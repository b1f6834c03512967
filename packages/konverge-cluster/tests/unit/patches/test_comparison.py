"""Changed fields, and the fields of a configuration, as field sets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge_cluster.patches import Topology
from konverge_cluster.patches.comparison import compare, fields_of, same
from konverge_cluster.patches.field_sets import FieldSet, difference, union
from konverge_cluster.patches.merging import merge, remove


def changes(topology: Topology, old: Any, new: Any) -> tuple[FieldSet, FieldSet]:
    changed, removed = compare(topology.root, {"spec": old}, {"spec": new})
    return changed.get("f:spec", {}), removed.get("f:spec", {})


def test_an_added_container_is_changed_itself_and_in_its_parts(widget_topology: Topology) -> None:
    new = {"items": [{"name": "a", "words": ["x"]}], "labels": {"k": "v"}}
    changed, removed = changes(widget_topology, {}, new)
    assert changed == {
        "f:items": {".": {}, 'k:{"name":"a"}': {".": {}, "f:name": {}, "f:words": {".": {}, 'v:"x"': {}}}},
        "f:labels": {".": {}, "f:k": {}},
    }
    assert removed == {}
    assert changes(widget_topology, new, {}) == ({}, changed)


def test_a_container_on_both_sides_is_changed_in_its_parts_only(widget_topology: Topology) -> None:
    changed, removed = changes(widget_topology, {"labels": {"a": "1", "b": "1"}}, {"labels": {"a": "2", "c": "1"}})
    assert (changed, removed) == ({"f:labels": {"f:a": {}, "f:c": {}}}, {"f:labels": {"f:b": {}}})


def test_atomic_values_are_one_field(widget_topology: Topology) -> None:
    old, new = {"whole": {"a": "1"}, "atoms": ["x"]}, {"whole": {"a": "2"}, "atoms": ["x", "y"]}
    assert changes(widget_topology, old, new) == ({"f:whole": {}, "f:atoms": {}}, {})
    assert changes(widget_topology, {}, new) == ({"f:whole": {}, "f:atoms": {}}, {})


def test_missing_keys_of_items_are_completed_by_their_defaults(widget_topology: Topology) -> None:
    changed, removed = changes(widget_topology, {"ports": [{"port": 1}]}, {"ports": [{"port": 1, "protocol": "TCP"}]})
    assert (changed, removed) == ({"f:ports": {'k:{"port":1,"protocol":"TCP"}': {"f:protocol": {}}}}, {})


def test_the_order_of_items_is_no_change(widget_topology: Topology) -> None:
    assert changes(widget_topology, {"tags": ["a", "b"]}, {"tags": ["b", "a"]}) == ({}, {})


@pytest.mark.parametrize(
    ("old", "new", "changed", "removed"),
    [
        (["a"], ["a", "a"], {'v:"a"': {}}, {'v:"a"': {}}),
        ([], ["a", "a"], {".": {}, 'v:"a"': {}}, None),
        (["a", "a"], ["a"], {'v:"a"': {}}, {'v:"a"': {}}),
        (["a", "a"], ["a", "a"], None, None),
        (["a", "a"], ["a", "a", "a"], {'v:"a"': {}}, None),
    ],
)
def test_duplicate_items_are_compared_as_a_whole(
    widget_topology: Topology, old: list[str], new: list[str], changed: Any, removed: Any
) -> None:
    one, other = changes(widget_topology, {"tags": old} if old else {}, {"tags": new})
    assert (one.get("f:tags"), other.get("f:tags")) == (changed, removed)


def test_an_open_field_that_changes_its_form_is_changed_with_its_parts(widget_topology: Topology) -> None:
    assert changes(widget_topology, {"free": 1}, {"free": {"a": 1}}) == ({"f:free": {".": {}, "f:a": {}}}, {})
    changed, removed = changes(widget_topology, {"free": {"a": 1}}, {"free": [1]})
    assert (changed, removed) == ({"f:free": {}}, {"f:free": {"f:a": {}}})


def test_the_fields_of_a_configuration_are_leaves_keys_and_items(widget_topology: Topology) -> None:
    desired = {"size": 1, "labels": {"a": "1"}, "items": [{"name": "a"}], "whole": {"a": "1"}, "tags": ["x"]}
    assert fields_of(widget_topology.root, {"spec": desired}) == {
        "f:spec": {
            "f:size": {},
            "f:labels": {"f:a": {}},
            "f:items": {'k:{"name":"a"}': {".": {}, "f:name": {}}},
            "f:whole": {},
            "f:tags": {'v:"x"': {}},
        }
    }


def test_empty_and_null_containers_are_fields_but_empty_lists_are_not(widget_topology: Topology) -> None:
    desired: dict[str, Any] = {"labels": {}, "items": None, "tags": [], "atoms": [], "name": None}
    fields = fields_of(widget_topology.root, {"spec": desired})
    assert fields == {"f:spec": {"f:labels": {}, "f:items": {}, "f:atoms": {}, "f:name": {}}}


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [(1, 1.0, True), (1, True, False), ([1], [True], False), ({"a": 0}, {"a": False}, False), (None, {}, False)],
)
def test_numbers_are_equal_across_types_and_booleans_to_no_number(one: Any, other: Any, equal: bool) -> None:
    assert same(one, other) is equal


words = st.lists(st.sampled_from("xyz"), max_size=3, unique=True)
items = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"value": st.sampled_from("12"), "words": words}),
    max_size=3,
    unique_by=lambda item: item["name"],
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 2),
        "items": items,
        "tags": words,
        "atoms": words,
        "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("12")),
        "whole": st.dictionaries(st.sampled_from("ab"), st.sampled_from("12")),
        "free": st.sampled_from([1, "x", [1], {"a": 1}, {"a": {"b": 1}}, {}]),
    },
)
bounded = settings(max_examples=60, deadline=None)


@bounded
@given(specs, specs)
def test_without_the_changed_and_removed_fields_two_objects_are_equal(
    widget_topology: Topology, old: Any, new: Any
) -> None:
    root, one, other = widget_topology.root, {"spec": old, "k": 1}, {"spec": new, "k": 1}
    changed, removed = compare(root, one, other)
    touched = union(changed, removed)
    left, right = remove(root, one, touched), remove(root, other, touched)
    assert fields_of(root, left) == fields_of(root, right)


@bounded
@given(specs, specs)
def test_the_reverse_comparison_removes_what_was_added(widget_topology: Topology, old: Any, new: Any) -> None:
    root = widget_topology.root
    there, gone = compare(root, {"spec": old}, {"spec": new})
    back, came = compare(root, {"spec": new}, {"spec": old})
    assert union(there, gone) == union(back, came) or same(old, new)
    assert difference(came, there) == {}


@bounded
@given(specs, specs)
def test_the_fields_of_a_configuration_exist_after_the_merge(
    widget_topology: Topology, live: Any, desired: Any
) -> None:
    root = widget_topology.root
    merged = merge(root, {"spec": live}, {"spec": desired})
    assert merge(root, merged, {"spec": desired}) is merged
    missing = difference(fields_of(root, {"spec": desired}), fields_of(root, merged))
    # An empty map in the configuration does not include the keys that others have added.
    assert not {path for path in missing.get("f:spec", {}) if desired[path.removeprefix("f:")] != {}}
