"""Functions on strings: the extended strings library, and the regular expressions of Kubernetes."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any, Final

from konverge_cluster.cel.functions import Library
from konverge_cluster.cel.patterns import PatternError, compile_pattern
from konverge_cluster.cel.string_format import format_text
from konverge_cluster.cel.types import DYN, INT, STRING, list_of
from konverge_cluster.cel.values import EvaluationError

__all__ = ["add_strings"]

_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_UPPER: Final = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
_QUOTED: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _inside(text: str, index: int) -> int:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return index


def _char_at(text: str, index: int) -> str:
    return text[_inside(text, index) : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if part == "":
        return start
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return text.find(part, start) if start < len(text) else -1


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if part == "":
        return start
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, count)


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator == "":
        letters = list(text)
        return letters if count < 0 or count >= len(letters) else [*letters[: count - 1], text[count - 1 :]]
    return text.split(separator, count - 1 if count > 0 else -1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    _inside(text, start)
    return text[start : _inside(text, end) if end is not None else None]


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def _compiled(pattern: str) -> Any:
    try:
        return compile_pattern(pattern)
    except PatternError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> str:
    match = _compiled(pattern).search(text)
    return match[0] if match is not None else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match[0] for match in _compiled(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _join(items: list[Any], separator: str = "") -> str:
    wrong = next((each for each in items if not isinstance(each, str)), None)
    if wrong is not None:
        raise EvaluationError(f"join: invalid input: {wrong}")
    return separator.join(items)


def add_strings(library: Library) -> None:
    """Add the functions of this module to a library."""
    texts = list_of(STRING)
    table: tuple[tuple[str, str, tuple[Any, ...], Any, Callable[..., Any]], ...] = (
        ("charAt", "string_char_at_int", (STRING, INT), STRING, _char_at),
        ("indexOf", "string_index_of_string", (STRING, STRING), INT, _index_of),
        ("indexOf", "string_index_of_string_int", (STRING, STRING, INT), INT, _index_of),
        ("lastIndexOf", "string_last_index_of_string", (STRING, STRING), INT, _last_index_of),
        ("lastIndexOf", "string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_of),
        ("lowerAscii", "string_lower_ascii", (STRING,), STRING, lambda text: text.translate(_LOWER)),
        ("upperAscii", "string_upper_ascii", (STRING,), STRING, lambda text: text.translate(_UPPER)),
        ("replace", "string_replace_string_string", (STRING, STRING, STRING), STRING, _replace),
        ("replace", "string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, _replace),
        ("split", "string_split_string", (STRING, STRING), texts, _split),
        ("split", "string_split_string_int", (STRING, STRING, INT), texts, _split),
        ("substring", "string_substring_int", (STRING, INT), STRING, _substring),
        ("substring", "string_substring_int_int", (STRING, INT, INT), STRING, _substring),
        ("trim", "string_trim", (STRING,), STRING, lambda text: text.strip(_SPACE)),
        ("join", "list_join", (texts,), STRING, _join),
        ("join", "list_join_string", (texts, STRING), STRING, _join),
        ("format", "string_format", (STRING, list_of(DYN)), STRING, format_text),
        ("find", "string_find_string", (STRING, STRING), STRING, _find),
        ("findAll", "string_find_all_string", (STRING, STRING), texts, _find_all),
        ("findAll", "string_find_all_string_int", (STRING, STRING, INT), texts, _find_all),
    )
    for name, overload, params, result, call in table:
        library.method(name, overload, params, result, call)
    library.add("strings.quote", "strings_quote", (STRING,), STRING, _quote)
