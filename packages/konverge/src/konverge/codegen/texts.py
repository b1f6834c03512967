"""Docstrings and string literals for generated code, formatted as ruff and black format them.

The descriptions are not trusted, so their text must not be able to end a docstring or to add code.
"""

from __future__ import annotations

import re
import textwrap

__all__ = ["docstring", "string_literal", "summary"]

LINE_LENGTH = 120
_TICKED_ENUM = re.compile(r"\n\s*Possible enum values:.*", re.DOTALL)


def summary(description: str) -> str:
    """Return the first paragraph of a description, without the list of enum values that servers append."""
    bare = _TICKED_ENUM.sub("", "\n" + description).strip()
    paragraph = re.split(r"\n\s*\n", bare, maxsplit=1)[0]
    return " ".join(_printable(paragraph).split())


def docstring(sections: list[str], *, indent: str) -> list[str]:
    """Return the lines of a docstring with one paragraph per section; no lines if there is no text."""
    texts = [" ".join(_printable(text).split()) for text in sections]
    width = LINE_LENGTH - len(indent)
    lines: list[str] = []
    for text in filter(None, texts):
        if lines:
            lines.append("")
        lines += _wrapped(_escaped(text), width)
    if not lines:
        return []
    return [f"{indent}{line}".rstrip() for line in _between_quotes(lines)]


def string_literal(text: str) -> str:
    """Return a string literal, in double quotes if that needs no escape."""
    literal = repr(text)
    if literal[0] == "'" and '"' not in literal:
        return f'"{literal[1:-1]}"'
    return literal


def _wrapped(text: str, width: int) -> list[str]:
    # One line needs space for both quotes and a blank at either end; several lines only for the opening quotes.
    reserved = 8 if len(text) <= width - 3 else 4
    return textwrap.wrap(text, width - reserved, break_long_words=False, break_on_hyphens=False)


def _between_quotes(lines: list[str]) -> list[str]:
    first = f" {lines[0]}" if lines[0].startswith('"') else lines[0]
    if len(lines) > 1:
        return [f'"""{first}', *lines[1:], '"""']
    # A quote at the end would merge with the closing quotes.
    pad = " " if first.endswith('"') else ""
    return [f'"""{first}{pad}"""']


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', r"\"\"\"")


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
