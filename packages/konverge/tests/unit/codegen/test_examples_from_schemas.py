"""Generated classes decode and encode examples of their schemas without changing a byte.

The examples are generated from the schemas (of a 1.36 server, of CRD files), independently of the classes.
"""

from __future__ import annotations

import base64
import gzip
import importlib
import json
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Literal, TypeAlias

import pytest

from konverge.codegen import models_from_crds
from konverge.codegen.manifests import CrdVersion, read_crds
from konverge.codegen.openapi import module_of
from konverge.objects.codec import decode, encode
from konverge.objects.conditions import Condition
from konverge.objects.metadata import ListMeta, ManagedFieldsEntry, ObjectMeta, OwnerReference
from konverge.objects.models import Model
from konverge.objects.resources import Resource
from repository import DATA

Schema: TypeAlias = Mapping[str, Any]
Filling: TypeAlias = Literal["full", "least", "zero"]

CRD_FILES = ("certificates.yaml", "monitoring.yaml")
DEFINITIONS: dict[str, Any] = json.loads(gzip.decompress((DATA / "openapi-v3-1.36.json.gz").read_bytes()))
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

MICRO_TIME = f"{META}MicroTime"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
FREE = {"camelCase": {"snake_case": [1, 2.5, "x", None, True]}, "$ref": ""}

WRITTEN_BY_HAND: dict[str, type[Model]] = {
    f"{META}{model.__name__}": model for model in (Condition, ListMeta, ManagedFieldsEntry, ObjectMeta, OwnerReference)
}
FREE_IN_FORM = {
    f"{META}FieldsV1",
    f"{META}Patch",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    f"{CRD}CustomResourceSubresourceStatus",
    f"{CRD}ExternalDocumentation",
    f"{CRD}JSONSchemaProps",
    f"{CRD}ValidationRule",
}
OF_THE_PROTOCOL = {f"{META}{name}" for name in ("APIResource", "APIResourceList", "ShardInfo", "WatchEvent")}


def class_of(name: str) -> type[Model] | None:
    """Return the class of a definition, if there is one."""
    if name in WRITTEN_BY_HAND:
        return WRITTEN_BY_HAND[name]
    try:
        module = importlib.import_module(f"konverge.k8s.{module_of(name)}")
    except ImportError:
        return None
    found: type[Model] | None = getattr(module, name.rpartition(".")[2], None)
    return found


CLASSES = {name: model for name in DEFINITIONS if (model := class_of(name)) is not None}
MODULES = sorted({module_of(name) for name in CLASSES})


def canonical(data: bytes) -> bytes:
    return json.dumps(json.loads(data), sort_keys=True).encode()


def example_of(name: str, filling: Filling) -> bytes:
    """Return an example; one of a resource has apiVersion and kind, and no empty status."""
    example = ExampleMaker(DEFINITIONS, filling).make(DEFINITIONS[name], ())
    model = CLASSES[name]
    if issubclass(model, Resource):
        example |= {"apiVersion": model.__kind__.api_version, "kind": model.__kind__.kind}
        if example.get("status") == {}:
            del example["status"]
    return json.dumps(example).encode()


@pytest.mark.parametrize("filling", ["full", "zero", "least"])
@pytest.mark.parametrize("module", MODULES)
def test_an_example_of_every_definition_round_trips_byte_for_byte(module: str, filling: Filling) -> None:
    changed = []
    for name in CLASSES:
        if module_of(name) == module:
            data = example_of(name, filling)
            if canonical(encode(decode(CLASSES[name], data))) != canonical(data):
                changed.append(name)
    assert not changed


def test_every_definition_has_a_class_except_lists_and_protocol_types() -> None:
    without = {name for name in DEFINITIONS if name not in CLASSES and DEFINITIONS[name].get("type") == "object"}
    lists = {name for name in without if name.endswith("List") and "items" in DEFINITIONS[name]["properties"]}

    assert without - lists == FREE_IN_FORM | OF_THE_PROTOCOL


def test_every_field_of_every_definition_is_a_field_of_its_class() -> None:
    for name, model in CLASSES.items():
        assert set(model.__struct_encode_fields__) == set(DEFINITIONS[name].get("properties", {})), name


