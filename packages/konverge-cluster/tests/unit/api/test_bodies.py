"""Request bodies: JSON and YAML are decoded as on the real server."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge_cluster.api.bodies import BodyDecodeError, read_json, read_yaml, summary

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(max_size=5)
    | st.sampled_from(['"', '":', "\\"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=15,
)


@settings(max_examples=200, deadline=None)
@given(VALUES, st.booleans())
def test_any_json_is_decoded_without_false_duplicates(value: object, ascii_only: bool) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")

    assert read_json(body) == (value, [])


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text(max_size=3), VALUES, min_size=1, max_size=3), st.booleans())
def test_a_duplicate_key_is_always_reported(value: dict[str, object], ascii_only: bool) -> None:
    members = [f"{json.dumps(key, ensure_ascii=ascii_only)}:{json.dumps(each)}" for key, each in value.items()]
    body = ("{" + ",".join([*members, members[0]]) + "}").encode("utf-8", "surrogatepass")

    assert len(read_json(body)[1]) == 1


def test_invalid_utf8_and_lone_surrogates_are_replaced() -> None:
    assert read_json(b'{"a":"\xff"}')[0] == {"a": "\ufffd"}
    assert read_json(b'{"a":"\\ud800x"}')[0] == {"a": "\ufffdx"}


@pytest.mark.parametrize("depth", [201, 5_000, 300_000])
def test_too_deep_nesting_is_rejected(depth: int) -> None:
    with pytest.raises(BodyDecodeError, match="exceeded max depth"):
        read_json(b'{"a":' * depth + b"1" + b"}" * depth)


def test_yaml_is_decoded_as_on_the_real_server() -> None:
    body = b"a: 2026-01-01\nb: yes\n1: x\ntrue: y\nc: &c [1]\nd: *c\n"

    assert read_yaml(body) == ({"a": "2026-01-01", "b": True, "1": "x", "true": "y", "c": [1], "d": [1]}, [])


def test_a_duplicate_yaml_key_is_reported_with_its_line() -> None:
    assert read_yaml(b"a: 1\nb: 2\na: 3\n") == ({"a": 3, "b": 2}, ['line 3: key "a" already set in map'])


def test_only_the_first_yaml_document_is_decoded() -> None:
    assert read_yaml(b"---\na: 1\n---\nb: 2\n")[0] == {"a": 1}


def test_yaml_aliases_cannot_expand_without_limit() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    with pytest.raises(BodyDecodeError, match="excessive aliasing"):
        read_yaml("\n".join(lines).encode())


@pytest.mark.parametrize(
    ("body", "expected"),
    [(b"", "<empty>"), (b"{}", "{}"), (b"[]", "5b5d"), (b"{" + b"x" * 40, "{" + "x" * 29 + " ...")],
)
def test_a_rejected_body_is_summarized_by_its_start(body: bytes, expected: str) -> None:
    assert summary(body) == expected
