"""Untrusted text in generated source stays text."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.codegen.texts import docstring, string_literal, summary

NASTY = st.text(alphabet=st.sampled_from('"\\\n\t {}#a\u202e\x00\r\u2028'), max_size=60)


def written(paragraphs: list[str]) -> str:
    lines = docstring(paragraphs, indent="    ")
    return "\n".join(["class A:", *lines, "    x = 1"])


@settings(max_examples=200)
@given(st.one_of(st.text(max_size=300), NASTY))
def test_any_description_stays_inside_its_docstring(text: str) -> None:
    (node,) = ast.parse(written([text])).body
    assert isinstance(node, ast.ClassDef)
    doc = ast.get_docstring(node)

    assert isinstance(node.body[-1], ast.Assign)
    assert (doc or "").split() == "".join(letter if letter.isprintable() else " " for letter in text).split()
    assert len(node.body) == (1 if doc is None else 2)


@settings(max_examples=200)
@given(st.one_of(st.text(), NASTY))
def test_a_string_literal_evaluates_to_its_text(text: str) -> None:
    assert ast.literal_eval(string_literal(text)) == text
    assert string_literal(text).isascii() or string_literal(text).isprintable()


@pytest.mark.parametrize("length", range(100, 140))
def test_no_line_is_longer_than_the_limit(length: int) -> None:
    text = ("word " * 60)[: length - 1] + '"'

    assert all(len(line) <= 120 for line in docstring([text], indent="    "))


def test_the_summary_is_the_first_paragraph() -> None:
    assert summary("One.\nStill one.\n\nTwo.") == "One. Still one."


def test_the_summary_omits_the_list_of_enum_values() -> None:
    assert summary('Which.\n\nPossible enum values:\n - `"A"` is a.') == "Which."
    assert summary('Possible enum values:\n - `"A"` is a.') == ""


def test_an_empty_text_has_no_docstring() -> None:
    assert docstring(["", "  \n"], indent="") == []
