"""`'%s has %d'.format([...])`: the formatting verbs, their types, and the formatting of values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from konverge_cluster.api.field_errors import quote
from konverge_cluster.cel.go_floats import go_float
from konverge_cluster.cel.times import format_duration, format_timestamp
from konverge_cluster.cel.types import Type
from konverge_cluster.cel.values import Duration, EvaluationError, Timestamp, UInt

__all__ = ["FormatVerb", "format_text", "parse_format", "verb_error"]

_VERB: Final = re.compile(r"%(?:\.([0-9]+))?(.?)", re.DOTALL)
_TAKES: Final = {
    "s": ("", ""),
    "d": ("int uint", "decimal clause can only be used on integers, was given {}"),
    "f": ("double string", "fixed-point clause can only be used on doubles, was given {}"),
    "e": ("double string", "scientific clause can only be used on doubles, was given {}"),
    "b": ("int uint bool", "only integers and bools can be formatted as binary, was given {}"),
    "o": ("int uint", "octal clause can only be used on integers, was given {}"),
    "x": (
        "int uint string bytes",
        "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    ),
}
_TAKES["X"] = _TAKES["x"]
_PRECISION: Final = 6
_MAX_PRECISION: Final = 10_000_009
_MAX_INT: Final = 2**63 - 1
_RAISED: Final = str.maketrans("0123456789", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


class FormatVerb(NamedTuple):
    """A formatting verb: its letter, and the number of decimals."""

    letter: str
    precision: int


def parse_format(text: str) -> Iterator[str | FormatVerb]:
    """Yield the parts of a format string: literal texts and verbs.

    Raises: EvaluationError for an invalid verb.
    """
    at = 0
    for match in _VERB.finditer(text):
        if match.start() < at:
            continue
        yield text[at : match.start()]
        at = match.end()
        if match[2] == "%":
            yield "%"
        elif match[2] == "":
            raise EvaluationError("unexpected end of string")
        elif match[2] not in _TAKES:
            raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{match[2]}"')
        else:
            yield FormatVerb(match[2], _precision(match[1]))
    yield text[at:]


def _precision(digits: str | None) -> int:
    significant = (digits or "").lstrip("0")
    if len(significant) >= len(str(_MAX_INT)) and (
        len(significant) > len(str(_MAX_INT)) or int(significant) > _MAX_INT
    ):
        text = "could not parse formatting clause: error while parsing precision: error while converting precision to"
        raise EvaluationError(f'{text} integer: strconv.Atoi: parsing "{digits}": value out of range')
    return int(significant or "0") if digits else _PRECISION


def verb_error(verb: FormatVerb, kind: Type) -> str:
    """Return why a verb does not accept values of a type, "" if it does."""
    takes, text = _TAKES[verb.letter]
    if kind.kind in ("dyn", "param") or not takes or kind.kind in takes.split():
        return ""
    return text.format(kind.name or kind.kind)


def format_text(text: str, values: list[Any]) -> str:
    """Format values.

    Raises: EvaluationError.
    """
    written = []
    index = 0
    for piece in parse_format(text):
        if isinstance(piece, str):
            written.append(piece)
            continue
        if index >= len(values):
            raise EvaluationError(f"index {index} out of range")
        written.append(_write(piece, values[index]))
        index += 1
    return "".join(written)


def _write(verb: FormatVerb, value: Any) -> str:
    takes, text = _TAKES[verb.letter]
    kind = _kind(value)
    if takes and kind not in takes.split():
        raise EvaluationError(f"error during formatting: {text.format(kind)}")
    if verb.letter in "ef" and verb.precision > _MAX_PRECISION:
        return "%!(NOVERB)"
    return _WRITERS[verb.letter](value, verb.precision)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, UInt):
        return "uint"
    names = {int: "int", float: "double", str: "string", bytes: "bytes", list: "list", dict: "map"}
    return names.get(type(value), "null_type" if value is None else type(value).__name__.lower())


def _format_value(value: Any, _precision: int = 0) -> str:
    """Format a value as `%s` does."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return go_float(value)
    if isinstance(value, (list, dict)):
        return _inside(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Timestamp):
        return format_timestamp(value)
    return format_duration(value) if isinstance(value, Duration) else str(value)


def _inside(value: Any) -> str:
    """Format a value inside a list or a map, where strings have quotes and numbers six decimals."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bytes):
        return f"b{quote(_format_value(value))}"
    if isinstance(value, float):
        return _fixed(value, _PRECISION)
    if isinstance(value, list):
        return f"[{', '.join(map(_inside, value))}]"
    if isinstance(value, dict):
        pairs = sorted((_inside(key), _inside(each)) for key, each in value.items())
        return "{" + ", ".join(f"{key}:{each}" for key, each in pairs) + "}"
    return _format_value(value)


def _fixed(value: Any, precision: int) -> str:
    # The server uses the en-US number format, and keeps the precision in one byte.
    return f"{float(value):,.{precision % 256}f}"


def _scientific(value: Any, precision: int) -> str:
    mantissa, _, exponent = f"{float(value):.6e}".partition("e")
    sign = "\u207b" if exponent.startswith("-") else ""
    # The server uses the precision as the width.
    return f"{mantissa}\u00d710{sign}{exponent[1:].translate(_RAISED)}".rjust(precision)


def _hexadecimal(value: Any, _precision: int) -> str:
    if isinstance(value, int):
        return f"{value:x}"
    return (value.encode() if isinstance(value, str) else value).hex()


_WRITERS: Final[dict[str, Callable[[Any, int], str]]] = {
    "s": _format_value,
    "d": lambda value, _precision: str(int(value)),
    "f": _fixed,
    "e": _scientific,
    "b": lambda value, _precision: f"{int(value):b}",
    "o": lambda value, _precision: f"{value:o}",
    "x": _hexadecimal,
    "X": lambda value, precision: _hexadecimal(value, precision).upper(),
}
