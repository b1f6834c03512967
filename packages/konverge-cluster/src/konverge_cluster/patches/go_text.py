"""JSON values in the formats of Go, which the real server uses in keys of field sets and in messages.

Each function corresponds to a verb of Go's `fmt`.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring
from typing import Any

__all__ = ["as_string", "compact_json", "kind_of", "literal", "plain", "quote"]

_PLAIN_STRING = re.compile(r"[ !#-%'-;=?-\[\]-~]*\Z")
_JSON_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_JSON_ESCAPES |= {"\b": "\\u0008", "\f": "\\u000c"}
_QUOTE_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_QUOTE_ESCAPES |= {'"': '\\"', "\\": "\\\\"}


def compact_json(value: Any) -> str:
    """Format as JSON without spaces: keys sorted, `<`, `>` and `&` escaped, whole numbers without a fraction."""
    if type(value) is str:
        return f'"{value}"' if _PLAIN_STRING.match(value) else _json_string(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{compact_json(k)}:{compact_json(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(compact_json, value)) + "]"
    return "null" if value is None else _scalar(value)


def plain(value: Any) -> str:
    """Format as `%v`: ``map[a:1 b:[x y]]``."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{plain(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(plain, value)) + "]"
    if isinstance(value, str):
        return value
    return "<nil>" if value is None else _scalar(value)


def quote(text: str) -> str:
    """Format as `%q`: a quoted string with unprintable characters escaped."""
    return '"' + "".join(map(_quoted_character, text)) + '"'


def literal(value: Any) -> str:
    """Format as `%#v`: the value in Go syntax."""
    if isinstance(value, dict):
        inner = ", ".join(f"{quote(key)}:{literal(value[key])}" for key in sorted(value))
        return "map[string]interface {}{" + inner + "}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(literal, value)) + "}"
    if isinstance(value, str):
        return quote(value)
    return "interface {}(nil)" if value is None else _scalar(value)


def kind_of(value: Any) -> str:
    """Format as `%T`: the Go type of a decoded JSON value."""
    if value is None:
        return "<nil>"
    names = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", bool: "bool", float: "float64"}
    return names.get(type(value), "int64")


def as_string(value: Any) -> str:
    """Format as `%s`, which marks values that are not strings."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{as_string(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(as_string, value)) + "]"
    return "%!s(<nil>)" if value is None else f"%!s({kind_of(value)}={plain(value)})"


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    return str(value)


def _float(value: float) -> str:
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return repr(value)


def _json_string(text: str) -> str:
    # Python writes \b and \f for two control characters that the real server writes as numbers; replace them first.
    escaped = "".join(_JSON_ESCAPES.get(character) or encode_basestring(character)[1:-1] for character in text)
    return f'"{escaped}"'


def _quoted_character(character: str) -> str:
    escaped = _QUOTE_ESCAPES.get(character)
    if escaped is not None:
        return escaped
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
