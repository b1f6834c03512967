"""Generate modules from the API description of a server: one for each group and version, with all served kinds.

The input is `/openapi/v3/<group version>` and aggregated discovery. Rules that hold here:

1. Served kinds become resources with an identity, the types that they refer to become models. A type is in the module
   of its own group, whatever uses it.
2. Lists and maps are empty by default and never None. Other optional fields are None by default.
3. Required fields have no default, with two exceptions, which servers omit or send as null nevertheless: times, and the
   fields of a status (a status is absent until it is written).
4. `spec` and `status` have a default unless they have required fields.
5. A struct that is a value in Go (`default: {}`) is required if it has required fields: Go always encodes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from konverge.codegen.discovery import Served, is_stable, served_kinds
from konverge.codegen.identifiers import attributes_of
from konverge.codegen.primitives import ANY, DATETIME, INT_OR_STRING, MICRO_TIME, OBJECT, primitive_type
from konverge.codegen.shapes import ClassShape, Default, FieldShape, ModuleShape, TypeShape
from konverge.codegen.texts import summary

__all__ = ["ApiDescription", "module_of"]

Schema = dict[str, Any]

PACKAGE = "konverge.k8s"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_OBJECT_META = f"{_META}ObjectMeta"
_EXTRA_ROOTS = (f"{_META}DeleteOptions", f"{_META}Status")


def _imported_type(module: str, name: str) -> TypeShape:
    return TypeShape(name, frozenset({(module, name)}))


_KNOWN: dict[str, TypeShape] = {
    _OBJECT_META: _imported_type("konverge.objects.metadata", "ObjectMeta"),
    f"{_META}ListMeta": _imported_type("konverge.objects.metadata", "ListMeta"),
    f"{_META}ManagedFieldsEntry": _imported_type("konverge.objects.metadata", "ManagedFieldsEntry"),
    f"{_META}OwnerReference": _imported_type("konverge.objects.metadata", "OwnerReference"),
    f"{_META}Condition": _imported_type("konverge.objects.conditions", "Condition"),
    f"{_META}Time": DATETIME,
    f"{_META}MicroTime": MICRO_TIME,
    f"{_META}FieldsV1": OBJECT,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _imported_type("konverge.objects.quantities", "QuantityText"),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": OBJECT,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING,
    f"{_CRD}JSON": ANY,
    f"{_CRD}JSONSchemaProps": OBJECT,
}
"""Definitions that are not generated: they are written by hand, or free-form."""


class ApiDescription:
    """The API description of a server, limited to stable versions."""

    def __init__(self, documents: Mapping[str, Any], discoveries: Iterable[Any]) -> None:
        self.schemas: dict[str, Schema] = {}
        for path in sorted(documents):
            if is_stable(path.rpartition("/")[2]):
                self.schemas |= documents[path].get("components", {}).get("schemas", {})
        self._served = served_kinds(*discoveries)

    @cached_property
    def kinds(self) -> dict[str, Served]:
        """Definitions of served kinds."""
        found = {}
        for name, schema in self.schemas.items():
            served = self._served_as(schema)
            if served is not None and _reference(schema.get("properties", {}).get("metadata", {})) == _OBJECT_META:
                found[name] = served
        return found

    @cached_property
    def generated(self) -> list[str]:
        """Definitions that become classes: the served kinds, and everything that they refer to."""
        todo = [*self.kinds, *(name for name in _EXTRA_ROOTS if name in self.schemas)]
        seen: set[str] = set()
        while todo:
            name = todo.pop()
            if name not in seen and name not in _KNOWN:
                seen.add(name)
                todo += _references(self.schemas[name])
        return sorted(name for name in seen if self.is_struct(name))

    @cached_property
    def statuses(self) -> frozenset[str]:
        """Definitions of the status of a kind."""
        found = (_reference(self.schemas[name]["properties"].get("status", {})) for name in self.kinds)
        return frozenset(filter(None, found))

    def is_struct(self, name: str) -> bool:
        return name not in _KNOWN and "properties" in self.schemas[name]

    def modules(self) -> dict[str, ModuleShape]:
        """Return the modules of `konverge.k8s` by dotted name, such as `apps.v1`."""
        found: dict[str, ModuleShape] = {}
        for name in self.generated:
            module = found.setdefault(module_of(name), ModuleShape(doc=""))
            module.classes.append(self._class(name))
        for module in found.values():
            module.classes.sort(key=lambda shape: (shape.kind is not None, shape.name))
        return dict(sorted(found.items()))

    def required_in(self, name: str) -> bool:
        """Report whether a struct has required fields."""
        if name in self.statuses:
            return False
        schema = self.schemas[name]
        return bool(schema.get("required")) or any(
            self._required_by_value(prop) for prop in schema.get("properties", {}).values()
        )

    def _served_as(self, schema: Schema) -> Served | None:
        for each in schema.get("x-kubernetes-group-version-kind", ()):
            served = self._served.get((each["group"], each["version"], each["kind"]))
            if served is not None:
                return served
        return None

    def _class(self, name: str) -> ClassShape:
        schema = self.schemas[name]
        served = self.kinds.get(name)
        skipped = {"apiVersion", "kind", "metadata"} if served else set()
        wires = [wire for wire in schema.get("properties", {}) if wire not in skipped]
        # The codec removes an empty status from the end of the encoded text, so the status is the last field.
        wires.sort(key=lambda wire: (served is not None and wire == "status", wire))
        attributes = attributes_of(wires, resource=served is not None)
        fields = tuple(self._field(name, wire, attributes[wire]) for wire in wires)
        return ClassShape(_short(name), _class_doc(schema, served), fields, served.kind if served else None)

    def _field(self, owner: str, wire: str, attribute: str) -> FieldShape:
        prop = self.schemas[owner]["properties"][wire]
        type_ = self._type(prop, owner)
        default = self._default(owner, wire, prop)
        if default == Default():
            type_ = type_.optional()
        return FieldShape(attribute, wire, type_, default, _field_doc(prop))

    def _default(self, owner: str, wire: str, prop: Schema) -> Default | None:
        if prop.get("type") == "array":
            return Default("list")
        if _is_map(prop):
            return Default("dict")
        struct = self._struct(prop)
        if struct and owner in self.kinds and wire in ("spec", "status"):
            return None if self.required_in(struct) else Default(_short(struct))
        if owner in self.statuses:
            return Default()
        required = wire in self.schemas[owner].get("required", ()) and not self._is_time(prop)
        return None if required or self._required_by_value(prop) else Default()

    def _required_by_value(self, prop: Schema) -> bool:
        struct = self._struct(prop)
        return struct is not None and prop.get("default") == {} and self.required_in(struct)

    def _struct(self, prop: Schema) -> str | None:
        name = _reference(prop)
        return name if name is not None and self.is_struct(name) else None

    def _is_time(self, prop: Schema) -> bool:
        return _reference(prop) in (f"{_META}Time", f"{_META}MicroTime")

    def _type(self, schema: Schema, owner: str) -> TypeShape:
        name = _reference(schema)
        if name is not None:
            return self._named(name, owner)
        if schema.get("type") == "array":
            return self._type(schema["items"], owner).in_list()
        if _is_map(schema):
            return self._type(schema["additionalProperties"], owner).in_map()
        if schema.get("type") == "object":
            return OBJECT
        return primitive_type(schema) or ANY

    def _named(self, name: str, owner: str) -> TypeShape:
        if name in _KNOWN:
            return _KNOWN[name]
        if not self.is_struct(name):
            return self._type(self.schemas[name], owner)
        if module_of(name) == module_of(owner):
            return TypeShape(_short(name))
        return _imported_type(f"{PACKAGE}.{module_of(name)}", _short(name))


def module_of(name: str) -> str:
    """Return the module of a definition: `io.k8s.api.apps.v1.Deployment` is in `apps.v1`."""
    *_, group, version, _ = name.split(".")
    return f"{group}.{version}"


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _reference(schema: Schema) -> str | None:
    """Return the definition that a schema refers to. It is in `allOf` if the schema has a description or a default."""
    parts = schema.get("allOf", ())
    target = schema.get("$ref") or (parts[0].get("$ref") if len(parts) == 1 else None)
    return target.rpartition("/")[2] if target else None


def _references(schema: Schema) -> Iterator[str]:
    name = _reference(schema)
    if name is not None:
        yield name
    inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for each in inner:
        if isinstance(each, dict):
            yield from _references(each)


def _is_map(schema: Schema) -> bool:
    return isinstance(schema.get("additionalProperties"), dict)


def _class_doc(schema: Schema, served: Served | None) -> str:
    doc = summary(schema.get("description", ""))
    if served is None or not served.subresources:
        return doc
    paths = ", ".join(f"`{path}`" for path in served.subresources)
    return f"{doc}\n\nIt has no collection of its own: it is written to {paths}."


def _field_doc(prop: Schema) -> str:
    doc = summary(prop.get("description", ""))
    values = prop.get("enum")
    return f"{doc}\n\nOne of {', '.join(f'`{value}`' for value in values)}." if values else doc
