"""Type annotations: resolve names in strings, and unwrap `Annotated`, `Optional` and aliases."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Final, NewType, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from konverge.schema.schema_errors import unsupported_type

__all__ = ["Hint", "fields_of", "unwrap"]


_CONSTRAINTS: Final = ("ge", "gt", "le", "lt", "multiple_of", "pattern", "min_length", "max_length")


class Hint(Struct, frozen=True):
    """An unwrapped annotation: its alternatives without None, its markers, and whether None is an alternative.

    `misplaced` is a constraint on a union instead of on one of its types, which msgspec does not accept.
    """

    alternatives: tuple[Any, ...]
    markers: tuple[Any, ...] = ()
    nullable: bool = False
    misplaced: Meta | None = None


def unwrap(annotation: Any) -> Hint:
    """Remove `Annotated`, `| None`, NewType and type aliases around a type, at any depth."""
    if get_origin(annotation) is Annotated:
        inner = unwrap(annotation.__origin__)
        misplaced = inner.misplaced
        if get_origin(annotation.__origin__) in (Union, types.UnionType):
            misplaced = next((marker for marker in annotation.__metadata__ if _constrains(marker)), misplaced)
        return replace(inner, markers=(*inner.markers, *annotation.__metadata__), misplaced=misplaced)
    if isinstance(annotation, NewType):
        return unwrap(annotation.__supertype__)
    if type(annotation).__name__ == "TypeAliasType":
        return unwrap(annotation.__value__)
    if get_origin(annotation) not in (Union, types.UnionType):
        return Hint((annotation,))
    alternatives = [
        alternative for alternative in get_args(annotation) if alternative not in (types.NoneType, msgspec.UnsetType)
    ]
    nullable = types.NoneType in get_args(annotation)
    parts = [unwrap(alternative) for alternative in alternatives]
    return Hint(
        tuple(alternative for part in parts for alternative in part.alternatives),
        tuple(marker for part in parts for marker in part.markers),
        nullable or any(part.nullable for part in parts),
        next((part.misplaced for part in parts if part.misplaced), None),
    )


def _constrains(marker: Any) -> bool:
    return isinstance(marker, Meta) and any(getattr(marker, name) is not None for name in _CONSTRAINTS)


def fields_of(struct: Any, path: str, scope: Mapping[str, Any]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Return the fields of a struct with their types; `scope` is the scope of the class that is being created.

    Raises: TypeError that names the annotation if a name in it is not defined.
    """
    try:
        return msgspec.structs.fields(struct)
    except NameError:
        for cls in (get_origin(struct) or struct).__mro__:
            if issubclass(cls, msgspec.Struct) and cls is not msgspec.Struct:
                _resolve(cls, path, scope)
        return msgspec.structs.fields(struct)


def _resolve(cls: type[msgspec.Struct], path: str, scope: Mapping[str, Any]) -> None:
    """Replace the strings in the annotations of a class by types. msgspec looks up names in the module only."""
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
            suggestion = "define it above the custom resource, and import it at run time, not under TYPE_CHECKING"
            raise unsupported_type(f"{path}.{wire}", what, suggestion) from error
        own[attribute] = found[attribute]
