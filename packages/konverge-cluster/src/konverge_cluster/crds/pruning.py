"""Remove fields that a structural schema does not specify, in place, and report them.

Two rules are applied in one walk, since both visit every key:

1. An unknown field is removed unless `x-kubernetes-preserve-unknown-fields` keeps it. Below a field that is known only
      by `additionalProperties: true` nothing is known.
2. A null is removed if the schema does not allow it and has no default for it.

Kind, apiVersion and metadata of the object and of embedded resources are left alone; `embedded.py` handles those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from konverge_cluster.crds.paths import FieldPath, format_path
from konverge_cluster.crds.structural import META_FIELDS, Structural

__all__ = ["compile_pruning"]

Pruner = Callable[[dict[str, Any]], list[str]]
"""Prunes an object in place; returns the paths of the unknown fields, sorted."""

_Walk = Callable[[Any, FieldPath, list[FieldPath]], None]


def compile_pruning(schema: Structural) -> Pruner:
    """Return the pruner of a resource for its root schema."""
    walk = _compile(schema, root=True)

    def prune(document: dict[str, Any]) -> list[str]:
        unknown: list[FieldPath] = []
        walk(document, None, unknown)
        return sorted(map(format_path, unknown)) if unknown else []

    return prune


class _Known(NamedTuple):
    """A key in the schema: `walk` prunes its value (None leaves it alone), `drops_null` removes a null."""

    walk: _Walk | None
    step: str
    drops_null: bool


def _compile(schema: Structural | None, *, root: bool = False, keep: bool = False) -> _Walk:
    """Return the walk of a value; `keep` if a list around it keeps unknown fields, whatever this schema specifies."""
    if schema is None:
        return _prune_all
    keeps = keep or schema.preserves
    walk_object = _compile_object(schema, root=root, keeps=keeps)
    walk_list = _compile_list(schema, keeps=keeps)

    def walk(value: Any, field_path: FieldPath, unknown: list[FieldPath]) -> None:
        if type(value) is dict:
            walk_object(value, field_path, unknown)
        else:
            walk_list(value, field_path, unknown)

    return walk


def _compile_list(schema: Structural, *, keeps: bool) -> _Walk:
    if schema.items is None and keeps:
        return _keep_all
    walk_item = _compile(schema.items, keep=keeps)

    def walk(value: Any, field_path: FieldPath, unknown: list[FieldPath]) -> None:
        for index, item in enumerate(value):
            if type(item) is dict or type(item) is list:
                walk_item(item, (field_path, index), unknown)

    return walk


def _known_keys(schema: Structural, *, root: bool) -> dict[str, _Known]:
    known = {name: _known(each, f".{name}") for name, each in schema.properties.items()}
    if root or schema.embedded:
        for name in META_FIELDS:
            drops = name in known and known[name].drops_null
            known[name] = _Known(None, f".{name}", drops)
    return known


def _known(schema: Structural, step: str) -> _Known:
    return _Known(_compile(schema), step, _drops_null(schema))


def _drops_null(schema: Structural | None) -> bool:
    return schema is not None and not schema.nullable and schema.default is None


def _compile_object(schema: Structural, *, root: bool, keeps: bool) -> _Walk:
    known = _known_keys(schema, root=root).get
    walk_other = _compile(schema.values) if schema.open else None
    drops_null = _drops_null(schema.values)

    def walk(value: Any, field_path: FieldPath, unknown: list[FieldPath]) -> None:
        dropped: list[str] | None = None
        for key, item in value.items():
            found = known(key)
            if found is None and walk_other is not None:
                found = _Known(walk_other, f".{key}", drops_null)
            if found is None:
                if keeps:
                    continue
                unknown.append((field_path, f".{key}"))
            elif item is None:
                if not found.drops_null:
                    continue
            else:
                if found.walk is not None and (type(item) is dict or type(item) is list):
                    found.walk(item, (field_path, found.step), unknown)
                continue
            dropped = dropped or []
            dropped.append(key)
        if dropped is not None:
            for key in dropped:
                del value[key]

    return walk


def _prune_all(value: Any, field_path: FieldPath, unknown: list[FieldPath]) -> None:
    if type(value) is dict:
        unknown.extend((field_path, f".{key}") for key in value)
        value.clear()
        return
    for index, item in enumerate(value):
        if type(item) is dict or type(item) is list:
            _prune_all(item, (field_path, index), unknown)


def _keep_all(_value: Any, _position: FieldPath, _unknown: list[FieldPath]) -> None:
    return None
