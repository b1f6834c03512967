"""The formats of Go in keys of field sets and in messages."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from konverge_cluster.patches.go_text import as_string, compact_json, kind_of, literal, plain, quote


@settings(max_examples=60, deadline=None)
@given(st.text() | st.integers() | st.booleans() | st.none() | st.lists(st.text(), max_size=3))
def test_compact_json_is_json(value: object) -> None:
    assert json.loads(compact_json(value)) == value


def test_compact_json_sorts_escapes_and_shortens() -> None:
    assert compact_json({"b": 1.0, "a": [True, None, 1.5]}) == '{"a":[true,null,1.5],"b":1}'
    assert compact_json('<&>\u2028\b\n"é') == '"\\u003c\\u0026\\u003e\\u2028\\u0008\\n\\"é"'


def test_plain_values_read_as_go_prints_them() -> None:
    assert plain({"b": [1, "x y"], "a": None, "c": True, "d": 2.0}) == "map[a:<nil> b:[1 x y] c:true d:2]"


def test_quoted_strings_escape_what_cannot_be_printed() -> None:
    assert quote('a"b\\\n\x01é\u200b\U000e0001') == '"a\\"b\\\\\\n\\x01é\\u200b\\U000e0001"'


def test_literals_are_go_source() -> None:
    assert literal({"a": [1, "x", None]}) == 'map[string]interface {}{"a":[]interface {}{1, "x", interface {}(nil)}}'


def test_kinds_are_the_types_that_go_decodes_to() -> None:
    values: tuple[object, ...] = (None, True, 1, 1.5, "x", [], {})
    kinds = [kind_of(value) for value in values]
    assert kinds == ["<nil>", "bool", "int64", "float64", "string", "[]interface {}", "map[string]interface {}"]


def test_values_that_are_not_strings_are_marked() -> None:
    assert as_string("x") == "x"
    assert as_string({"a": [1, None]}) == "map[a:[%!s(int64=1) %!s(<nil>)]]"
