"""Annotations as types: names in strings are looked up, `Annotated`, `Optional` and aliases are taken apart."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, NewType, Union, get_args, get_origin

import msgspec
from msgspec import Meta

from konverge.schema.refusals import refused_type

__all__ = ["Hint", "fields_of", "take_apart"]


_CONSTRAINTS: Final = ("ge", "gt", "le", "lt", "multiple_of", "pattern", "min_length", "max_length")


@dataclass(frozen=True)
class Hint:
    """An annotation taken apart: its alternatives without None, the notes on it, and whether None is one of them.

    `misplaced` is a constraint that stands on a union instead of on one of its types, where msgspec does not take it.
    """

    arms: tuple[Any, ...]
    notes: tuple[Any, ...] = ()
    nullable: bool = False
    misplaced: Meta | None = None


def take_apart(annotation: Any) -> Hint:
    """Take off `Annotated`, `| None`, NewType and type aliases, at any depth around the type itself."""
    if get_origin(annotation) is Annotated:
        inner = take_apart(annotation.__origin__)
        misplaced = inner.misplaced
        if get_origin(annotation.__origin__) in (Union, types.UnionType):
            misplaced = next((note for note in annotation.__metadata__ if _constrains(note)), misplaced)
        return replace(inner, notes=(*inner.notes, *annotation.__metadata__), misplaced=misplaced)
    if isinstance(annotation, NewType):
        return take_apart(annotation.__supertype__)
    if type(annotation).__name__ == "TypeAliasType":
        return take_apart(annotation.__value__)
    if get_origin(annotation) not in (Union, types.UnionType):
        return Hint((annotation,))
    arms = [arm for arm in get_args(annotation) if arm not in (types.NoneType, msgspec.UnsetType)]
    nullable = types.NoneType in get_args(annotation)
    parts = [take_apart(arm) for arm in arms]
    return Hint(
        tuple(arm for part in parts for arm in part.arms),
        tuple(note for part in parts for note in part.notes),
        nullable or any(part.nullable for part in parts),
        next((part.misplaced for part in parts if part.misplaced), None),
    )


def _constrains(note: Any) -> bool:
    return isinstance(note, Meta) and any(getattr(note, name) is not None for name in _CONSTRAINTS)


def fields_of(struct: Any, path: str, scope: Mapping[str, Any]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Give the fields of a struct with their types; `scope` holds the names around the class that is being made.

    Raises: TypeError that names the annotation when a name in it cannot be found.
    """
    try:
        return msgspec.structs.fields(struct)
    except NameError:
        for cls in (get_origin(struct) or struct).__mro__:
            if issubclass(cls, msgspec.Struct) and cls is not msgspec.Struct:
                _resolve(cls, path, scope)
        return msgspec.structs.fields(struct)


def _resolve(cls: type[msgspec.Struct], path: str, scope: Mapping[str, Any]) -> None:
    """Replace the strings in the annotations of a class by types, for msgspec looks for names in the module only."""
    own = vars(cls).get("__annotations__", {})
    module = vars(sys.modules.get(cls.__module__, typing))
    for attribute, wire in zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True):
        if attribute not in own:
            continue
        carrier = types.SimpleNamespace(__annotations__={attribute: own[attribute]})
        try:
            found = typing.get_type_hints(carrier, module, {**scope, **vars(cls)}, include_extras=True)
        except NameError as error:
            what = f"the name {error.name!r} in the annotation of {cls.__name__}.{attribute} is not defined"
            instead = "define it above the custom resource, and import it at run time, not under TYPE_CHECKING"
            raise refused_type(f"{path}.{wire}", what, instead) from error
        own[attribute] = found[attribute]
