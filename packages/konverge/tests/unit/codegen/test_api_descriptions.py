"""The rules that turn a server's API description into classes, each on a small description."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from konverge.codegen import ApiDescription, package_files
from konverge.codegen.discovery import Served, served_kinds
from konverge.objects.kinds import Kind, Scope

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
TOYS = "io.k8s.api.toys.v1."


def ref(name: str, **beside: Any) -> dict[str, Any]:
    target = {"$ref": f"#/components/schemas/{name}"}
    return {"allOf": [target], **beside} if beside else target


def struct(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": properties}


TEXT = {"type": "string"}
NUMBER = {"type": "integer", "format": "int32"}
IDENTITY = [{"group": "toys.k8s.io", "version": "v1", "kind": "Toy"}]


def description(**definitions: Any) -> ApiDescription:
    """Return the description of a server that serves Toy, with these definitions and those of every server."""
    schemas = {
        f"{META}ObjectMeta": struct(name=TEXT),
        f"{META}Time": {"type": "string", "format": "date-time"},
        f"{TOYS}Toy": struct(metadata=ref(f"{META}ObjectMeta", default={}), spec=ref(f"{TOYS}ToySpec", default={}))
        | {"x-kubernetes-group-version-kind": IDENTITY, "description": "A toy."},
        **{f"{TOYS}{name}": schema for name, schema in definitions.items()},
    }
    documents = {"apis/toys.k8s.io/v1": {"components": {"schemas": schemas}}}
    return ApiDescription(documents, [discovery(resource("toys", "Toy"))])


def resource(plural: str, kind: str, **more: Any) -> dict[str, Any]:
    own = {"group": "", "version": "", "kind": kind}
    return {"resource": plural, "responseKind": own, "scope": "Namespaced", **more}


def discovery(*resources: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    return {
        "items": [
            {"metadata": {"name": "toys.k8s.io"}, "versions": [{"version": version, "resources": list(resources)}]}
        ]
    }


def fields_of(name: str, **definitions: Any) -> dict[str, str]:
    """Return the generated source of the fields of a class, by wire name."""
    module = package_files(description(**definitions), server_version="v1.36.0")["toys/v1.py"]
    body = module.split(f"class {name}(")[1].split("\nclass ")[0].splitlines()[1:]
    written = [line.strip() for line in body if line.startswith("    ") and ": " in line and '"""' not in line]
    return dict(line.split(": ", 1) for line in written)


def test_lists_and_maps_are_empty_by_default_and_other_fields_none() -> None:
    spec = struct(
        tags={"type": "array", "items": TEXT},
        sizes={"type": "object", "additionalProperties": NUMBER},
        color=TEXT,
        secret={"type": "string", "format": "byte"},
        weight={"type": "number"},
        sold={"type": "boolean"},
        blob={"type": "object"},
    )

    assert fields_of("ToySpec", ToySpec=spec) == {
        "tags": "list[str] = field(default_factory=list)",
        "sizes": "dict[str, int] = field(default_factory=dict)",
        "color": "str | None = None",
        "secret": "bytes | None = None",
        "weight": "float | None = None",
        "sold": "bool | None = None",
        "blob": "dict[str, Any] | None = None",
    }


def test_required_fields_have_no_default_except_lists_and_times() -> None:
    spec = struct(
        *("color", "part", "parts", "created"),
        color=TEXT,
        part=ref(f"{TOYS}Part"),
        parts={"type": "array", "items": ref(f"{TOYS}Part")},
        created=ref(f"{META}Time"),
    )

    assert fields_of("ToySpec", ToySpec=spec, Part=struct(name=TEXT)) == {
        "color": "str",
        "part": "Part",
        "parts": "list[Part] = field(default_factory=list)",
        "created": "datetime | None = None",
    }


def test_a_struct_by_value_is_required_when_something_in_it_is() -> None:
    spec = struct(strict=ref(f"{TOYS}Strict", default={}), loose=ref(f"{TOYS}Loose", default={}))

    written = fields_of("ToySpec", ToySpec=spec, Strict=struct("name", name=TEXT), Loose=struct(name=TEXT))

    assert written == {"strict": "Strict", "loose": "Loose | None = None"}


