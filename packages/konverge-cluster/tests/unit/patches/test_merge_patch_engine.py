"""JSON merge patch, as the real server applies it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.objects.edits import merge_patch
from konverge_cluster.patches import PatchError, apply_merge_patch


def test_objects_are_merged_and_everything_else_replaced() -> None:
    document = {"a": {"b": 1, "c": [1]}, "d": 1}
    assert apply_merge_patch(document, {"a": {"c": [2], "e": 3}}) == {"a": {"b": 1, "c": [2], "e": 3}, "d": 1}


def test_null_removes_and_is_dropped_where_nothing_was() -> None:
    assert apply_merge_patch({"a": 1}, {"a": None, "b": {"c": None, "d": 1}, "e": None}) == {"b": {"d": 1}}


def test_nulls_in_new_lists_are_dropped_inside_their_objects_only() -> None:
    assert apply_merge_patch({}, {"a": [None, {"b": None, "c": 1}]}) == {"a": [None, {"c": 1}]}
    assert apply_merge_patch({"a": [1]}, {"a": [{"b": None}]}) == {"a": [{}]}


def test_nulls_stay_in_a_list_that_replaces_an_object() -> None:
    assert apply_merge_patch({"a": {"x": 1}}, {"a": [{"b": None}]}) == {"a": [{"b": None}]}


def test_an_object_that_replaces_something_else_loses_its_nulls() -> None:
    assert apply_merge_patch({"a": 1}, {"a": {"b": None, "c": 2}}) == {"a": {"c": 2}}
    assert apply_merge_patch({"a": None}, {"a": {"b": None, "c": 2}}) == {"a": {"c": 2}}


def test_unchanged_parts_are_shared() -> None:
    document = {"a": {"b": [1]}, "c": {"d": 1}}
    assert apply_merge_patch(document, {"c": {"d": 2}})["a"] is document["a"]


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        (None, "Invalid JSON Patch"),
        ([], "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (1.5, "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}"),
    ],
)
def test_a_patch_that_is_not_an_object_is_a_bad_request(patch: Any, text: str) -> None:
    with pytest.raises(PatchError) as caught:
        apply_merge_patch({}, patch)
    assert (caught.value.code, caught.value.message) == (400, text)


def test_without_field_validation_the_error_is_shorter() -> None:
    with pytest.raises(PatchError, match=r"^Invalid JSON Patch$"):
        apply_merge_patch({}, [], ignore_validation=True)


leaves = st.sampled_from([True, 0, 1, 1.5, "x"])
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


@settings(max_examples=60, deadline=None)
@given(documents, documents)
def test_a_computed_patch_turns_the_old_object_into_the_new_one(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = copy.deepcopy(old)
    assert apply_merge_patch(old, merge_patch(old, new)) == new
    assert old == before


@settings(max_examples=60, deadline=None)
@given(documents, documents)
def test_applying_a_patch_twice_equals_applying_it_once(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = apply_merge_patch(document, patch)
    assert apply_merge_patch(once, patch) == once
