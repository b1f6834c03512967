"""A Python type becomes a structural schema, or is refused with the wire path.

Structural is what Kubernetes calls a schema in which every field has its type in one place. So there are no unions of
structs, no references and no cycles; what Python can say beyond that is rewritten (`int | str`, `exactly_one`) or
refused. Lists and enums are checked as the server checks them, so that what passes here is established there.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

import msgspec

from konverge.objects.resources import Resource
from konverge.schema.constraints import constrain, family_of
from konverge.schema.defaults import ABSENT, default_of, filled
from konverge.schema.docstrings import class_doc, field_docs
from konverge.schema.hints import Hint, fields_of, take_apart
from konverge.schema.leaves import INT_OR_STRING, LEAVES, PRESERVE, SUGGESTIONS, Schema, schema_of_choices
from konverge.schema.listtypes import check_list_type
from konverge.schema.parts import struct_options
from konverge.schema.refusals import refused_type, refused_value
from konverge.schema.values import problems_of

__all__ = ["SchemaMaker", "schema_of"]


def schema_of(annotation: Any, *, path: str = "", described: bool = True) -> Schema:
    """Give the structural schema of a type, with descriptions from docstrings unless told otherwise.

    Raises: TypeError or ValueError with the wire path when the type has no structural schema.
    """
    return SchemaMaker(described=described).of(annotation, path)


class SchemaMaker:
    """Makes the schemas of one custom resource. `scope` holds the names that annotations in strings may use."""

    def __init__(self, *, scope: Mapping[str, Any] | None = None, described: bool = False) -> None:
        self.scope = scope or {}
        self.described = described
        self._made: dict[Any, Schema] = {}
        self._open: list[Any] = []

    def of(self, annotation: Any, path: str, *, none_is_absent: bool = False) -> Schema:
        """Give the schema of an annotation; None means null unless the field leaves it out."""
        hint = take_apart(annotation)
        schema = constrain(self._bare(hint, path), hint.notes, path)
        if hint.nullable and not none_is_absent:
            schema = {**schema, "nullable": True}
        if schema.get("nullable") and "enum" in schema:
            # The server compares null with each choice and finds none, also when null is listed.
            raise refused_type(
                path, "the server takes no null for an enum", "write `X | None = None`: None is left out"
            )
        if family_of(schema) == "array":
            check_list_type(schema, path)
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

    def _bare(self, hint: Hint, path: str) -> Schema:
        if any(type(note).__name__ == "Opaque" for note in hint.notes):
            return {"type": "object"}
        if len(hint.arms) == 1:
            return self._one(hint.arms[0], path)
        arms = set(hint.arms)
        if arms == {int, str}:
            return dict(INT_OR_STRING)
        if arms == {int, float}:
            return dict(LEAVES[float])
        raise refused_type(
            path, f"a union of {' and '.join(map(_name, hint.arms))} has no structural schema", _instead(arms)
        )

    def _one(self, arm: Any, path: str) -> Schema:
        leaf = LEAVES.get(arm) if arm.__hash__ else None
        if leaf is not None:
            return dict(leaf)
        origin = get_origin(arm) or arm
        if origin is Literal:
            return schema_of_choices(get_args(arm), path)
        if origin in (list, set, dict):
            return self._container(origin, get_args(arm), path)
        if isinstance(origin, type):
            if issubclass(origin, enum.Enum):
                return schema_of_choices(tuple(origin), path)
            if issubclass(origin, msgspec.Struct):
                return self.struct(arm, path)
        instead = SUGGESTIONS.get(
            getattr(origin, "__name__", ""), "write a type of the table in docs/reference/crds.md"
        )
        raise refused_type(path, f"{_name(arm)} has no schema", instead)

    def _container(self, origin: Any, parts: tuple[Any, ...], path: str) -> Schema:
        if origin is dict:
            return self._map(parts, path)
        items = self.of(parts[0] if parts else Any, f"{path}[]")
        made: Schema = {"type": "array", "items": items}
        return made if origin is list else {**made, "x-kubernetes-list-type": "set"}

    def _map(self, parts: tuple[Any, ...], path: str) -> Schema:
        key, value = parts or (str, Any)
        if key is not str:
            raise refused_type(
                path, f"the keys of a map are any str, not {_name(key)}", "write dict[str, ...] and a Rule"
            )
        if value is Any:
            return {"type": "object", PRESERVE: True}
        return {"type": "object", "additionalProperties": self.of(value, f"{path}.*")}

    def _struct(self, struct: Any, path: str) -> Schema:
        cls = get_origin(struct) or struct
        if cls.__struct_config__.array_like or cls.__struct_config__.tag is not None:
            raise refused_type(path, f"{_name(cls)} is a tagged or array-like struct", "write a Model without tag")
        described = {"description": class_doc(cls)} if self.described and class_doc(cls) else {}
        docs = field_docs(cls) if self.described else {}
        embedded = issubclass(cls, Resource)
        properties: dict[str, Schema] = {}
        required: list[str] = []
        for info in fields_of(struct, path, self.scope):
            wire = info.encode_name
            if embedded and wire in _META:
                properties[wire] = dict(_META[wire])
                continue
            properties[wire] = self.field(info, f"{path}.{wire}", docs.get(info.name, ""))
            if info.required and "default" not in properties[wire]:
                required.append(wire)
        schema: Schema = {**described, "type": "object"}
        if properties:
            schema["properties"] = properties
        if required:
            schema["required"] = required
        if embedded:
            schema["x-kubernetes-embedded-resource"] = True
        return {**schema, **_from_options(cls, properties, path)}

    def field(self, info: msgspec.structs.FieldInfo, path: str, doc: str = "") -> Schema:
        """Give the schema of one field with its default and description."""
        default = default_of(info, path)
        schema = self.of(info.type, path, none_is_absent=info.default is None or info.default is msgspec.UNSET)
        if doc and not any(isinstance(n, msgspec.Meta) and n.description for n in take_apart(info.type).notes):
            schema = {"description": doc, **{key: value for key, value in schema.items() if key != "description"}}
        if "default" in schema:
            default = schema["default"]
        if default is not ABSENT:
            schema = {**schema, "default": _checked_default(schema, default, path)}
        return schema


_META: Mapping[str, Schema] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
}


def _checked_default(schema: Schema, default: Any, path: str) -> Any:
    if default is None:
        raise refused_value(path, "null is no default", "write `X | None = None` and no Default")
    default = filled(schema, default)
    for problem in problems_of(schema, default, path):
        raise refused_value(
            problem.path, f"the default breaks its own constraint: {problem.message}", "change one of them"
        )
    return default


def _from_options(cls: type, properties: Mapping[str, Schema], path: str) -> Schema:
    options = struct_options(cls)
    added: Schema = {}
    if options.exactly_one:
        for name in options.exactly_one:
            if name not in properties:
                raise refused_value(
                    path, f"exactly_one names {name!r}, which is no field", "write wire names of fields"
                )
        added["oneOf"] = [{"required": [name]} for name in options.exactly_one]
    if options.atomic:
        added["x-kubernetes-map-type"] = "atomic"
    if options.preserve_unknown:
        added[PRESERVE] = True
    if options.rules:
        added["x-kubernetes-validations"] = [rule.to_wire() for rule in options.rules]
    return added


def _instead(arms: set[Any]) -> str:
    if all(isinstance(arm, type) and issubclass(arm, msgspec.Struct) for arm in arms):
        return "write one Spec with an optional field for each of them and exactly_one=(...)"
    if all(get_origin(arm) is Literal for arm in arms):
        return "write one Literal with all choices"
    return "write one type, `int | str`, or Any"


def _name(annotation: Any) -> str:
    if get_origin(annotation) is None and isinstance(annotation, type):
        return annotation.__name__
    return str(annotation).replace("typing.", "")
