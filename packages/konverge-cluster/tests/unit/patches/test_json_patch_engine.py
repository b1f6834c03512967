"""JSON patch: the RFC, the deviations of the real server, and unchanged arguments."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge_cluster.patches import PatchError, apply_json_patch, unknown_operation_fields

DOCUMENT: dict[str, Any] = {"a": {"b": 1, "c": [1, 2, {"d": None}]}, "x/y": "slash", "m~n": "tilde", "null": None}


def patched(*operations: dict[str, Any]) -> Any:
    before = copy.deepcopy(DOCUMENT)
    result = apply_json_patch(DOCUMENT, list(operations))
    assert before == DOCUMENT
    return result


def failure(patch: Any) -> tuple[int, str]:
    before = copy.deepcopy(DOCUMENT)
    with pytest.raises(PatchError) as caught:
        apply_json_patch(DOCUMENT, patch)
    assert before == DOCUMENT
    return caught.value.code, caught.value.message


def test_values_are_added_replaced_and_removed() -> None:
    assert patched({"op": "add", "path": "/a/new", "value": [1]})["a"]["new"] == [1]
    assert patched({"op": "replace", "path": "/a/b", "value": None})["a"]["b"] is None
    assert "b" not in patched({"op": "remove", "path": "/a/b"})["a"]


def test_items_are_inserted_before_an_index_and_after_the_last() -> None:
    assert patched({"op": "add", "path": "/a/c/0", "value": 9})["a"]["c"][:3] == [9, 1, 2]
    assert patched({"op": "add", "path": "/a/c/-", "value": 9})["a"]["c"][-1] == 9
    assert patched({"op": "add", "path": "/a/c/3", "value": 9})["a"]["c"][-1] == 9


def test_negative_indexes_count_from_the_end() -> None:
    assert patched({"op": "add", "path": "/a/c/-1", "value": 9})["a"]["c"][-1] == 9
    assert patched({"op": "remove", "path": "/a/c/-3"})["a"]["c"][0] == 2
    assert patched({"op": "replace", "path": "/a/c/-3", "value": 9})["a"]["c"][0] == 9


def test_escaped_keys_are_found() -> None:
    assert patched({"op": "replace", "path": "/x~1y", "value": 1})["x/y"] == 1
    assert patched({"op": "replace", "path": "/m~0n", "value": 1})["m~n"] == 1


def test_the_text_before_the_first_slash_is_ignored() -> None:
    assert patched({"op": "add", "path": "nonsense/k", "value": 1})["k"] == 1


def test_replacing_a_missing_key_sets_it() -> None:
    assert patched({"op": "replace", "path": "/a/nowhere", "value": 1})["a"]["nowhere"] == 1


def test_copying_a_missing_key_copies_null() -> None:
    assert patched({"op": "copy", "from": "/a/nowhere", "path": "/z"})["z"] is None


def test_a_copy_and_its_source_are_independent() -> None:
    copied = {"op": "copy", "from": "/a", "path": "/z"}
    result = patched({"op": "add", "path": "/a/b", "value": 2}, copied, {"op": "remove", "path": "/z/c/0"})
    assert result["a"]["c"] == DOCUMENT["a"]["c"]
    assert result["z"] == {"b": 2, "c": [2, {"d": None}]}


def test_a_value_moves() -> None:
    result = patched({"op": "move", "from": "/a/c/2", "path": "/a/d"})
    assert result["a"] == {"b": 1, "c": [1, 2], "d": {"d": None}}


def test_tests_compare_without_regard_to_the_order_of_keys() -> None:
    patched({"op": "test", "path": "/a", "value": {"c": [1, 2, {"d": None}], "b": 1}})
    patched({"op": "test", "path": "", "value": DOCUMENT})


def test_a_test_for_null_passes_where_nothing_is() -> None:
    patched({"op": "test", "path": "/a/nowhere", "value": None}, {"op": "test", "path": "/null"})


def test_the_whole_document_can_be_replaced_by_an_object_only() -> None:
    assert patched({"op": "replace", "path": "", "value": {"k": 1}}) == {"k": 1}
    assert failure([{"op": "replace", "path": "", "value": 1}])[0] == 422


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a/b", "value": 2},
        {"op": "test", "path": "/a/b", "value": 1.0},
        {"op": "test", "path": "/a/b", "value": True},
        {"op": "test", "path": "/nowhere/b", "value": None},
        {"op": "remove", "path": "/nowhere"},
        {"op": "remove", "path": "/a/c/9"},
        {"op": "remove", "path": "/a/c/-4"},
        {"op": "remove", "path": "/a/c/-"},
        {"op": "add", "path": "/a/c/4", "value": 1},
        {"op": "add", "path": "/a/c/x", "value": 1},
        {"op": "add", "path": "/a/c/ 1", "value": 1},
        {"op": "add", "path": "/a/c/1_0", "value": 1},
        {"op": "add", "path": "/a/b/deeper", "value": 1},
        {"op": "add", "path": "/null/deeper", "value": 1},
        {"op": "add", "path": "", "value": {}},
        {"op": "move", "from": "/nowhere", "path": "/z"},
        {"op": "move", "from": "/a", "path": "/a/b"},
        {"op": "copy", "from": "/a/c/9", "path": "/z"},
        {"op": "nonsense", "path": "/a"},
        {"path": "/a"},
        {"op": "remove"},
        {"op": "move", "path": "/a"},
    ],
)
def test_an_operation_that_does_not_apply_is_422_without_the_reason(operation: dict[str, Any]) -> None:
    text = "the server rejected our request due to an error in our request"
    assert failure([{"op": "add", "path": "/a/first", "value": 1}, operation]) == (422, text)


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        ({"op": "x"}, "cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ("x", "cannot unmarshal string into Go value of type []handlers.jsonPatchOp"),
        ([1], "cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        ([[]], "cannot unmarshal array into Go value of type handlers.jsonPatchOp"),
        ([{"op": True}], "cannot unmarshal bool into Go struct field jsonPatchOp.op of type string"),
        ([{"path": {}}], "cannot unmarshal object into Go struct field jsonPatchOp.path of type string"),
    ],
)
def test_an_invalid_patch_is_a_bad_request(patch: Any, text: str) -> None:
    assert failure(patch) == (400, f"error decoding patch: json: {text}")


@pytest.mark.parametrize(
    ("patch", "code", "text"),
    [
        ({}, 400, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        ([1], 400, "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
        ([{"op": 1}], 422, "the server rejected our request due to an error in our request"),
        ([{"op": "add", "path": 1}], 422, "the server rejected our request due to an error in our request"),
    ],
)
def test_without_field_validation_the_texts_differ(patch: Any, code: int, text: str) -> None:
    with pytest.raises(PatchError) as caught:
        apply_json_patch(DOCUMENT, patch, ignore_validation=True)
    assert (caught.value.code, caught.value.message) == (code, text)


def test_unknown_fields_of_operations_are_reported() -> None:
    patch = [{"op": "test", "Op": 1}, None, {"value": 1, "from": "", "path": "", "bogus": 1}]
    assert unknown_operation_fields(patch) == [
        'json patch unknown field "[0].Op"',
        'json patch unknown field "[2].bogus"',
    ]


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        ({"op": "x"}, "Unexpected kind: x"),
        ({"op": "test", "path": "/a/b", "value": 2}, "testing value /a/b failed: test failed"),
        (
            {"op": "remove", "path": "/no"},
            "error in remove for path: '/no': Unable to remove nonexistent key: no: missing value",
        ),
        ({"op": "add", "path": "/no/b"}, 'add operation does not apply: doc is missing path: "/no/b": missing value'),
        (
            {"op": "move", "from": "/no/b", "path": "/z"},
            "move operation does not apply: doc is missing from path: /no/b: missing value",
        ),
    ],
)
def test_the_cause_of_the_error_is_the_reason(operation: dict[str, Any], why: str) -> None:
    with pytest.raises(PatchError) as caught:
        apply_json_patch(DOCUMENT, [operation])
    assert str(caught.value.__cause__) == why


def test_a_null_patch_changes_nothing() -> None:
    assert apply_json_patch(DOCUMENT, None) == DOCUMENT


def test_there_is_a_limit_of_operations() -> None:
    operation = {"op": "test", "path": "/null"}
    apply_json_patch(DOCUMENT, [operation] * 10_000)
    code, message = failure([operation] * 10_001)
    assert code == 413
    assert message == ("Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001")


values = st.recursive(
    st.sampled_from([None, True, 0, 1, "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from("abc"), values, max_size=3)
pointers = st.lists(st.sampled_from(["a", "b", "c", "0", "1", "-1", "-"]), min_size=1, max_size=3).map(
    lambda tokens: "/" + "/".join(tokens)
)
operations = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy"]), "path": pointers, "from": pointers},
    optional={"value": values},
)


def by_copying(document: Any, patch: list[dict[str, Any]]) -> Any:
    """Apply each operation alone to a deep copy, so that nothing is shared."""
    for operation in patch:
        document = apply_json_patch(copy.deepcopy(document), [copy.deepcopy(operation)])
    return document


@settings(max_examples=60, deadline=None)
@given(documents, st.lists(operations, max_size=5))
def test_sharing_has_no_visible_effect(document: Any, patch: list[dict[str, Any]]) -> None:
    before = copy.deepcopy((document, patch))
    try:
        result = apply_json_patch(document, patch)
    except PatchError:
        with pytest.raises(PatchError):
            by_copying(document, patch)
    else:
        assert result == by_copying(document, patch)
    assert (document, patch) == before
