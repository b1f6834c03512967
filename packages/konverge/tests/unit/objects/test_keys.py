"""Keys: namespace and name of an object."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.keys import Key

names = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?", fullmatch=True)
keys = st.builds(Key, st.one_of(st.just(""), names), names)


def test_a_namespaced_key_reads_as_namespace_slash_name() -> None:
    assert str(Key("shop", "web")) == "shop/web"


def test_a_cluster_scoped_key_reads_as_its_name() -> None:
    assert str(Key("", "node-1")) == "node-1"


@given(keys)
def test_every_key_is_read_back_from_its_text(key: Key) -> None:
    assert Key.parse(str(key)) == key


@pytest.mark.parametrize("text", ["", "/", "/web", "shop/", "a/b/c", "//web"])
def test_a_text_with_missing_or_surplus_parts_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write 'namespace/name'"):
        Key.parse(text)


@given(st.lists(keys, max_size=6))
def test_keys_sort_by_namespace_and_then_name(some: list[Key]) -> None:
    assert [(key.namespace, key.name) for key in sorted(some)] == sorted((key.namespace, key.name) for key in some)


def test_equal_keys_are_one_entry_of_a_dict() -> None:
    assert {Key("a", "b"): 1, Key("a", "b"): 2} == {Key("a", "b"): 2}


def test_a_key_cannot_be_changed() -> None:
    key = Key("a", "b")
    with pytest.raises(AttributeError):
        key.name = "c"  # type: ignore[misc]
