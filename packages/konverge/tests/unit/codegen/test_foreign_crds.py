"""The classes that `konverge models` generates from a CRD, feature by feature."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.codegen import models_from_crds
from konverge.errors import DecodeError
from konverge.objects.codec import decode, encode, to_wire
from konverge.objects.conditions import Condition, set_condition
from konverge.objects.kinds import Kind, Scope
from konverge.objects.quantities import Quantity
from konverge.objects.resources import Unstructured, kind_of

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
QUANTITY = {"x-kubernetes-int-or-string": True, "pattern": r"^(\+|-)?(([0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE]))?$"}

JUNK = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=6), st.lists(st.integers(), max_size=2))
KEYWORDS = [
    *("type", "format", "enum", "nullable", "default", "description", "required", "items", "properties", "pattern"),
    *("additionalProperties", "x-kubernetes-int-or-string", "x-kubernetes-embedded-resource"),
]


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Generate schemas that are mostly valid: one keyword may have any value."""
    right = st.fixed_dictionaries(
        {"type": st.sampled_from(["object", "array", "string", "integer", "number", "boolean"])},
        optional={
            "properties": st.dictionaries(st.text(min_size=1, max_size=6), inner, max_size=3),
            "items": inner,
            "additionalProperties": inner,
            "required": st.lists(st.text(max_size=4), max_size=2),
            "enum": st.lists(st.one_of(st.text(max_size=5), st.integers(), st.none()), max_size=4),
        },
    )
    wrong = st.dictionaries(st.sampled_from(KEYWORDS), JUNK, max_size=1)
    return st.builds(lambda schema, junk: {**schema, **junk}, right, wrong)


def crd(*versions: dict[str, Any], kind: str = "Widget", group: str = "example.com") -> dict[str, Any]:
    names = {"kind": kind, "plural": f"{kind.lower()}s"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": list(versions)},
    }


def version(spec: Any = None, status: Any = None, *, name: str = "v1", storage: bool = True) -> dict[str, Any]:
    fields = {"spec": spec, "status": status}
    schema = {"type": "object", "properties": {wire: each for wire, each in fields.items() if each is not None}}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}


