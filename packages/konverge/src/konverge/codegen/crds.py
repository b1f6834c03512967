"""Generate one module of typed classes from CRD files: the output of `konverge models FILE`.

Rules that hold here:

1. The class of a kind has the name of the kind. A nested model is named after its path (`CertificateSpecPrivateKey`),
   or after the end of a long path. The stored version has the plain name, other versions have theirs as a suffix
   (`CertificateV1alpha2`).
2. The server enforces the schema of a CRD exactly. So required fields are required, also lists and maps, and a nullable
   one may be None. Optional lists and maps are empty by default, other optional fields None.
3. `spec` and `status` are as in `konverge.k8s`: a status is never None, so none of its own fields is required; a spec
   has a default unless it has required fields.
4. Where the schema preserves unknown fields (`x-kubernetes-preserve-unknown-fields`), the type is plain JSON.
5. The same input gives the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from konverge.codegen.identifiers import Names, attributes_of, can_be_field, class_word
from konverge.codegen.manifests import CrdVersion, Schema, read_crds
from konverge.codegen.primitives import ANY, INT_OR_STRING, OBJECT, QUANTITY, primitive_type
from konverge.codegen.shapes import ClassShape, Default, FieldShape, LiteralShape, ModuleShape, TypeShape
from konverge.codegen.source import source_of
from konverge.codegen.texts import string_literal, summary
from konverge.errors import DecodeError

__all__ = ["models_from_crds"]

MAX_NAME_LENGTH = 64

_IMPORTED_NAMES = (
    *("Any", "Condition", "Kind", "Literal", "Model", "Quantity", "Resource", "Scope", "TypeAlias", "Unstructured"),
    *("annotations", "datetime", "field"),
)
_UNSTRUCTURED = TypeShape("Unstructured", frozenset({("konverge.objects.resources", "Unstructured")}))
_CONDITION = TypeShape("Condition", frozenset({("konverge.objects.conditions", "Condition")}))
_CONDITION_REQUIRED = frozenset({"type", "status", "reason", "message", "lastTransitionTime"})
_CONDITION_FIELDS = _CONDITION_REQUIRED | {"observedGeneration"}
_QUANTITY_PATTERN = re.compile(r"\[KMGTPE\]i\)?\|\[numkMGTPE\]")
_INLINE_LITERAL = 60


def models_from_crds(text: str, *, source: str = "input") -> str:
    """Return a module with a class for each served version of each CRD in a YAML or JSON text.

    Raises: DecodeError if the text contains no valid CRD; the message names `source` and the location.
    """
    versions = read_crds(text, source=source)
    return source_of(_Module(versions, source).shape())


class _Module:
    """The module with the classes of all CRDs of one input, which share a namespace."""

    def __init__(self, versions: list[CrdVersion], source: str) -> None:
        self._versions = versions
        self._source = source
        self._names = Names(_IMPORTED_NAMES)
        self._shape = ModuleShape(doc=_module_doc(versions, source))

    def shape(self) -> ModuleShape:
        # Kinds claim their names first, before the nested models of other kinds.
        names = {id(version): self._kind_name(version) for version in _stored_first(self._versions)}
        for version in self._versions:
            self._add_kind(version, names[id(version)])
        return self._shape

    def _kind_name(self, version: CrdVersion) -> str:
        word = class_word(version.kind.kind)
        plain = word if word.isidentifier() else f"Kind{word}"
        versioned = f"{plain}{class_word(version.kind.version)}"
        group = class_word(version.kind.group.partition(".")[0])
        grouped = f"{group if group.isidentifier() else f'Group{group}'}{plain}"
        candidates = [plain, grouped] if version.storage or self._only_one(version) else [versioned]
        return self._names.claim(*candidates, f"{grouped}{class_word(version.kind.version)}")

    def _only_one(self, version: CrdVersion) -> bool:
        same = [each for each in self._versions if _group_kind(each) == _group_kind(version)]
        return len(same) == 1

    def _add_kind(self, version: CrdVersion, name: str) -> None:
        try:
            shape = self._kind_class(version, name)
        except _SchemaError as error:
            what = f"{version.kind} in {self._source}: {error}, at {error.path or '.'} of its schema"
            raise DecodeError(what, path=error.path) from None
        self._shape.classes.append(shape)

    def _kind_class(self, version: CrdVersion, name: str) -> ClassShape:
        properties = _properties(version.schema, "")
        wires = [wire for wire in properties if wire not in ("apiVersion", "kind", "metadata") and can_be_field(wire)]
        # The codec removes an empty status from the end of the encoded text, so the status is the last field.
        wires.sort(key=lambda wire: wire == "status")
        attributes = attributes_of(wires, resource=True)
        place = Place(name)
        fields = [self._kind_field(version.schema, attributes[wire], place.field(wire)) for wire in wires]
        return ClassShape(name, _doc(version.schema), tuple(fields), version.kind)

    def _kind_field(self, schema: Schema, attribute: str, place: Place) -> FieldShape:
        wire = place.wire
        if wire == "status":
            schema = _with_open_status(schema)
        shape = self._field(schema, attribute, place)
        model = self._class_named(shape.type.text.removesuffix(" | None"))
        if wire not in ("spec", "status") or model is None:
            return shape
        all_optional = all(field.default is not None for field in model.fields)
        default = Default(model.name) if all_optional else None
        return FieldShape(attribute, wire, TypeShape(model.name), default, shape.doc)

    def _class_named(self, name: str) -> ClassShape | None:
        return next((shape for shape in self._shape.classes if shape.name == name), None)

    def _model(self, schema: Schema, place: Place) -> TypeShape:
        name = self._names.claim(*place.class_names())
        # The position is taken before nested models are added, so that the outer model comes first in the source.
        position = len(self._shape.classes)
        wires = [wire for wire in _properties(schema, place.path) if can_be_field(wire)]
        attributes = attributes_of(wires)
        fields = [self._field(schema, attributes[wire], place.field(wire)) for wire in wires]
        self._shape.classes.insert(position, ClassShape(name, _doc(schema), tuple(fields)))
        return TypeShape(name)

    def _field(self, owner: Schema, attribute: str, place: Place) -> FieldShape:
        schema = _schema(owner["properties"][place.wire], place.path)
        type_ = self._type(schema, place)
        default: Default | None = None
        if place.wire not in _required(owner):
            default = Default() if schema.get("nullable") is True else _default(type_)
        if default == Default():
            type_ = type_.optional()
        return FieldShape(attribute, place.wire, type_, default, _field_doc(schema))

    def _type(self, schema: Schema, place: Place) -> TypeShape:
        type_ = self._bare_type(schema, place)
        return type_.optional() if schema.get("nullable") is True else type_

    def _bare_type(self, schema: Schema, place: Place) -> TypeShape:
        if schema.get("x-kubernetes-int-or-string") is True or schema.get("format") == "int-or-string":
            return QUANTITY if _QUANTITY_PATTERN.search(str(schema.get("pattern", ""))) else INT_OR_STRING
        match schema.get("type"):
            case "object":
                return self._object(schema, place)
            case "array":
                inner = place.element("[]")
                return self._type(_schema(schema.get("items", {}), inner.path), inner).in_list()
            case "string" | "integer" | "number" | "boolean":
                return self._choice(schema, place) or primitive_type(schema) or ANY
            case None:
                return ANY
            case other:
                raise _SchemaError(f"unknown type {other!r:.40}", place.path)

    def _object(self, schema: Schema, place: Place) -> TypeShape:
        if schema.get("x-kubernetes-embedded-resource") is True:
            return _UNSTRUCTURED
        if _properties(schema, place.path):
            return _CONDITION if _is_condition(schema) else self._model(schema, place)
        values = schema.get("additionalProperties")
        return self._type(values, place.element("{}")).in_map() if isinstance(values, dict) else OBJECT

    def _choice(self, schema: Schema, place: Place) -> TypeShape | None:
        """Return the Literal of an enum, None if msgspec does not support its values: strings and 64-bit integers."""
        listed = schema.get("enum")
        values = [value for value in listed if value is not None] if isinstance(listed, list) else []
        plain = primitive_type(schema)
        if not values or plain is None or not all(_can_be_literal(value, plain.text) for value in values):
            return None
        values = list(dict.fromkeys(values))
        inline = ", ".join(string_literal(value) if isinstance(value, str) else str(value) for value in values)
        if len(inline) <= _INLINE_LITERAL:
            return TypeShape(f"Literal[{inline}]", frozenset({("typing", "Literal")}))
        name = self._names.claim(*place.class_names())
        self._shape.literals.append(LiteralShape(name, tuple(values)))
        return TypeShape(name)


@dataclass(frozen=True)
class Place:
    """The location of a schema: the class of the kind, the fields that lead to it, and the wire path."""

    kind: str
    fields: tuple[str, ...] = ()
    path: str = ""

    @property
    def wire(self) -> str:
        return self.fields[-1]

    def field(self, wire: str) -> Place:
        return Place(self.kind, (*self.fields, wire), f"{self.path}.{wire}")

    def element(self, suffix: str) -> Place:
        """Return the location of the items of a list ("[]") or of the values of a map ("{}")."""
        return Place(self.kind, self.fields, f"{self.path}{suffix}")

    def class_names(self) -> list[str]:
        """Return candidates for a class name, best first: the whole path, or as much of its end as fits."""
        words = [class_word(field) for field in self.fields]
        names = [self.kind + "".join(words[start:]) for start in range(len(words))]
        fitting = next((index for index, name in enumerate(names) if len(name) <= MAX_NAME_LENGTH), len(names) - 1)
        return names[fitting::-1]


class _SchemaError(Exception):
    def __init__(self, what: str, path: str) -> None:
        super().__init__(what)
        self.path = path


def _stored_first(versions: list[CrdVersion]) -> Iterator[CrdVersion]:
    yield from sorted(versions, key=lambda version: not version.storage)


def _group_kind(version: CrdVersion) -> tuple[str, str]:
    return version.kind.group, version.kind.kind


def _with_open_status(schema: Schema) -> Schema:
    """Return the schema of a kind without required fields in its status."""
    status = _schema(schema["properties"]["status"], ".status")
    return {**schema, "properties": {**schema["properties"], "status": {**status, "required": []}}}


def _module_doc(versions: list[CrdVersion], source: str) -> str:
    kinds = ", ".join(str(version.kind) for version in versions)
    return f"Typed classes for {kinds}.\n\nGenerated by `konverge models` from {source}; do not edit."


def _properties(schema: Schema, path: str) -> Schema:
    properties = schema.get("properties") or {}
    if not isinstance(properties, dict) or not all(isinstance(wire, str) for wire in properties):
        raise _SchemaError("properties is not an object with string keys", path)
    return properties


def _schema(value: Any, path: str) -> Schema:
    if not isinstance(value, dict):
        raise _SchemaError(f"expected a schema, got {type(value).__name__}", path)
    return value


def _required(schema: Schema) -> frozenset[str]:
    required = schema.get("required")
    return frozenset(name for name in required if isinstance(name, str)) if isinstance(required, list) else frozenset()


def _default(type_: TypeShape) -> Default:
    if type_.text.startswith("list["):
        return Default("list")
    # Free-form objects are maps too, so an empty one is more convenient than None.
    return Default("dict") if type_.text.startswith("dict[") else Default()


def _is_condition(schema: Schema) -> bool:
    return frozenset(schema["properties"]) == _CONDITION_FIELDS and _required(schema) == _CONDITION_REQUIRED


def _can_be_literal(value: Any, type_: str) -> bool:
    if type_ == "str":
        return type(value) is str
    return type_ == "int" and type(value) is int and -(2**63) <= value < 2**63


def _doc(schema: Schema) -> str:
    description = schema.get("description")
    return summary(description) if isinstance(description, str) else ""


def _field_doc(schema: Schema) -> str:
    """Return the description and the default of the server."""
    doc = _doc(schema)
    default = schema.get("default")
    if not isinstance(default, str | int | float):
        return doc
    text = {True: "true", False: "false"}.get(default, default) if isinstance(default, bool) else default
    return f"{doc}\n\nThe server's default is `{text!s:.80}`."
