"""Types that cannot become a CRD are refused at class creation, with the wire path and what to write instead."""

from __future__ import annotations

import decimal
import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, TypedDict
from uuid import uuid4

import msgspec
import pytest

from konverge.objects.conditions import Condition
from konverge.objects.durations import Duration
from konverge.objects.models import Model, field
from konverge.objects.quantities import Quantity
from konverge.schema import (
    IMMUTABLE,
    Atomic,
    CustomResource,
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
    Status,
)
from schema_strategies import kind_for, spec_of


class Port(Spec):
    name: str
    number: int = 80
    nickname: str | None = None
    level: int | None
    tags: list[str]


class Other(Spec):
    size: int


class Tagged(Model, tag="x"):
    size: int


class Flags(enum.Flag):
    A = 1


class Empty(enum.Enum): ...


class Mixed(enum.Enum):
    A = 1
    B = "b"


@dataclass
class Data:
    size: int


class Dict(TypedDict):
    size: int


class Plain(Spec):
    size: int = 1


def refusal(annotation: Any, *defaults: Any, **options: Any) -> str:
    """Return the error for a kind whose spec has one field, `part`, of this type."""
    default = {"part": defaults[0]} if defaults else {}
    with pytest.raises((TypeError, ValueError)) as raised:
        kind_for(spec_of({"part": annotation}, **default, **options), "Refused")
    assert str(raised.value).startswith("class Refused: ")
    return str(raised.value)


@pytest.mark.parametrize(
    ("annotation", "where", "suggestion"),
    [
        (complex, ".spec.part", "a struct with two floats"),
        (object, ".spec.part", "write Any"),
        (timedelta, ".spec.part", "konverge's Duration"),
        (decimal.Decimal, ".spec.part", "konverge's Quantity, or str"),
        (bytearray, ".spec.part", "write bytes"),
        (tuple[int, str], ".spec.part", "write list"),
        (frozenset[str], ".spec.part", "write set"),
        (Sequence[str], ".spec.part", "write list"),
        (Data, ".spec.part", "write a struct"),
        (Dict, ".spec.part", "write a struct"),
        (Flags, ".spec.part", "write a struct"),
        (list[complex], ".spec.part[]", "a struct with two floats"),
        (dict[str, complex], ".spec.part.*", "a struct with two floats"),
        (dict[str, list[complex]], ".spec.part.*[]", "a struct with two floats"),
        (dict[int, str], ".spec.part", "write dict[str, ...] and a Rule"),
        (dict[Annotated[str, Meta(pattern="a")], str], ".spec.part", "write dict[str, ...] and a Rule"),
        (Other | Port, ".spec.part", "exactly_one"),
        (list[Other | Port], ".spec.part[]", "exactly_one"),
        (Literal["a"] | Literal[1], ".spec.part", "one Literal with all choices"),
        (str | bool, ".spec.part", "`int | str`, or Any"),
        (str | list[str], ".spec.part", "`int | str`, or Any"),
        (Literal["a", 1], ".spec.part", "write choices of one type"),
        (Literal["a", None], ".spec.part", "write choices of one type"),
        (Literal["a"] | None, ".spec.part", "`X | None = None`"),
        (list[Literal["a"] | None], ".spec.part[]", "`X | None = None`"),
        (Empty, ".spec.part", "add members"),
        (Mixed, ".spec.part", "write choices of one type"),
        (Tagged, ".spec.part", "write a Model without these options"),
        (set[Port], ".spec.part[]", "Annotated[list[...], ListSet()]"),
        (set[list[str]], ".spec.part[]", "Annotated[list[...], ListSet()]"),
        (set[str | None], ".spec.part[]", "remove None"),
        (list[Annotated[int, Default("x")]], ".spec.part[]", "change one of the two"),
        (set[Any], ".spec.part[]", "remove None"),
        (Annotated[list[Port], ListSet()], ".spec.part[]", "atomic=True"),
        (Annotated[list[set[str]], ListSet()], ".spec.part[]", "write Atomic()"),
        (Annotated[list[str], ListMap("name")], ".spec.part[]", "write list[...] of a Spec"),
        (Annotated[list[Port], ListMap("title")], ".spec.part[].title", "a wire name of the item"),
        (Annotated[list[Port], ListMap("name", "name")], ".spec.part", "list each key once"),
        (Annotated[list[Port], ListMap("nickname")], ".spec.part[].nickname", "make it required or add a default"),
        (Annotated[list[Port], ListMap("level")], ".spec.part[].level", "remove None"),
        (Annotated[list[Port], ListMap("tags")], ".spec.part[].tags", "write a field of type str, int or bool"),
        (Annotated[list[Port | None], ListMap("name")], ".spec.part[]", "remove None"),
    ],
)
def test_a_type_without_a_structural_schema_is_refused(annotation: Any, where: str, suggestion: str) -> None:
    message = refusal(annotation)

    assert f", at {where} (" in message
    assert suggestion in message


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[str, Meta(ge=1)],
        Annotated[Quantity, Meta(ge=1)],
        Annotated[Condition, Meta(min_length=1)],
        Annotated[int, Meta(pattern="a")],
        Annotated[Duration, Meta(pattern="a")],
        Annotated[int, Meta(min_length=1)],
        Annotated[bytes, Meta(max_length=3)],
        Annotated[Port, Meta(max_length=3)],
        Annotated[int | None, Meta(ge=1)],
        Annotated[int | str, Meta(ge=1)],
        Annotated[str, ListSet()],
        Annotated[str, ListMap("a")],
        Annotated[str, Atomic()],
        Annotated[str, PreserveUnknown()],
        Annotated[str, EmbeddedResource()],
        Annotated[int, Format("uuid")],
        Annotated[int, Meta(ge=9, le=1)],
        Annotated[int, Meta(ge=2**60)],
        Annotated[int, Meta(ge=0.5)],
        Annotated[float, Meta(multiple_of=0.1)],
        Annotated[str, Meta(min_length=9, max_length=1)],
        Annotated[str, Meta(pattern="(?=a)")],
        Annotated[Literal["a"], Nullable()],
        Annotated[datetime, Format("date")],
        Annotated[Literal["a"], Format("date")],
        Annotated[dict[str, int], PreserveUnknown()],
        Annotated[dict[str, int], EmbeddedResource()],
        Annotated[int, Opaque()],
        Annotated[int, Default("x")],
        Annotated[int, Default(None)],
    ],
)
def test_a_marker_that_does_not_fit_is_refused_at_its_path(annotation: Any) -> None:
    assert re.search(r", at \.spec\.part \(.+\)$", refusal(annotation))