def struct(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": properties}


def text_of(*crds: dict[str, Any]) -> str:
    return models_from_crds(yaml.safe_dump_all(crds, sort_keys=False), source="widgets.yaml")


def module_of(*crds: dict[str, Any]) -> Any:
    """Import the module generated from the CRDs."""
    module = ModuleType("generated_from_widgets")
    sys.modules[module.__name__] = module
    exec(compile(text_of(*crds), module.__name__, "exec"), module.__dict__)
    return module


def test_a_crd_becomes_a_kind_and_nested_models() -> None:
    spec = struct("size", size=NUMBER, parts={"type": "array", "items": struct("name", name=TEXT)})
    module = module_of(crd(version(spec)))

    widget = module.Widget(spec=module.WidgetSpec(size=1, parts=[module.WidgetSpecParts(name="a")]))

    assert kind_of(module.Widget) == Kind("example.com", "v1", "Widget", "widgets")
    assert to_wire(widget) == {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {},
        "spec": {"size": 1, "parts": [{"name": "a"}]},
    }


def test_formats_become_python_types() -> None:
    spec = struct(
        at={"type": "string", "format": "date-time"},
        blob={"type": "string", "format": "byte"},
        port={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        memory=QUANTITY,
        share={"type": "number", "format": "double"},
        on={"type": "boolean"},
    )
    module = module_of(crd(version(spec)))
    wire = b'{"at":"2026-01-01T00:00:00Z","blob":"AP8=","port":"http","memory":"1Gi","share":0.5,"on":true}'

    read = decode(module.WidgetSpec, wire)

    assert (read.at, read.blob, read.port) == (datetime(2026, 1, 1, tzinfo=UTC), b"\x00\xff", "http")
    assert (read.memory, read.share, read.on) == (Quantity("1Gi"), 0.5, True)
    assert encode(read) == wire


def test_an_enum_is_a_literal_and_a_long_one_has_a_name() -> None:
    long = {"type": "string", "enum": [f"a-rather-long-value-{number}" for number in range(9)]}
    level = {"type": "integer", "format": "int32", "enum": [1, 2]}
    module = crd(version(struct(color=TEXT | {"enum": ["red", "blue"]}, level=level, long=long, odd={"enum": [1.5]})))
    text = text_of(module)

    assert 'color: Literal["red", "blue"] | None = None' in text
    assert "level: Literal[1, 2] | None = None" in text
    assert "WidgetSpecLong: TypeAlias = Literal[\n" in text
    assert "odd: Any = None" in text
    with pytest.raises(DecodeError, match=r"invalid enum value 'green', at \.spec\.color"):
        decode(module_of(module).Widget, b'{"spec":{"color":"green"}}')


def test_free_form_schemas_are_plain_json() -> None:
    spec = struct(
        anything={"x-kubernetes-preserve-unknown-fields": True},
        thing={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        other={"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        rows={"type": "array", "items": {"type": "array", "items": NUMBER}},
    )
    module = module_of(crd(version(spec)))
    wire = b'{"anything":[1,null],"thing":{"a":{"b":null}},"other":{"apiVersion":"v1","kind":"Pod"},"rows":[[1],[]]}'

    read = decode(module.WidgetSpec, wire)

    assert isinstance(read.other, Unstructured)
    assert read.other.kind == "Pod"
    assert encode(read) == wire


def test_required_lists_and_maps_are_encoded_even_when_empty() -> None:
    spec = struct(
        *("names", "labels"),
        names={"type": "array", "items": TEXT},
        labels={"type": "object", "additionalProperties": TEXT},
        more={"type": "array", "items": TEXT},
    )
    module = module_of(crd(version(spec)))

    assert encode(module.WidgetSpec(names=[], labels={})) == b'{"names":[],"labels":{}}'
    with pytest.raises(TypeError, match="names"):
        module.WidgetSpec(labels={})


def test_a_nullable_field_may_be_none_and_a_required_one_is_then_encoded_as_null() -> None:
    null = {"nullable": True}
    spec = struct("must", must=TEXT | null, may=TEXT | null, names={"type": "array", "items": TEXT} | null)
    module = module_of(crd(version(spec)))

    assert encode(module.WidgetSpec(must=None)) == b'{"must":null}'
    assert decode(module.WidgetSpec, b'{"must":null,"names":null}').names is None


def test_a_status_is_never_none() -> None:
    module = module_of(crd(version(struct(), struct("count", count=NUMBER))))

    assert module.Widget().status.count is None
    assert decode(module.Widget, b'{"status":{"count":0}}').status.count == 0
    assert "status" not in to_wire(module.Widget())


def test_conditions_of_the_standard_shape_are_conditions() -> None:
    condition = struct(
        *("type", "status", "reason", "message", "lastTransitionTime"),
        type=TEXT,
        status=TEXT,
        reason=TEXT,
        message=TEXT,
        lastTransitionTime=TEXT | {"format": "date-time"},
        observedGeneration=NUMBER,
    )
    module = module_of(crd(version(struct(), struct(conditions={"type": "array", "items": condition}))))
    widget = module.Widget()

    set_condition(widget.status.conditions, "Ready", True, reason="Fine")

    assert isinstance(widget.status.conditions[0], Condition)


def test_of_several_versions_the_stored_one_has_the_plain_name() -> None:
    module = module_of(crd(version(struct(), name="v1beta1", storage=False), version(struct(), name="v2")))

    assert kind_of(module.Widget).version == "v2"
    assert kind_of(module.WidgetV1beta1).version == "v1beta1"


def test_a_version_that_is_not_served_is_ignored() -> None:
    old = version(struct(), name="v1", storage=False) | {"served": False}

    assert "WidgetV1" not in text_of(crd(old, version(struct(), name="v2")))


def test_kinds_of_the_same_name_are_distinguished_by_their_group() -> None:
    module = module_of(crd(version(struct()), group="one.com"), crd(version(struct()), group="two.com"))

    assert kind_of(module.Widget).group == "one.com"
    assert kind_of(module.TwoWidget).group == "two.com"


def test_a_kind_may_have_the_name_of_an_import() -> None:
    module = module_of(crd(version(struct("size", size=NUMBER)), kind="Model"), crd(version(struct()), kind="Resource"))

    assert kind_of(module.ExampleModel).kind == "Model"
    assert kind_of(module.ExampleResource).kind == "Resource"


def test_a_kind_has_precedence_over_a_model_of_the_same_name() -> None:
    module = module_of(crd(version(struct(size=NUMBER))), crd(version(struct()), kind="WidgetSpec"))

    assert kind_of(module.WidgetSpec).kind == "WidgetSpec"
    assert module.WidgetSpec2(size=1).size == 1


def test_irregular_field_names_round_trip() -> None:
    spec = struct(
        **{"fooBar": TEXT, "foo_bar": TEXT, "3d": NUMBER, "x-y": TEXT, "class": TEXT, "list": TEXT, "é ü": TEXT}
    )
    module = module_of(crd(version(spec)))
    wire = '{"fooBar":"a","foo_bar":"b","3d":3,"x-y":"c","class":"d","list":"e","é ü":"f"}'.encode()

    assert encode(decode(module.WidgetSpec, wire)) == wire


def test_a_field_that_cannot_be_an_attribute_is_an_unknown_field() -> None:
    module = module_of(crd(version(struct(**{'say "hi"': TEXT, "ok": TEXT}))))

    assert module.WidgetSpec.__struct_fields__ == ("ok",)


def test_descriptions_become_docstrings_and_cannot_add_code() -> None:
    evil = 'Quote """ and \\ and\nimport os\n\nSecond paragraph.'
    module = module_of(crd(version(struct(size=NUMBER | {"description": evil, "default": 3}) | {"description": evil})))

    assert module.WidgetSpec.__doc__ == 'Quote """ and \\ and import os'
    assert "os" not in vars(module)


def test_the_servers_default_is_documented() -> None:
    text = text_of(crd(version(struct(on={"type": "boolean", "default": True}))))

    assert "The server's default is `true`." in text


def test_the_scope_is_preserved() -> None:
    cluster = crd(version(struct()))
    cluster["spec"]["scope"] = "Cluster"

    assert kind_of(module_of(cluster).Widget).scope is Scope.CLUSTER


def test_the_same_input_gives_the_same_text() -> None:
    crds = [crd(version(struct(size=NUMBER))), crd(version(struct()), kind="Gadget")]

    assert text_of(*crds) == text_of(*crds)


@settings(max_examples=60, deadline=None)
@given(schema=st.recursive(schemas(st.just(TEXT)), schemas, max_leaves=6), kind=st.text(min_size=1, max_size=6))
def test_any_schema_becomes_classes_that_decode_or_is_refused_with_one_error(schema: Any, kind: str) -> None:
    wild = crd(version(schema, schema), kind="Wild")
    wild["spec"]["names"]["kind"] = kind
    try:
        module = module_of(wild)
    except DecodeError:
        return

    for each in vars(module).values():
        if isinstance(each, type) and each.__module__ == module.__name__:
            msgspec.json.Decoder(each, dec_hook=lambda type_, value: type_(value))


def test_two_kinds_of_one_name_have_valid_class_names_whatever_their_groups_start_with() -> None:
    first, second = crd(version(), group="example.com"), crd(version(), group="3scale.example.com")

    module = module_of(first, second)

    assert kind_of(module.Widget).group == "example.com"
    assert kind_of(module.Group3scaleWidget).group == "3scale.example.com"
