"""Paths to fields of a schema: `.spec.color`, `.labels['a.b']`. Selectable fields and rules use them."""

from __future__ import annotations

import re
from typing import Final

from konverge_cluster.crds.paths import FieldPath
from konverge_cluster.crds.structural import Structural

__all__ = ["FieldPathError", "resolve_path"]

_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]']+|.", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class FieldPathError(ValueError):
    """The path does not refer to a field; the message is the server's."""


def resolve_path(path: str, schema: Structural, *, brackets: bool = True) -> tuple[FieldPath, Structural]:
    """Resolve a path in a schema; return the field path as written in errors, and the schema of the field.

    Raises: FieldPathError.
    """
    tokens = _TOKEN.findall(path)
    field_path: FieldPath = None
    node = schema
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token == "[":
            if not brackets:
                raise FieldPathError("array notation is not allowed")
            name = _quoted(_next(tokens, at + 1))
            field_path, node = _step(field_path, node, name)
            if (end := _next(tokens, at + 2)) != "]":
                raise FieldPathError(f"expected ] but got {end}")
            at += 3
        elif token == ".":
            field_path, node = _step(field_path, node, _next(tokens, at + 1))
            at += 2
        else:
            raise FieldPathError(f"expected [ or . but got: {token}")
    return field_path, node


def _next(tokens: list[str], at: int) -> str:
    if at >= len(tokens):
        raise FieldPathError("unexpected end of JSON path")
    return tokens[at]


def _quoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {token}")
    unknown = next((match[0] for match in _ESCAPE.finditer(token[1:-1]) if match[1] not in _ESCAPES), "")
    if unknown:
        raise FieldPathError(f"invalid string literal: invalid escape char {unknown}")
    return _ESCAPE.sub(lambda match: _ESCAPES[match[1]], token[1:-1])


def _step(field_path: FieldPath, node: Structural, name: str) -> tuple[FieldPath, Structural]:
    if node.properties:
        if name not in node.properties:
            raise FieldPathError("does not refer to a valid field")
        return (field_path, f".{name}"), node.properties[name]
    if node.values is None:
        raise FieldPathError("does not refer to a valid field")
    return (field_path, f"[{name}]"), node.values
