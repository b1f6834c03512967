"""Foreign text in generated source: whatever it says, it stays text."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.codegen.texts import docstring, first_paragraph, quoted

NASTY = st.text(alphabet=st.sampled_from('"\\\n\t {}#a\u202e\x00\r\u2028'), max_size=60)


def written(paragraphs: list[str]) -> str:
    lines = docstring(paragraphs, indent="    ")
    return "\n".join(["class A:", *lines, "    x = 1"])


@settings(max_examples=200)
@given(st.one_of(st.text(max_size=300), NASTY))
def test_any_description_stays_inside_its_docstring(text: str) -> None:
    (made,) = ast.parse(written([text])).body
    assert isinstance(made, ast.ClassDef)
    doc = ast.get_docstring(made)

    assert isinstance(made.body[-1], ast.Assign)
    assert (doc or "").split() == "".join(letter if letter.isprintable() else " " for letter in text).split()
    assert len(made.body) == (1 if doc is None else 2)


@settings(max_examples=200)
@given(st.one_of(st.text(), NASTY))
def test_a_quoted_text_reads_as_itself(text: str) -> None:
    assert ast.literal_eval(quoted(text)) == text
    assert quoted(text).isascii() or quoted(text).isprintable()


@pytest.mark.parametrize("length", range(100, 140))
def test_no_line_is_longer_than_the_limit(length: int) -> None:
    text = ("word " * 60)[: length - 1] + '"'

    assert all(len(line) <= 120 for line in docstring([text], indent="    "))


def test_only_the_first_paragraph_is_kept() -> None:
    assert first_paragraph("One.\nStill one.\n\nTwo.") == "One. Still one."


def test_the_list_of_values_that_servers_append_is_left_out() -> None:
    assert first_paragraph('Which.\n\nPossible enum values:\n - `"A"` is a.') == "Which."
    assert first_paragraph('Possible enum values:\n - `"A"` is a.') == ""


def test_nothing_is_written_for_no_text() -> None:
    assert docstring(["", "  \n"], indent="") == []
