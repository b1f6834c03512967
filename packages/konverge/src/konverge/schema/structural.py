"""A Python type becomes a structural schema, or is refused with the wire path.

Structural is what Kubernetes calls a schema in which every field has its type in one place. So there are no unions of
structs, no references and no cycles; what Python can say beyond that is rewritten (`int | str`, `exactly_one`) or
refused. Rules that hold here:

1. What passes is established by the server, CEL rules aside, which only the server compiles.
2. A field's default is in the schema, so the server and Python fill in the same value.
3. `None` as a field's default means that the field is left out; anywhere else None means null.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping
from typing import Any, Literal, get_args, get_origin

import msgspec

from konverge.objects.conditions import Condition
from konverge.objects.quantities import Quantity, QuantityText
from konverge.objects.resources import Resource
from konverge.schema.constraints import constrain, family_of
from konverge.schema.defaults import ABSENT, default_of, filled
from konverge.schema.docstrings import class_doc, field_docs
from konverge.schema.hints import Hint, fields_of, take_apart
from konverge.schema.leaves import (
    EXACTLY_ONE,
    INT_OR_STRING,
    LEAVES,
    OBJECT_FIELDS,
    PRESERVE,
    SUGGESTIONS,
    Schema,
    schema_of_choices,
)
from konverge.schema.list_types import check_list_type
from konverge.schema.markers import Opaque
from konverge.schema.parts import struct_options
from konverge.schema.refusals import refused_type, refused_value
from konverge.schema.rules import exactly_one_rule, published
from konverge.schema.values import problems_of

__all__ = ["SchemaMaker", "schema_of"]


def schema_of(annotation: Any, *, path: str = "", described: bool = True) -> Schema:
    """Give the structural schema of a type, with descriptions from docstrings unless told otherwise.

    Raises: TypeError or ValueError with the wire path when the type has no structural schema.
    """
    made: Schema = published(SchemaMaker(described=described).of(annotation, path))
    return made


class SchemaMaker:
    """Makes the schemas of one kind. `scope` holds the names that annotations in strings may use."""

    def __init__(self, *, scope: Mapping[str, Any] | None = None, described: bool = False) -> None:
        self.scope = scope or {}
        self.described = described
        self._made: dict[Any, Schema] = {}
        self._open: list[Any] = []

    def of(self, annotation: Any, path: str, *, none_is_absent: bool = False) -> Schema:
        """Give the schema of an annotation."""
        hint = take_apart(annotation)
        if hint.misplaced:
            what = f"{hint.misplaced} stands on a union, and msgspec takes it on a single type only"
            raise refused_type(path, what, "write Annotated[X, Meta(...)] | None")
        schema = constrain(self._bare(hint, path), hint.notes, path)
        if hint.nullable and not none_is_absent:
            schema = {**schema, "nullable": True}
        if schema.get("nullable") and "enum" in schema:
            # The server compares null with each choice and finds none, also when null is listed.
            what = "the server takes no null for an enum"
            raise refused_type(path, what, "write `X | None = None` on a field: None is then left out")
        if family_of(schema) == "array":
            check_list_type(schema, path)
        if "default" in schema:
            schema = {**schema, "default": _checked_default(schema, schema["default"], path)}
        return schema

    def struct(self, struct: Any, path: str) -> Schema:
        """Give the schema of a struct; one that is reached again from its own fields is refused."""
        if struct in self._open:
            what = f"{_name(struct)} contains itself, and a CRD schema cannot"
            raise refused_type(path, what, "write Annotated[..., Opaque()] where it would start again")
        if struct not in self._made:
            self._open.append(struct)
            self._made[struct] = self._struct(struct, path)
            self._open.pop()
        return self._made[struct]

    def fields(self, struct: Any, path: str) -> tuple[dict[str, Schema], list[str]]:
        """Give the schemas of the fields of a struct, and the names of those that are required."""
        docs = field_docs(get_origin(struct) or struct) if self.described else {}
        schemas: dict[str, Schema] = {}
        required: list[str] = []
        for info in fields_of(struct, path, self.scope):
            if info.encode_name in OBJECT_FIELDS and issubclass(get_origin(struct) or struct, Resource):
                schemas[info.encode_name] = dict(OBJECT_FIELDS[info.encode_name])
                continue
            schemas[info.encode_name] = schema = self._field(
                info, f"{path}.{info.encode_name}", docs.get(info.name, "")
            )
            if info.required and "default" not in schema:
                required.append(info.encode_name)
        return schemas, required

    def description(self, cls: type) -> Schema:
        """Give the class docstring as the start of a schema."""
        text = class_doc(cls) if self.described else ""
        return {"description": text} if text else {}

    def _bare(self, hint: Hint, path: str) -> Schema:
        if any(isinstance(note, Opaque) for note in hint.notes):
            return _opaque(hint, path)
        if len(hint.arms) == 1:
            return self._one(hint.arms[0], path)
        if set(hint.arms) == {int, str}:
            return dict(INT_OR_STRING)
        if set(hint.arms) == {int, float}:
            return dict(LEAVES[float])
        if set(hint.arms) == set(get_args(QuantityText)):
            return dict(LEAVES[Quantity])
        names = " and ".join(map(_name, hint.arms))
        raise refused_type(path, f"a union of {names} has no structural schema", _instead_of_union(hint.arms))

    def _one(self, arm: Any, path: str) -> Schema:
        leaf = LEAVES.get(arm) if isinstance(arm, Hashable) else None
        if leaf is not None:
            return dict(leaf)
        origin = get_origin(arm) or arm
        if origin is Literal:
            return schema_of_choices(get_args(arm), path)
        if origin in (list, set):
            return self._list(origin, get_args(arm), path)
        if origin is dict:
            return self._map(get_args(arm), path)
        if isinstance(origin, type) and issubclass(origin, enum.Enum) and not issubclass(origin, enum.Flag):
            return schema_of_choices(tuple(origin), path)
        if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
            return self.struct(arm, path)
        instead = SUGGESTIONS.get(getattr(origin, "__name__", ""), "write a struct, or a type that has a schema")
        raise refused_type(path, f"{_name(arm)} has no schema", instead)

    def _list(self, origin: Any, parts: tuple[Any, ...], path: str) -> Schema:
        items = self.of(parts[0] if parts else Any, f"{path}[]")
        made: Schema = {"type": "array", "items": items}
        if origin is set:
            if items.get("type") in ("object", "array"):
                raise refused_type(f"{path}[]", "a Python set holds scalars", "write Annotated[list[...], ListSet()]")
            made["x-kubernetes-list-type"] = "set"
        elif parts and take_apart(parts[0]).arms == (Condition,):
            made |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
        return made

    def _map(self, parts: tuple[Any, ...], path: str) -> Schema:
        key, value = parts or (str, Any)
        if key is not str:
            what = f"the keys of a map are any str, and a schema cannot narrow them to {_name(key)}"
            raise refused_type(path, what, "write dict[str, ...] and a Rule")
        if value is Any:
            return {"type": "object", PRESERVE: True}
        return {"type": "object", "additionalProperties": self.of(value, f"{path}.*")}

    def _struct(self, struct: Any, path: str) -> Schema:
        cls = get_origin(struct) or struct
        if cls.__struct_config__.array_like or cls.__struct_config__.tag is not None:
            raise refused_type(path, f"{_name(cls)} is tagged or array-like", "write a Model without these options")
        schemas, required = self.fields(struct, path)
        schema: Schema = {**self.description(cls), "type": "object"}
        if issubclass(cls, Resource):
            schema["x-kubernetes-embedded-resource"] = True
        if schemas:
            schema["properties"] = schemas
        if required:
            schema["required"] = required
        return {**schema, **_from_options(cls, schema, path)}

    def _field(self, info: msgspec.structs.FieldInfo, path: str, doc: str) -> Schema:
        schema = self.of(info.type, path, none_is_absent=info.default is None or info.default is msgspec.UNSET)
        default = default_of(info, path)
        if doc and not _describes_itself(info.type):
            schema = {"description": doc, **{key: value for key, value in schema.items() if key != "description"}}
        if default is not ABSENT and "default" not in schema:
            schema = {**schema, "default": _checked_default(schema, default, path)}
        return schema


def _opaque(hint: Hint, path: str) -> Schema:
    outer = get_origin(hint.arms[0]) or hint.arms[0]
    if outer in (list, set):
        return {"type": "array", "items": {PRESERVE: True}}
    if outer in (dict, Any) or (isinstance(outer, type) and issubclass(outer, msgspec.Struct)):
        return {"type": "object", PRESERVE: True}
    raise refused_type(path, f"Opaque is for structs, maps and lists, not for {_name(outer)}", "take Opaque off")


def _describes_itself(annotation: Any) -> bool:
    return any(isinstance(note, msgspec.Meta) and note.description for note in take_apart(annotation).notes)


def _checked_default(schema: Schema, default: Any, path: str) -> Any:
    if default is None:
        raise refused_value(path, "null is no default", "write `X | None = None`, and leave Default out")
    default = filled(schema, default)
    for problem in problems_of(schema, default, path):
        raise refused_value(
            problem.path, f"the default breaks its own type: {problem.message}", "change one of the two"
        )
    return default


def _from_options(cls: type, schema: Schema, path: str) -> Schema:
    options = struct_options(cls)
    rules = list(options.rules)
    added: Schema = {}
    for names in options.exactly_one:
        _check_choice(names, schema, path)
        added.setdefault(EXACTLY_ONE, []).append(list(names))
        rules.append(exactly_one_rule(names))
    if options.atomic:
        added["x-kubernetes-map-type"] = "atomic"
    if options.preserve_unknown:
        added[PRESERVE] = True
    if rules:
        added["x-kubernetes-validations"] = [rule.to_wire() for rule in rules]
    return added


def _check_choice(names: tuple[str, ...], schema: Schema, path: str) -> None:
    for name in names:
        part = schema.get("properties", {}).get(name)
        if part is None:
            there = ", ".join(schema.get("properties", ()))
            raise refused_value(path, f"exactly_one names {name!r}, which is no field", f"write wire names: {there}")
        if name in schema.get("required", ()) or "default" in part:
            what = f"exactly_one names {name!r}, which is always there"
            raise refused_value(f"{path}.{name}", what, "write `X | None = None`")


def _instead_of_union(arms: tuple[Any, ...]) -> str:
    if all(isinstance(arm, type) and issubclass(arm, msgspec.Struct) for arm in arms):
        return 'write one Spec with an optional field for each of them and the keyword exactly_one=("git", "image")'
    if all(get_origin(arm) is Literal for arm in arms):
        return "write one Literal with all choices"
    return "write one of them, `int | str`, or Any"


def _name(annotation: Any) -> str:
    if get_origin(annotation) is None and isinstance(annotation, type):
        return annotation.__name__
    return str(annotation).replace("typing.", "")
