"""Patterns: those with the same meaning in Python and on the server, and those that are refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.schema.patterns import check_pattern, matches


@pytest.mark.parametrize(
    ("pattern", "suggestion"),
    [
        (r"(?=a)", "no lookaround"),
        (r"(?!a)", "no lookaround"),
        (r"(?<=a)b", "no lookaround"),
        (r"(?<!a)b", "no lookaround"),
        (r"(?>a)", "atomic groups"),
        (r"(?#a)", "RE2, which the server uses, rejects"),
        (r"(a)(?(1)b)", "RE2, which the server uses, rejects"),
        (r"(?P<x>a)(?P=x)", "backreferences"),
        (r"(a)\1", "write the text again"),
        (r"\0", "write the text again"),
        (r"a++", "possessive"),
        (r"a*+", "possessive"),
        (r"a??+", "multiple repeat"),
        (r"a{2}+", "possessive"),
        (r"a{2}{3}", "multiple repeat"),
        (r"a**", "multiple repeat"),
        (r"a{,3}", "write {0,3}"),
        (r"a{1001}", "invalid repetition size"),
        (r"\D", "write [^0-9]"),
        (r"\W", "write [^0-9A-Za-z_]"),
        (r"\S", r"write [^\t\n\f\r ]"),
        (r"[\W]", "write [^0-9A-Za-z_]"),
        (r"[^\d]", "write [^0-9]"),
        (r"[^]\d]", "write [^0-9]"),
        (r"\bword", "the characters on both sides"),
        (r"a\B", "the characters on both sides"),
        (r"a\Z", "RE2, which the server uses, rejects"),
        (r"\u0041", "RE2, which the server uses, rejects"),
        (r"\N{DIGIT ONE}", "RE2, which the server uses, rejects"),
        (r"\pL", "is not a regular expression"),
        (r"\x4", "is not a regular expression"),
        (r"\C", "is not a regular expression"),
        (r"[[:alpha:]]", r"write \["),
        (r"[a-z--b]", "escape the second character"),
        (r"[a&&b]", "escape the second character"),
        (r"(?x)a b", "RE2, which the server uses, rejects"),
        (r"(?a)a", "RE2, which the server uses, rejects"),
        (r"(", "is not a regular expression"),
        (r"[a", "is not a regular expression"),
        ("a\\", "is not a regular expression"),
    ],
)
def test_a_pattern_with_different_meanings_is_refused(pattern: str, suggestion: str) -> None:
    with pytest.raises(ValueError) as raised:
        check_pattern(pattern)

    assert suggestion in str(raised.value)


@pytest.mark.parametrize(
    ("pattern", "found", "not_found"),
    [
        (r"^a$", ["a"], ["a\n", "\na", "ab"]),
        (r"(?m)^a$", ["a\n", "\na", "b\na\nb"], ["ab"]),
        (r"^\d+$", ["12"], ["\u0661", "a"]),
        (r"^\w$", ["a", "_", "1"], ["ä", "-"]),
        (r"^\s$", [" ", "\t"], ["\x0b", "\u00a0"]),
        (r"^[\d\s]$", ["1", " "], ["\u0661", "a"]),
        (r"b", ["abc"], ["ac"]),
        (r"^[$]$", ["$"], [""]),
        (r"^\$$", ["$"], [""]),
        (r"^[]a]$", ["]", "a"], ["b"]),
        (r"^[^]a]$", ["b"], ["]", "a"]),
        (r"^a{$", ["a{"], ["a"]),
        (r"^a{x}$", ["a{x}"], ["a"]),
        (r"(?i)^ab$", ["AB", "ab"], ["a"]),
        (r"^(?:ab|cd){2,3}?$", ["abcd"], ["ab"]),
        (r"^(?P<year>[0-9]{4})$", ["2026"], ["26"]),
        (r"", ["", "a"], []),
    ],
)
def test_a_pattern_is_searched_as_the_server_does(pattern: str, found: list[str], not_found: list[str]) -> None:
    assert all(matches(pattern, text) for text in found)
    assert not any(matches(pattern, text) for text in not_found)


_ATOMS = ["a", "b", r"\d", r"\w", r"\s", ".", "[a-c]", "[^a]", r"[\d_]", "é", r"\.", r"\x41"]
_PATTERNS = st.recursive(
    st.sampled_from(_ATOMS),
    lambda inner: (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map("|".join)
        | inner.map("(?:{})*".format)
        | inner.map("({})?".format)
        | inner.map("(?:{}){{1,2}}".format)
    ),
    max_leaves=6,
)


@settings(max_examples=200)
@given(_PATTERNS, st.text("abAé1.\n \u0661_", max_size=5), st.booleans())
def test_every_text_that_the_server_accepts_can_be_decoded(pattern: str, text: str, anchored: bool) -> None:
    # msgspec searches with Python's rules: it may take more than the server, never less.
    whole = f"^(?:{pattern})$" if anchored else pattern
    if matches(whole, text):
        assert re.search(whole, text)