@pytest.mark.parametrize(
    ("annotation", "default", "where", "what"),
    [
        (Annotated[int, Meta(le=3)], 5, ".spec.part", "5 is not at most 3"),
        (Annotated[str, Meta(min_length=1)], "", ".spec.part", "0 characters are fewer than 1"),
        (Annotated[str, Meta(pattern="^a$")], "a\n", ".spec.part", "does not match"),
        (Annotated[str, Format("ipv4")], "1.2.3", ".spec.part", "is not a valid ipv4"),
        (Literal["a", "b"], "c", ".spec.part", '"c" is not one of "a", "b"'),
        (str, 5, ".spec.part", "expected string, got integer"),
        (bytes, b"", ".spec.part", "is not a valid byte"),
        (float, float("nan"), ".spec.part", "nan is not a JSON number"),
        (list[int], field(default_factory=lambda: [1, "x"]), ".spec.part[1]", "expected integer, got string"),
        (
            Annotated[list[str], ListSet()],
            field(default_factory=lambda: ["a", "a"]),
            ".spec.part[1]",
            '"a" is duplicated',
        ),
        (
            Annotated[list[Plain], ListMap("size")],
            field(default_factory=lambda: [Plain(), Plain(size=1)]),
            ".spec.part[1]",
            "is duplicated",
        ),
        (
            Annotated[list[Any], Meta(max_length=1)],
            field(default_factory=lambda: [1, 2]),
            ".spec.part",
            "2 items are more than 1",
        ),
        (Annotated[Other | None, Default({})], None, ".spec.part.size", "a value is required"),
        (
            Plain,
            field(default_factory=lambda: Plain(size="x")),  # type: ignore[arg-type]
            ".spec.part.size",
            "expected integer, got string",
        ),
        (datetime, field(default_factory=lambda: datetime.now(UTC)), ".spec.part", "different for each object"),
        (str, field(default_factory=lambda: str(uuid4())), ".spec.part", "different for each object"),
    ],
)
def test_a_default_that_does_not_match_its_own_type_is_refused(
    annotation: Any, default: Any, where: str, what: str
) -> None:
    message = refusal(annotation, default)

    assert f", at {where} (" in message
    assert what in message


