"""Structural schemas from Python types; a type without one is refused with the wire path.

In a structural schema every field has its type in one place. So there are no unions of structs, no references and no
cycles. What Python can express beyond that is rewritten (`int | str`, `exactly_one`) or refused. Rules that hold here:

1. The server establishes every schema from here, except for CEL rules, which only the server compiles.
2. The default of a field is in the schema, so the server and Python set the same value.
3. `None` as the default of a field means that the field is omitted; anywhere else None means null.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping
from typing import Any, Literal, get_args, get_origin

import msgspec

from konverge.objects.conditions import Condition
from konverge.objects.quantities import Quantity, QuantityText
from konverge.objects.resources import Resource
from konverge.schema.constraints import constrain, schema_type
from konverge.schema.defaults import ABSENT, default_of, prune_and_default
from konverge.schema.docstrings import class_doc, field_docs
from konverge.schema.hints import Hint, fields_of, unwrap
from konverge.schema.list_types import check_list_type
from konverge.schema.markers import Opaque
from konverge.schema.primitives import (
    EXACTLY_ONE,
    INT_OR_STRING,
    OBJECT_FIELDS,
    PRESERVE,
    PRIMITIVES,
    SUGGESTIONS,
    Schema,
    schema_of_choices,
)
from konverge.schema.rules import exactly_one_rule, strip_private
from konverge.schema.schema_errors import invalid_value, unsupported_type
from konverge.schema.structs import struct_options
from konverge.schema.values import find_violations

__all__ = ["SchemaBuilder", "schema_of"]


def schema_of(annotation: Any, *, path: str = "", descriptions: bool = True) -> Schema:
    """Return the structural schema of a type, with descriptions from docstrings by default.

    Raises: TypeError or ValueError with the wire path if the type has no structural schema.
    """
    schema: Schema = strip_private(SchemaBuilder(descriptions=descriptions).of(annotation, path))
    return schema


class SchemaBuilder:
    """Builds the schemas of one kind. `scope` has the names that annotations in strings may use."""

    def __init__(self, *, scope: Mapping[str, Any] | None = None, descriptions: bool = False) -> None:
        self.scope = scope or {}
        self.descriptions = descriptions
        self._built: dict[Any, Schema] = {}
        self._open: list[Any] = []

    def of(self, annotation: Any, path: str, *, none_is_absent: bool = False) -> Schema:
        """Return the schema of an annotation."""
        hint = unwrap(annotation)
        if hint.misplaced:
            what = f"{hint.misplaced} is on a union, and msgspec accepts it on a single type only"
            raise unsupported_type(path, what, "write Annotated[X, Meta(...)] | None")
        schema = constrain(self._bare(hint, path), hint.markers, path)
        if hint.nullable and not none_is_absent:
            schema = {**schema, "nullable": True}
        if schema.get("nullable") and "enum" in schema:
            # The server compares null with each choice and rejects it, even if null is listed.
            what = "the server rejects null for an enum"
            raise unsupported_type(path, what, "write `X | None = None` on a field: None is then omitted")
        if schema_type(schema) == "array":
            check_list_type(schema, path)
        if "default" in schema:
            schema = {**schema, "default": _checked_default(schema, schema["default"], path)}
        return schema

    def struct(self, struct: Any, path: str) -> Schema:
        """Return the schema of a struct; refuse one that contains itself."""
        if struct in self._open:
            what = f"{_name(struct)} contains itself, and a CRD schema cannot"
            raise unsupported_type(path, what, "write Annotated[..., Opaque()] on the field that refers to it")
        if struct not in self._built:
            self._open.append(struct)
            self._built[struct] = self._struct(struct, path)
            self._open.pop()
        return self._built[struct]

    def fields(self, struct: Any, path: str) -> tuple[dict[str, Schema], list[str]]:
        """Return the schemas of the fields of a struct, and the names of the required ones."""
        docs = field_docs(get_origin(struct) or struct) if self.descriptions else {}
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
        """Return a schema with the class docstring as its description."""
        text = class_doc(cls) if self.descriptions else ""
        return {"description": text} if text else {}

    def _bare(self, hint: Hint, path: str) -> Schema:
        if any(isinstance(marker, Opaque) for marker in hint.markers):
            return _opaque(hint, path)
        if len(hint.alternatives) == 1:
            return self._one(hint.alternatives[0], path)
        if set(hint.alternatives) == {int, str}:
            return dict(INT_OR_STRING)
        if set(hint.alternatives) == {int, float}:
            return dict(PRIMITIVES[float])
        if set(hint.alternatives) == set(get_args(QuantityText)):
            return dict(PRIMITIVES[Quantity])
        names = " and ".join(map(_name, hint.alternatives))
        raise unsupported_type(
            path, f"a union of {names} has no structural schema", _instead_of_union(hint.alternatives)
        )

    def _one(self, alternative: Any, path: str) -> Schema:
        primitive = PRIMITIVES.get(alternative) if isinstance(alternative, Hashable) else None
        if primitive is not None:
            return dict(primitive)
        origin = get_origin(alternative) or alternative
        if origin is Literal:
            return schema_of_choices(get_args(alternative), path)
        if origin in (list, set):
            return self._list(origin, get_args(alternative), path)
        if origin is dict:
            return self._map(get_args(alternative), path)
        if isinstance(origin, type) and issubclass(origin, enum.Enum) and not issubclass(origin, enum.Flag):
            return schema_of_choices(tuple(origin), path)
        if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
            return self.struct(alternative, path)
        suggestion = SUGGESTIONS.get(getattr(origin, "__name__", ""), "write a struct, or a type that has a schema")
        raise unsupported_type(path, f"{_name(alternative)} has no schema", suggestion)

    def _list(self, origin: Any, parts: tuple[Any, ...], path: str) -> Schema:
        items = self.of(parts[0] if parts else Any, f"{path}[]")
        schema: Schema = {"type": "array", "items": items}
        if origin is set:
            if items.get("type") in ("object", "array"):
                what = "the items of a Python set must be scalars"
                raise unsupported_type(f"{path}[]", what, "write Annotated[list[...], ListSet()]")
            schema["x-kubernetes-list-type"] = "set"
        elif parts and unwrap(parts[0]).alternatives == (Condition,):
            schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
        return schema

    def _map(self, parts: tuple[Any, ...], path: str) -> Schema:
        key, value = parts or (str, Any)
        if key is not str:
            what = f"the keys of a map are strings, and a schema cannot restrict them to {_name(key)}"
            raise unsupported_type(path, what, "write dict[str, ...] and a Rule")
        if value is Any:
            return {"type": "object", PRESERVE: True}
        return {"type": "object", "additionalProperties": self.of(value, f"{path}.*")}

    def _struct(self, struct: Any, path: str) -> Schema:
        cls = get_origin(struct) or struct
        if cls.__struct_config__.array_like or cls.__struct_config__.tag is not None:
            raise unsupported_type(path, f"{_name(cls)} is tagged or array-like", "write a Model without these options")
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
    outer = get_origin(hint.alternatives[0]) or hint.alternatives[0]
    if outer in (list, set):
        return {"type": "array", "items": {PRESERVE: True}}
    if outer in (dict, Any) or (isinstance(outer, type) and issubclass(outer, msgspec.Struct)):
        return {"type": "object", PRESERVE: True}
    raise unsupported_type(path, f"Opaque is for structs, maps and lists, not for {_name(outer)}", "remove Opaque")


def _describes_itself(annotation: Any) -> bool:
    return any(isinstance(marker, msgspec.Meta) and marker.description for marker in unwrap(annotation).markers)


def _checked_default(schema: Schema, default: Any, path: str) -> Any:
    if default is None:
        raise invalid_value(path, "null is not a valid default", "write `X | None = None`, and omit Default")
    default = prune_and_default(schema, default)
    for violation in find_violations(schema, default, path):
        raise invalid_value(
            violation.path, f"the default does not match its own type: {violation.message}", "change one of the two"
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
            known = ", ".join(schema.get("properties", ()))
            raise invalid_value(path, f"exactly_one names {name!r}, which is not a field", f"write wire names: {known}")
        if name in schema.get("required", ()) or "default" in part:
            what = f"exactly_one names {name!r}, which is always set"
            raise invalid_value(f"{path}.{name}", what, "write `X | None = None`")


def _instead_of_union(alternatives: tuple[Any, ...]) -> str:
    if all(isinstance(alternative, type) and issubclass(alternative, msgspec.Struct) for alternative in alternatives):
        return 'write one Spec with an optional field for each of them and the keyword exactly_one=("git", "image")'
    if all(get_origin(alternative) is Literal for alternative in alternatives):
        return "write one Literal with all choices"
    return "write one of them, `int | str`, or Any"


def _name(annotation: Any) -> str:
    if get_origin(annotation) is None and isinstance(annotation, type):
        return annotation.__name__
    return str(annotation).replace("typing.", "")
