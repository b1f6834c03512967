"""Paths to fields of a schema: `.spec.color`, `.labels['a.b']`. Selectable fields and rules are written with them."""

from __future__ import annotations

import re
from typing import Final

from konverge_cluster.crds.paths import Place
from konverge_cluster.crds.structural import Structural

__all__ = ["BadPath", "resolve_path"]

_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]']+|.", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class BadPath(ValueError):
    """The path leads nowhere; the message is the server's."""


def resolve_path(path: str, schema: Structural, *, brackets: bool = True) -> tuple[Place, Structural]:
    """Follow a path through a schema; return the place as it is written in errors, and the schema there.

    Raises: BadPath.
    """
    tokens = _TOKEN.findall(path)
    place: Place = None
    node = schema
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token == "[":
            if not brackets:
                raise BadPath("array notation is not allowed")
            name = _quoted(_next(tokens, at + 1))
            place, node = _step(place, node, name)
            if (end := _next(tokens, at + 2)) != "]":
                raise BadPath(f"expected ] but got {end}")
            at += 3
        elif token == ".":
            place, node = _step(place, node, _next(tokens, at + 1))
            at += 2
        else:
            raise BadPath(f"expected [ or . but got: {token}")
    return place, node


def _next(tokens: list[str], at: int) -> str:
    if at >= len(tokens):
        raise BadPath("unexpected end of JSON path")
    return tokens[at]


def _quoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise BadPath(f"expected single quoted string but got {token}")
    unknown = next((match[0] for match in _ESCAPE.finditer(token[1:-1]) if match[1] not in _ESCAPES), "")
    if unknown:
        raise BadPath(f"invalid string literal: invalid escape char {unknown}")
    return _ESCAPE.sub(lambda match: _ESCAPES[match[1]], token[1:-1])


def _step(place: Place, node: Structural, name: str) -> tuple[Place, Structural]:
    if node.properties:
        if name not in node.properties:
            raise BadPath("does not refer to a valid field")
        return (place, f".{name}"), node.properties[name]
    if node.values is None:
        raise BadPath("does not refer to a valid field")
    return (place, f"[{name}]"), node.values
