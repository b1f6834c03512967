"""The schemas of Python types."""

from __future__ import annotations

from datetime import date, datetime
from enum import IntEnum, StrEnum
from typing import Annotated, Any, Generic, Literal, NewType, TypeVar
from uuid import UUID

import pytest

from konverge.objects.conditions import Condition
from konverge.objects.durations import Duration
from konverge.objects.int_or_string import IntOrString
from konverge.objects.kinds import Kind
from konverge.objects.models import field
from konverge.objects.quantities import Quantity, QuantityText
from konverge.objects.resources import Resource, Unstructured
from konverge.objects.times import MicroTime
from konverge.schema import (
    Atomic,
    Default,
    EmbeddedResource,
    Format,
    ListMap,
    ListSet,
    Meta,
    Nullable,
    Opaque,
    PreserveUnknown,
    Rule,
    Spec,
    schema_of,
)

T = TypeVar("T")
PortNumber = NewType("PortNumber", int)


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Port(Spec):
    name: str
    number: int = 80


class Box(Spec, Generic[T]):
    content: T


class Secretive(Resource, identity=Kind("", "v1", "Secretive", "secretives")):
    data: dict[str, str] = field(default_factory=dict)


INT = {"type": "integer", "format": "int64"}
STR = {"type": "string"}
ANY = {"nullable": True, "x-kubernetes-preserve-unknown-fields": True}
PORT = {"type": "object", "properties": {"name": STR, "number": {**INT, "default": 80}}, "required": ["name"]}
INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, STR),
        (int, INT),
        (float, {"type": "number", "format": "double"}),
        (int | float, {"type": "number", "format": "double"}),
        (bool, {"type": "boolean"}),
        (bytes, {"type": "string", "format": "byte"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (MicroTime, {"type": "string", "format": "date-time"}),
        (date, {"type": "string", "format": "date"}),
        (UUID, {"type": "string", "format": "uuid"}),
        (PortNumber, INT),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (Level, {**INT, "enum": [1, 2]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 2], {**INT, "enum": [1, 2]}),
        (IntOrString, INT_OR_STRING),
        (QuantityText, schema_of(Quantity)),
        (Any, ANY),
        (list, {"type": "array", "items": ANY}),
        (list[str], {"type": "array", "items": STR}),
        (list[int | None], {"type": "array", "items": {**INT, "nullable": True}}),
        (set[str], {"type": "array", "items": STR, "x-kubernetes-list-type": "set"}),
        (dict, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (dict[str, Any], {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (dict[str, int], {"type": "object", "additionalProperties": INT}),
        (Port, PORT),
        (Box[int], {"type": "object", "properties": {"content": INT}, "required": ["content"]}),
        (list[Port], {"type": "array", "items": PORT}),
        (
            Unstructured,
            {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        ),
        (
            Secretive,
            {
                "type": "object",
                "properties": {
                    "apiVersion": STR,
                    "kind": STR,
                    "metadata": {"type": "object"},
                    "data": {"type": "object", "additionalProperties": STR},
                },
                "x-kubernetes-embedded-resource": True,
            },
        ),
    ],
)
def test_a_type_has_its_schema(annotation: Any, schema: dict[str, Any]) -> None:
    assert schema_of(annotation, descriptions=False) == schema


@pytest.mark.parametrize(
    ("annotation", "added"),
    [
        (Annotated[int, Meta(ge=1, le=9)], {"minimum": 1, "maximum": 9}),
        (
            Annotated[int, Meta(gt=1, lt=9)],
            {"minimum": 1, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": True},
        ),
        (Annotated[int, Meta(multiple_of=5)], {"multipleOf": 5}),
        (Annotated[str, Meta(min_length=1, max_length=9)], {"minLength": 1, "maxLength": 9}),
        (Annotated[str, Meta(pattern="^a")], {"pattern": "^a"}),
        (
            Annotated[str, Meta(title="T", description="D", examples=["e", "f"])],
            {"title": "T", "description": "D", "example": "e"},
        ),
        (Annotated[str, Meta(extra_json_schema={"x-kubernetes-thing": 1})], {"x-kubernetes-thing": 1}),
        (Annotated[list[str], Meta(min_length=1, max_length=9)], {"minItems": 1, "maxItems": 9}),
        (Annotated[dict[str, str], Meta(min_length=1, max_length=9)], {"minProperties": 1, "maxProperties": 9}),
        (Annotated[str, Format("hostname")], {"format": "hostname"}),
        (Annotated[str, Default("x")], {"default": "x"}),
        (Annotated[str, Nullable()], {"nullable": True}),
        (Annotated[list[str], ListSet()], {"x-kubernetes-list-type": "set"}),
        (Annotated[list[str], Atomic()], {"x-kubernetes-list-type": "atomic"}),
        (
            Annotated[list[Port], ListMap("name")],
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
        (list[Condition], {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
        (Annotated[list[Condition], Atomic()], {"x-kubernetes-list-type": "atomic"}),
        (Annotated[dict[str, str], Atomic()], {"x-kubernetes-map-type": "atomic"}),
        (Annotated[Port, Atomic()], {"x-kubernetes-map-type": "atomic"}),
        (Annotated[Port, PreserveUnknown()], {"x-kubernetes-preserve-unknown-fields": True}),
        (Annotated[dict[str, Any], EmbeddedResource()], {"x-kubernetes-embedded-resource": True}),
        (
            Annotated[int, Rule("self > 1"), Rule("self < 9", message="too large")],
            {"x-kubernetes-validations": [{"rule": "self > 1"}, {"rule": "self < 9", "message": "too large"}]},
        ),
    ],
)
def test_a_marker_is_applied_to_the_schema(annotation: Any, added: dict[str, Any]) -> None:
    bare = schema_of(annotation.__origin__ if hasattr(annotation, "__metadata__") else annotation, descriptions=False)

    assert schema_of(annotation, descriptions=False) == {**_without_list_type(bare, added), **added}


def _without_list_type(schema: dict[str, Any], added: dict[str, Any]) -> dict[str, Any]:
    dropped = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys") if "x-kubernetes-list-type" in added else ()
    return {key: value for key, value in schema.items() if key not in dropped}


def test_markers_inside_a_union_are_applied_too() -> None:
    number_or_share = Annotated[int, Meta(ge=1)] | Annotated[str, Meta(pattern="%$")]

    share_or_number = Annotated[str, Meta(pattern="%$")] | Annotated[int, Meta(ge=1)]

    assert schema_of(number_or_share) == {**INT_OR_STRING, "minimum": 1, "pattern": "%$"}
    assert schema_of(share_or_number) == schema_of(number_or_share)
    assert schema_of(Annotated[int, Meta(ge=1)] | None) == {**INT, "minimum": 1, "nullable": True}


def test_a_bound_that_is_not_an_integer_becomes_a_rule() -> None:
    # The server would compare the whole number 0 with the bound 0.
    assert schema_of(Annotated[float, Meta(gt=0.5)]) == {
        "type": "number",
        "format": "double",
        "x-kubernetes-validations": [{"rule": "self > 0.5", "message": "should be > 0.5"}],
    }


class Node(Spec):
    name: str
    left: Annotated[Node | None, Opaque()] = None
    others: Annotated[list[Node], Opaque()] = field(default_factory=list)
    by_name: Annotated[dict[str, Node], Opaque()] = field(default_factory=dict)


def test_an_opaque_type_has_no_parts_and_may_contain_itself() -> None:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

    properties = schema_of(Node)["properties"]

    assert schema_of(Annotated[Port, Opaque()]) == anything
    assert properties["left"] == properties["byName"] == anything
    assert properties["others"] == {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}}


def test_defaults_and_examples_may_be_python_values() -> None:
    color = Annotated[Color, Default(Color.RED), Meta(examples=[Color.BLUE])]

    assert schema_of(color)["default"] == "red"
    assert schema_of(color)["example"] == "blue"
    assert schema_of(Annotated[Port, Default(Port(name="a"))])["default"] == {"name": "a", "number": 80}


def test_none_as_a_default_omits_a_field_and_none_elsewhere_is_null() -> None:
    class Nulls(Spec):
        absent: int | None = None
        required: int | None
        or_five: int | None = 5
        kept: Annotated[int | None, Nullable()] = None

    schema = schema_of(Nulls)

    assert schema["properties"] == {
        "absent": INT,
        "required": {**INT, "nullable": True},
        "orFive": {**INT, "nullable": True, "default": 5},
        "kept": {**INT, "nullable": True},
    }
    assert schema["required"] == ["required"]


def test_defaults_in_the_schema_include_those_of_nested_structs() -> None:
    class Defaults(Spec):
        color: Color = Color.RED
        amount: Quantity = Quantity("1Gi")
        span: Duration = Duration("90s")
        data: bytes = b"a"
        words: list[str] = field(default_factory=lambda: ["a"])
        empty: list[str] = field(default_factory=list)
        port: Port = field(default_factory=lambda: Port(name="http"))
        filled: Annotated[Port | None, Default({"name": "x"})] = None

    found = {name: part.get("default") for name, part in schema_of(Defaults)["properties"].items()}

    assert found == {
        "color": "red",
        "amount": "1Gi",
        "span": "90s",
        "data": "YQ==",
        "words": ["a"],
        "empty": None,
        "port": {"name": "http", "number": 80},
        "filled": {"name": "x", "number": 80},
    }


def test_a_union_in_structural_form_is_a_rule() -> None:
    class Source(Spec, exactly_one=("git", "namespace")):
        git: str | None = None
        namespace: str | None = None

    assert schema_of(Source)["x-kubernetes-validations"] == [
        {
            "rule": "[has(self.git), has(self.__namespace__)].filter(given, given).size() == 1",
            "message": "exactly one of git, namespace is required",
        }
    ]


def test_wire_names_are_in_the_schema() -> None:
    class Named(Spec):
        pod_cidr: str
        from_: str
        other_name: int = field(name="x-y", default=1)

    assert list(schema_of(Named)["properties"]) == ["podCIDR", "from", "x-y"]


def test_markers_check_their_arguments() -> None:
    with pytest.raises(ValueError, match="a Rule needs an expression"):
        Rule(" ")
    with pytest.raises(ValueError, match="must be one line"):
        Rule("self", message="a\nb")
    with pytest.raises(ValueError, match="needs a message"):
        Rule("self\n> 1")
    with pytest.raises(ValueError, match="write one of FieldValueInvalid"):
        Rule("self", reason="Wrong")
    with pytest.raises(ValueError, match="for a Rule that uses oldSelf"):
        Rule("self > 1", optional_old_self=True)
    with pytest.raises(ValueError, match="the server has no format 'phone': write one of bsonobjectid"):
        Format("phone")
    with pytest.raises(ValueError, match="a ListMap needs its keys"):
        ListMap()