def test_a_type_that_contains_itself_is_refused() -> None:
    class Node(Spec):
        children: list[Node] = field(default_factory=list)

    with pytest.raises(TypeError, match=r"Node contains itself, and a CRD schema cannot, at \.spec\.children\[\] \("):

        class Tree(CustomResource[Node], group="example.com", version="v1"): ...


def test_types_that_contain_each_other_are_refused() -> None:
    class Left(Spec):
        right: Right | None = None

    class Right(Spec):
        lefts: dict[str, Left] = field(default_factory=dict)

    with pytest.raises(TypeError, match=r"Left contains itself, .*, at \.spec\.right\.lefts\.\* \("):

        class Pair(CustomResource[Left], group="example.com", version="v1"): ...


def test_a_name_that_is_not_defined_is_named() -> None:
    class Lost(Spec):
        part: list[Nowhere]  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TypeError, match=r"the name 'Nowhere' in the annotation of Lost\.part .*, at \.spec\.part \("):

        class Thing(CustomResource[Lost], group="example.com", version="v1"): ...


def test_a_status_with_a_required_field_is_refused() -> None:
    class Found(Status):
        replicas: int

    with pytest.raises(TypeError, match=r"needs a default, at \.status\.replicas \(write `X \| None = None`\)"):

        class Thing(CustomResource[Plain, Found], group="example.com", version="v1"): ...


@pytest.mark.parametrize("spec", [int, dict[str, Any], None, Any])
def test_a_spec_that_is_not_a_model_is_refused(spec: Any) -> None:
    with pytest.raises(TypeError, match=r"has no schema, at \.spec \(write a class that derives from Spec or Status\)"):
        kind_for(spec, "Thing")


def test_the_error_for_an_incomplete_class_says_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"class Thing: it has no group \(write class WebApp\(CustomResource\["):

        class Thing(CustomResource[Plain]): ...  # type: ignore[call-arg]

    with pytest.raises(TypeError, match="it declares no spec"):

        class Bare(CustomResource, group="example.com", version="v1"): ...  # type: ignore[type-arg]

    with pytest.raises(TypeError, match=r"no keyword 'shortnames' .did you mean short_names"):

        class Wrong(CustomResource[Plain], group="example.com", version="v1", shortnames=("a",)): ...  # type: ignore[call-arg]

    with pytest.raises(TypeError, match="'kind' is a field of every custom resource"):

        class Taken(CustomResource[Plain], group="example.com", version="v1"):
            kind: str


@pytest.mark.parametrize(
    ("names", "where", "what"),
    [
        (("git", "images"), ".spec.part", "exactly_one names 'images', which is not a field"),
        (("git", "size"), ".spec.part.size", "exactly_one names 'size', which is always set"),
        (("git", "name"), ".spec.part.name", "exactly_one names 'name', which is always set"),
    ],
)
def test_the_fields_of_a_union_are_optional(names: tuple[str, ...], where: str, what: str) -> None:
    class Source(Spec, exactly_one=names):
        git: str | None = None
        size: int = 1
        name: str

    message = refusal(Source)

    assert what in message
    assert f", at {where} (" in message


@pytest.mark.parametrize(
    ("annotation", "where"),
    [
        (list[Annotated[str, IMMUTABLE]], ".spec.part[]"),
        (dict[str, list[Annotated[str, IMMUTABLE]]], ".spec.part.*[]"),
        (Annotated[list[Annotated[str, IMMUTABLE]], ListSet()], ".spec.part[]"),
    ],
)
def test_a_transition_rule_is_refused_where_items_cannot_be_matched(annotation: Any, where: str) -> None:
    message = refusal(annotation)

    assert "uses oldSelf where the server cannot match old items with new ones" in message
    assert f", at {where} (" in message


def test_a_transition_rule_is_accepted_in_a_list_map_and_in_a_map() -> None:
    class Fixed(Spec):
        name: str
        value: Annotated[str, IMMUTABLE]

    kind_for(spec_of({"a": Annotated[list[Fixed], ListMap("name")], "b": dict[str, Fixed]}), "Taken")
    assert "make .spec.part" in refusal(list[Fixed])


def test_the_field_path_of_a_rule_must_be_in_the_schema() -> None:
    class Range(Spec, rules=[Rule("self.low < self.high", field_path=".lowest")]):
        low: int
        high: int

    assert "'.lowest' is not in the schema: there is no .lowest, at .spec.part (there are low, high)" in refusal(Range)


def test_a_type_that_msgspec_cannot_decode_is_refused() -> None:
    class Strict(msgspec.Struct, array_like=True):
        size: int

    assert "tagged or array-like" in refusal(Strict)
