"""The difference of two documents as a JSON patch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.webhooks.patches import json_patch
from konverge_cluster.patches import apply_json_patch

LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, "", "a", "~/", "0"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b/c", "~d", "", "0"]), inner, max_size=4)
    ),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.sampled_from(["spec", "status", "a/b", "~"]), VALUES, max_size=4)


def exact(value: Any) -> Any:
    """Return the value with the types of its leaves: in Python 1, 1.0 and True are equal."""
    if isinstance(value, dict):
        return {key: exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [exact(item) for item in value]
    return type(value), value


@given(DOCUMENTS, DOCUMENTS)
@settings(max_examples=200)
def test_applied_to_the_old_document_the_patch_gives_the_new_one(old: Any, new: Any) -> None:
    assert exact(apply_json_patch(old, json_patch(old, new))) == exact(new)


@given(DOCUMENTS)
def test_equal_documents_have_an_empty_patch(document: Any) -> None:
    assert json_patch(document, document) == []


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({"a": [1, 2, 3]}, {"a": [1, 3]}, [{"op": "remove", "path": "/a/1"}]),
        ({"a": [1, 3]}, {"a": [1, 2, 3]}, [{"op": "add", "path": "/a/1", "value": 2}]),
        ({"a": [{"n": 1}, 2]}, {"a": [{"n": 2}, 2]}, [{"op": "replace", "path": "/a/0/n", "value": 2}]),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({"a": {"x/y": 1}}, {"a": {}}, [{"op": "remove", "path": "/a/x~1y"}]),
    ],
)
def test_only_what_changed_is_named(old: Any, new: Any, patch: Any) -> None:
    assert json_patch(old, new) == patch
