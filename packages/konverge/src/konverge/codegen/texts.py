"""Descriptions as docstrings, and strings as literals, in the form that ruff and black leave alone.

What is described comes from outside, so nothing in it may end a docstring early or smuggle in code.
"""

from __future__ import annotations

import re
import textwrap

__all__ = ["docstring", "first_paragraph", "quoted"]

LINE_LENGTH = 120
_TICKED_ENUM = re.compile(r"\n\s*Possible enum values:.*", re.DOTALL)


def first_paragraph(description: str) -> str:
    """Give the first paragraph of a description; the list of values that servers append has its own place."""
    bare = _TICKED_ENUM.sub("", "\n" + description).strip()
    paragraph = re.split(r"\n\s*\n", bare, maxsplit=1)[0]
    return " ".join(_printable(paragraph).split())


def docstring(paragraphs: list[str], *, indent: str) -> list[str]:
    """Write paragraphs as the lines of a docstring, wrapped, quotes and indent included; nothing for no text."""
    texts = [" ".join(_printable(text).split()) for text in paragraphs]
    width = LINE_LENGTH - len(indent)
    lines: list[str] = []
    for text in filter(None, texts):
        if lines:
            lines.append("")
        lines += _wrapped(_escaped(text), width)
    if not lines:
        return []
    return [f"{indent}{line}".rstrip() for line in _between_quotes(lines)]


def quoted(text: str) -> str:
    """Write a string literal, in double quotes where that needs no escape."""
    literal = repr(text)
    if literal[0] == "'" and '"' not in literal:
        return f'"{literal[1:-1]}"'
    return literal


def _wrapped(text: str, width: int) -> list[str]:
    # Room for both quotes, and for a blank at either end, when one line is enough; else for the opening ones.
    room = 8 if len(text) <= width - 3 else 4
    return textwrap.wrap(text, width - room, break_long_words=False, break_on_hyphens=False)


def _between_quotes(lines: list[str]) -> list[str]:
    first = f" {lines[0]}" if lines[0].startswith('"') else lines[0]
    if len(lines) > 1:
        return [f'"""{first}', *lines[1:], '"""']
    # A quote before the closing quotes would join them.
    pad = " " if first.endswith('"') else ""
    return [f'"""{first}{pad}"""']


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', r"\"\"\"")


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