def test_a_spec_has_a_default_unless_something_in_it_is_required() -> None:
    assert fields_of("Toy", ToySpec=struct(color=TEXT))["spec"] == "ToySpec = field(default_factory=ToySpec)"
    assert fields_of("Toy", ToySpec=struct("color", color=TEXT))["spec"] == "ToySpec"


def test_a_status_has_a_default_and_comes_last_and_nothing_directly_in_it_is_required() -> None:
    described = description(ToySpec=struct(color=TEXT), ToyStatus=struct("count", count=NUMBER))
    toy = described.schemas[f"{TOYS}Toy"]["properties"]
    toy["status"] = ref(f"{TOYS}ToyStatus", default={})
    toy["zoo"] = TEXT
    text = package_files(described, server_version="v1.36.0")["toys/v1.py"]

    assert text.rstrip().endswith("status: ToyStatus = field(default_factory=ToyStatus)")
    assert "    count: int | None = None" in text


def test_irregular_wire_names_are_written_on_the_field() -> None:
    spec = struct(**{"$ref": TEXT, "Port": NUMBER, "x-kubernetes-y": TEXT, "from": TEXT, "clusterIP": TEXT})

    assert fields_of("ToySpec", ToySpec=spec) == {
        "ref": 'str | None = field(default=None, name="$ref")',
        "port": 'int | None = field(default=None, name="Port")',
        "x_kubernetes_y": 'str | None = field(default=None, name="x-kubernetes-y")',
        "from_": "str | None = None",
        "cluster_ip": "str | None = None",
    }


def test_a_type_is_in_the_module_of_its_group_and_imported_from_there() -> None:
    described = description(ToySpec=struct(part=ref("io.k8s.api.parts.v1.Part")))
    described.schemas["io.k8s.api.parts.v1.Part"] = struct(name=TEXT)
    files = package_files(described, server_version="v1.36.0")

    assert "from konverge.k8s.parts.v1 import Part" in files["toys/v1.py"]
    assert "class Part(Model):" in files["parts/v1.py"]
    assert set(files) == {"__init__.py", "parts/__init__.py", "parts/v1.py", "toys/__init__.py", "toys/v1.py"}


def test_enum_values_are_documented_and_not_enforced() -> None:
    spec = struct(color=TEXT | {"enum": ["red", "blue"], "description": "Which."})
    text = package_files(description(ToySpec=spec), server_version="v1.36.0")["toys/v1.py"]

    assert "color: str | None = None" in text
    assert "One of `red`, `blue`." in text


def test_the_order_of_the_input_does_not_matter() -> None:
    spec = struct("b", b=TEXT, a=NUMBER, c=ref(f"{TOYS}Part"))
    texts = set()
    for seed in range(5):
        parts = {"ToySpec": spec, "Part": struct(name=TEXT), "Zebra": struct()}
        shuffled = json.loads(json.dumps(parts))
        names = list(shuffled)
        random.Random(seed).shuffle(names)
        files = package_files(description(**{name: shuffled[name] for name in names}), server_version="v1.36.0")
        texts.add(json.dumps(files, sort_keys=True))

    assert len(texts) == 1


def test_only_stable_versions_are_used() -> None:
    assert served_kinds(discovery(resource("toys", "Toy"), version="v1beta1")) == {}


def test_a_kind_of_a_subresource_only_names_the_subresource() -> None:
    eviction = {"group": "policy", "version": "v1", "kind": "Eviction"}
    toys = resource(
        "toys", "Toy", scope="Cluster", subresources=[{"subresource": "eviction", "responseKind": eviction}]
    )

    assert served_kinds(discovery(toys)) == {
        ("toys.k8s.io", "v1", "Toy"): Served(Kind("toys.k8s.io", "v1", "Toy", "toys", Scope.CLUSTER)),
        ("policy", "v1", "Eviction"): Served(Kind("policy", "v1", "Eviction", "evictions"), ("toys/eviction",)),
    }


@pytest.mark.parametrize("kind", [{}, {"kind": ""}, None])
def test_a_resource_without_a_kind_is_ignored(kind: Any) -> None:
    assert served_kinds(discovery({"resource": "odd", "responseKind": kind})) == {}
