"""The JSON scanner: error texts of the real parser, and duplicate keys."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge_cluster.api.go_json import MAX_DEPTH, JsonSyntaxError, duplicate_keys


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ('{"a":"x', "unexpected end of JSON input"),
        ("{bad", "invalid character 'b' looking for beginning of object key string"),
        ("{'a'", "invalid character '\\'' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("01", "invalid character '1' after top-level value"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("-", "invalid character ' ' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1e+x", "invalid character 'x' in exponent of numeric literal"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ("nul", "invalid character ' ' in literal null (expecting 'l')"),
        ('"a\nb"', "invalid character '\\n' in string literal"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ('"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("[" * (MAX_DEPTH + 1), "invalid character '[' exceeded max depth"),
    ],
)
def test_invalid_json_has_the_error_of_the_real_parser(text: str, message: str) -> None:
    with pytest.raises(JsonSyntaxError) as caught:
        duplicate_keys(text)

    assert str(caught.value) == message


def test_duplicate_keys_are_reported_with_their_path_in_text_order() -> None:
    text = '{"a": 1, "b": [1, {"c": 1, "d": {}, "c": 2}], "a": {"x": 1, "x": 2}}'

    assert duplicate_keys(text) == ["b[1].c", "a", "a.x"]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='{}[]",:0123456789.eE+-truefalsn \\u', max_size=25))
def test_a_text_is_accepted_exactly_when_it_is_json(text: str) -> None:
    try:
        json.loads(text, parse_constant=lambda name: pytest.fail(name))
        valid = True
    except ValueError:
        valid = False

    if valid:
        duplicate_keys(text)
    else:
        with pytest.raises(JsonSyntaxError):
            duplicate_keys(text)