@pytest.fixture(scope="module", params=CRD_FILES)
def crds(request: pytest.FixtureRequest) -> tuple[ModuleType, list[CrdVersion]]:
    """A file of CRDs: the generated module, imported, and the parsed versions."""
    text = (DATA / "crds" / request.param).read_text()
    module = ModuleType("generated_from_" + request.param.removesuffix(".yaml"))
    sys.modules[module.__name__] = module
    exec(compile(models_from_crds(text), module.__name__, "exec"), module.__dict__)
    return module, read_crds(text)


@pytest.mark.parametrize("filling", ["full", "zero", "least"])
def test_an_example_of_every_foreign_kind_round_trips_byte_for_byte(
    crds: tuple[ModuleType, list[CrdVersion]], filling: Filling
) -> None:
    module, versions = crds
    classes = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    by_kind = {each.__kind__: each for each in classes if issubclass(each, Resource)}

    for version in versions:
        example = ExampleMaker({}, filling).make(version.schema, ())
        example |= {"apiVersion": version.kind.api_version, "kind": version.kind.kind, "metadata": {"name": "x"}}
        data = json.dumps(example).encode()
        assert canonical(encode(decode(by_kind[version.kind], data))) == canonical(data)


class ExampleMaker:
    """Generates an example of a schema.

    "full" fills every field, "zero" does so with the least values ("", 0, false), and "least" fills what is required
    and what Go holds by value: the least that a server writes.
    """

    def __init__(self, definitions: Mapping[str, Schema], filling: Filling) -> None:
        self._definitions = definitions
        self._filling = filling
        self._count = 0

    def make(self, schema: Schema, path: tuple[str, ...]) -> Any:
        self._count += 1
        name = _reference(schema)
        if name is not None:
            return self._definition(name, path)
        if schema.get("x-kubernetes-int-or-string") or "oneOf" in schema:
            return self._text_or_number(quantity="pattern" in schema)
        match schema.get("type"):
            case "object":
                return self._object(schema, path)
            case "array":
                return [self.make(schema["items"], path)]
            case None:
                return 0 if self._filling == "zero" else FREE
            case _:
                return self._scalar(schema)

    def _definition(self, name: str, path: tuple[str, ...]) -> Any:
        if name == MICRO_TIME:
            return f"2026-01-02T03:04:05.{self._count % 1_000_000:06}Z"
        if name == QUANTITY:
            return self._text_or_number(quantity=True)
        return self.make(self._definitions[name], (*path, name))

    def _object(self, schema: Schema, path: tuple[str, ...]) -> Any:
        if "properties" in schema:
            required = schema.get("required", ())
            return {
                wire: self.make(prop, path)
                for wire, prop in schema["properties"].items()
                if self._is_included(prop, wire in required) and path.count(str(_reference(_items(prop)))) < 2
            }
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping):
            return {key: self.make(values, path) for key in ("camelCase", "snake_case", "example.com/x-y")}
        return FREE

    def _is_included(self, prop: Schema, required: bool) -> bool:
        return self._filling != "least" or required or (prop.get("default") == {} and _reference(prop) != QUANTITY)

    def _scalar(self, schema: Schema) -> Any:
        zero = self._filling == "zero"
        if "enum" in schema:
            return schema["enum"][self._count % len(schema["enum"])]
        match schema["type"], schema.get("format"):
            case "boolean", _:
                return not zero and self._count % 2 == 1
            case "integer", _:
                return 0 if zero else self._count
            case "number", _:
                return 0.0 if zero else self._count + 0.5
            case _, "byte":
                return "" if zero else base64.b64encode(f"bytes {self._count}".encode()).decode()
            case _, "date-time":
                return f"2026-01-02T03:04:{self._count % 60:02}Z"
            case _:
                return "" if zero else f'text {self._count} "é\\'

    def _text_or_number(self, *, quantity: bool) -> str | int:
        if self._count % 2 or self._filling == "zero":
            return 0 if self._filling == "zero" else self._count
        return f"{self._count}Mi" if quantity else f"{self._count}%"


def _reference(schema: Schema) -> str | None:
    parts = schema.get("allOf", ())
    target = schema.get("$ref") or (parts[0].get("$ref") if len(parts) == 1 else None)
    return str(target).rpartition("/")[2] if target else None


def _items(schema: Schema) -> Schema:
    inner = schema.get("items") or schema.get("additionalProperties")
    return inner if isinstance(inner, Mapping) else schema
