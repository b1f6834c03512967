"""Field sets, compared with a model: plain sets of paths."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge_cluster.patches import make_set
from konverge_cluster.patches.elements import PathElementError
from konverge_cluster.patches.field_sets import (
    FieldSet,
    difference,
    intersection,
    named_members,
    ordered,
    paths,
    read_set,
    subtract,
    union,
)
from konverge_cluster.patches.topology import Field, MappingType, Node, SequenceType

Path = tuple[str, ...]

elements = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', "v:1"])
some_paths = st.frozensets(st.lists(elements, min_size=1, max_size=3).map(tuple), max_size=8)
bounded = settings(max_examples=60, deadline=None)


def tree_of(members: frozenset[Path]) -> FieldSet:
    created: FieldSet = {}
    for path in members:
        entry: FieldSet = {}
        for element in reversed(path):
            entry = {element: entry}
        created = union(created, entry)
    return created


def members_of(fields: FieldSet, prefix: Path = ()) -> frozenset[Path]:
    found: set[Path] = set()
    for element, entry in fields.items():
        if element == ".":
            continue
        if not entry or "." in entry:
            found.add((*prefix, element))
        found |= members_of(entry, (*prefix, element))
    return frozenset(found)


@bounded
@given(some_paths)
def test_a_set_holds_the_paths_it_was_made_of(members: frozenset[Path]) -> None:
    assert members_of(tree_of(members)) == members


@bounded
@given(some_paths, some_paths)
def test_sets_behave_as_sets(one: frozenset[Path], other: frozenset[Path]) -> None:
    left, right = tree_of(one), tree_of(other)
    before = copy.deepcopy((left, right))
    assert members_of(union(left, right)) == one | other
    assert members_of(intersection(left, right)) == one & other
    assert members_of(difference(left, right)) == one - other
    assert (left, right) == before


@bounded
@given(some_paths, some_paths)
def test_subtracting_a_path_takes_what_is_below_it_too(one: frozenset[Path], other: frozenset[Path]) -> None:
    left = {path for path in one if not any(path[: len(apply_as)] == apply_as for apply_as in other)}
    assert members_of(subtract(tree_of(one), tree_of(other))) == left


@bounded
@given(some_paths)
def test_a_set_survives_being_written_and_read(members: frozenset[Path]) -> None:
    assert members_of(read_set(ordered(tree_of(members)))) == members


def test_elements_are_written_in_the_order_of_their_values() -> None:
    fields: dict[str, Any] = {'k:{"port":443}': {}, 'k:{"port":80}': {}, 'k:{"name":"b"}': {}, 'k:{"name":"a"}': {}}
    fields |= {
        "v:10": {},
        "v:2": {},
        'v:"a"': {},
        "v:true": {},
        "f:z": {},
        "f:é": {},
        "f:a": {},
        ".": {},
        "i:10": {},
        "i:9": {},
    }
    assert list(ordered(fields)) == [
        ".",
        "f:a",
        "f:z",
        "f:é",
        'k:{"name":"a"}',
        'k:{"name":"b"}',
        'k:{"port":80}',
        'k:{"port":443}',
        "v:2",
        "v:10",
        'v:"a"',
        "v:true",
        "i:9",
        "i:10",
    ]


def test_messages_name_members_before_what_is_below_them() -> None:
    fields: FieldSet = {
        "f:spec": {
            "f:replicas": {},
            "f:items": {'k:{"name":"x","port":1}': {".": {}, "f:image": {}}, 'v:"y"': {}, "i:3": {}},
        }
    }
    assert list(paths(fields)) == [
        ".spec.replicas",
        '.spec.items[name="x",port=1]',
        '.spec.items[="y"]',
        ".spec.items[3]",
        '.spec.items[name="x",port=1].image',
    ]


def test_elements_from_clients_are_made_canonical() -> None:
    sent: FieldSet = {
        "f:a": {".": {}},
        'k:{"b": 1, "a": "x"}': None,
        "v: 1.0": {},
        'v:"<"': {},
        "x:unknown": {"f:gone": {}},
        ".": {},
    }
    assert read_set(sent) == {"f:a": {}, 'k:{"a":"x","b":1}': {}, "v:1": {}, 'v:"\\u003c"': {}}


@pytest.mark.parametrize(
    "sent", [{"f": {}}, {"fa": {}}, {"": {}}, {"k:[1]": {}}, {"k:{": {}}, {"i:x": {}}, {"f:a": 1}, []]
)
def test_an_invalid_set_is_rejected(sent: Any) -> None:
    with pytest.raises(PathElementError):
        read_set(sent)


def test_only_struct_fields_are_named() -> None:
    text = Node(lambda: ("string", None, None))
    item = Node(lambda: ("", None, MappingType({"image": Field(text), "env": Field(labels)})))
    labels = Node(lambda: ("", None, MappingType(element=item)))
    items = Node(lambda: ("", SequenceType(item, False, ("name",)), None))
    root = Node(lambda: ("", None, MappingType({"labels": Field(labels), "items": Field(items)})))
    fields = {
        "f:labels": {"f:a": {"f:image": {}}},
        "f:items": {'k:{"name":"x"}': {"f:env": {"f:b": {"f:image": {}}}}},
        "f:unknown": {"f:c": {}},
    }
    assert named_members(fields, root) == {
        "f:labels": {".": {}, "f:a": {"f:image": {}}},
        "f:items": {".": {}, 'k:{"name":"x"}': {"f:env": {".": {}, "f:b": {"f:image": {}}}}},
        "f:unknown": {"f:c": {}},
    }


def test_a_set_is_made_of_dotted_paths() -> None:
    assert make_set("status", "metadata", "metadata.labels") == {
        "f:status": {},
        "f:metadata": {".": {}, "f:labels": {}},
    }
