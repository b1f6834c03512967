"""Names: the rules and messages of the server, and safe names for children."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.names import (
    GENERATED_NAME_ALPHABET,
    MAX_LABEL_LENGTH,
    dns_label_errors,
    dns_subdomain_errors,
    label_key_errors,
    label_value_errors,
    path_segment_errors,
    rfc1035_label_errors,
    safe_name,
)

LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', "
    "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', "
    r"regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
RFC1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', "
    "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
    "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)

parts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=80)
simple_parts = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?", fullmatch=True)


@pytest.mark.parametrize("value", ["a", "web", "web-1", "1", "a" * 63])
def test_a_plain_label_passes_every_rule_for_names(value: str) -> None:
    assert dns_label_errors(value) == []
    assert dns_subdomain_errors(value) == []


@pytest.mark.parametrize(
    ("value", "errors"),
    [
        ("", [LABEL_RULE]),
        ("Web", [LABEL_RULE]),
        ("-a", [LABEL_RULE]),
        ("a\n", [LABEL_RULE]),
        ("a.b", ["must not contain dots"]),
        ("a" * 64, ["must be no more than 63 characters"]),
        ("A" * 64, ["must be no more than 63 characters", LABEL_RULE]),
    ],
)
def test_an_invalid_label_raises_the_message_of_the_server(value: str, errors: list[str]) -> None:
    assert dns_label_errors(value) == errors


@pytest.mark.parametrize(
    ("value", "errors"),
    [
        ("a.b", []),
        ("a" * 253, []),
        ("a..b", [SUBDOMAIN_RULE]),
        ("a_b", [SUBDOMAIN_RULE]),
        ("a" * 254, ["must be no more than 253 characters"]),
    ],
)
def test_a_subdomain_may_have_dots(value: str, errors: list[str]) -> None:
    assert dns_subdomain_errors(value) == errors


def test_the_older_label_starts_with_a_letter() -> None:
    assert rfc1035_label_errors("web-1") == []
    assert rfc1035_label_errors("1-web") == [RFC1035_RULE]


@pytest.mark.parametrize(
    ("value", "errors"),
    [
        ("system:node:x", []),
        ("..", ["may not be '..'"]),
        ("a/b%", ["may not contain '/'", "may not contain '%'"]),
    ],
)
def test_a_path_segment_only_has_to_fit_into_a_url(value: str, errors: list[str]) -> None:
    assert path_segment_errors(value) == errors


@pytest.mark.parametrize(
    ("value", "errors"),
    [
        ("app", []),
        ("app.kubernetes.io/name", []),
        ("A_b.c-9", []),
        ("", ["name part must be non-empty", f"name part {KEY_RULE}"]),
        ("/app", ["prefix part must be non-empty"]),
        ("example.com/", ["name part must be non-empty", f"name part {KEY_RULE}"]),
        ("Example.com/app", [f"prefix part {SUBDOMAIN_RULE}"]),
        ("n" * 64, ["name part must be no more than 63 bytes"]),
        ("p" * 254 + "/app", ["prefix part must be no more than 253 bytes"]),
        (
            "a/b/c",
            [f"a valid label key {KEY_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"],
        ),
    ],
)
def test_a_label_key_is_a_name_with_an_optional_prefix(value: str, errors: list[str]) -> None:
    assert label_key_errors(value) == errors


@pytest.mark.parametrize(
    ("value", "errors"),
    [
        ("", []),
        ("v" * 63, []),
        ("v" * 64, ["must be no more than 63 bytes"]),
        ("-v", [VALUE_RULE]),
        ("ä" * 32, ["must be no more than 63 bytes", VALUE_RULE]),
    ],
)
def test_a_label_value_may_be_empty_and_is_measured_in_bytes(value: str, errors: list[str]) -> None:
    assert label_value_errors(value) == errors


def test_a_short_plain_name_is_only_joined() -> None:
    assert safe_name("shop", "web") == "shop-web"


def test_a_long_name_keeps_its_beginning_and_ends_with_a_hash() -> None:
    # These names stay for ever: a new version that named children differently would make them twice.
    assert safe_name("a" * 60, "web") == "a" * 52 + "-v2xbd7w4qs"
    assert safe_name("my.app", "web") == "my-app-web-jxlmjj285h"


@given(st.lists(parts, min_size=1, max_size=4), st.integers(12, 63))
def test_every_safe_name_is_a_label_within_the_limit(some: list[str], limit: int) -> None:
    name = safe_name(*some, limit=limit)

    assert dns_label_errors(name) == []
    assert len(name) <= limit
    assert name == safe_name(*some, limit=limit)


@given(st.lists(simple_parts, min_size=2, max_size=4), st.lists(simple_parts, min_size=2, max_size=4))
def test_names_that_differ_stay_different(some: list[str], others: list[str]) -> None:
    if "-".join(some) != "-".join(others):
        assert safe_name(*some) != safe_name(*others)


def test_cleaning_does_not_make_two_names_one() -> None:
    assert len({safe_name("a.b"), safe_name("a_b"), safe_name("A-b"), safe_name("a-b"), safe_name("a-", "b")}) == 5


def test_names_with_nothing_to_keep_are_only_a_hash() -> None:
    assert len(safe_name("...")) == 10


@pytest.mark.parametrize("some", [(), ("",), ("a", "")])
def test_a_name_without_parts_is_refused(some: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="no empty parts"):
        safe_name(*some)


@pytest.mark.parametrize("limit", [0, 11, 64])
def test_a_limit_without_room_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="expected 12 to 63"):
        safe_name("a", limit=limit)


def test_generated_suffixes_fit_any_name() -> None:
    assert dns_label_errors(GENERATED_NAME_ALPHABET) == []
    assert len(GENERATED_NAME_ALPHABET) < MAX_LABEL_LENGTH
