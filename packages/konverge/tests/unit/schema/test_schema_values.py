"""Validation and defaulting of values; tests/contract compares with a real server."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.objects.codec import from_wire, to_wire
from konverge.objects.models import field
from konverge.objects.quantities import Quantity
from konverge.objects.resources import Unstructured
from konverge.schema import (
    Default,
    EmbeddedResource,
    Format,
    ListMap,
    ListSet,
    Meta,
    Nullable,
    PreserveUnknown,
    Spec,
    find_violations,
    root_schema,
    validate,
)
from konverge.schema.defaults import prune_and_default
from konverge.schema.structural import SchemaBuilder
from schema_strategies import kind_for, mistakes_in, structs, values_for


class Port(Spec):
    name: str
    number: int = 80


class Source(Spec, exactly_one=("git", "image")):
    git: str | None = None
    image: str | None = None


def problems(annotation: Any, value: Any) -> list[str]:
    schema = SchemaBuilder().of(annotation, "")
    return [str(violation) for violation in find_violations(schema, prune_and_default(schema, value), ".x")]


@pytest.mark.parametrize(
    ("annotation", "value", "found"),
    [
        (str, "a", []),
        (str, 1, ["expected string, got integer, at .x"]),
        (str, None, ["expected string, got null, at .x"]),
        (int, 1, []),
        (int, 1.0, []),
        (int, 1.5, ["expected integer, got number, at .x"]),
        (int, True, ["expected integer, got boolean, at .x"]),
        (int, 2**63, ["9223372036854775808 does not fit into 64 bits, at .x"]),
        (int, -(2**63), []),
        (float, 1, []),
        (float, "1", ["expected number, got string, at .x"]),
        (bool, 1, ["expected boolean, got integer, at .x"]),
        (bool, False, []),
        (Any, None, []),
        (int | str, "a", []),
        (int | str, 1.0, []),
        (int | str, [], ["expected integer or string, got array, at .x"]),
        (Quantity, "1Gi", []),
        (Quantity, 1, []),
        (Annotated[int, Meta(ge=0, le=9)], -1, ["-1 is not at least 0, at .x"]),
        (Annotated[int, Meta(ge=0, le=9)], 10, ["10 is not at most 9, at .x"]),
        (Annotated[int, Meta(gt=0, lt=9)], 0, ["0 is not above 0, at .x"]),
        (Annotated[int, Meta(gt=0, lt=9)], 9, ["9 is not below 9, at .x"]),
        (Annotated[int, Meta(multiple_of=3)], 4, ["4 is not a multiple of 3, at .x"]),
        (Annotated[float, Meta(multiple_of=3)], 4.5, ["4.5 is not a multiple of 3, at .x"]),
        (Annotated[float, Meta(multiple_of=3)], 6.0, []),
        (Annotated[float, Meta(lt=1.5)], 1, []),
        (Annotated[float, Meta(ge=0.5)], 0, ["0 is not at least 0.5, at .x"]),
        (Annotated[str, Meta(min_length=2)], "a", ["1 characters are fewer than 2, at .x"]),
        (Annotated[str, Meta(max_length=2)], "äöü", ["3 characters are more than 2, at .x"]),
        (Annotated[str, Meta(pattern="^a$")], "b", ['"b" does not match ^a$, at .x']),
        (Annotated[str, Format("ipv4")], "b", ['"b" is not a valid ipv4, at .x']),
        (Literal["a", "b"], "c", ['"c" is not one of "a", "b", at .x']),
        (Literal[1, 2], 2.0, []),
        (Literal[1, 2], True, ["expected integer, got boolean, at .x"]),
        (list[int], [1, "a"], ["expected integer, got string, at .x[1]"]),
        (list[int], {}, ["expected array, got object, at .x"]),
        (list[int | None], [None], []),
        (Annotated[list[int], Meta(min_length=1)], [], ["0 items are fewer than 1, at .x"]),
        (Annotated[list[int], Meta(max_length=1)], [1, 2], ["2 items are more than 1, at .x"]),
        (set[str], ["a", "b", "a", "a"], ['"a" is duplicated, at .x[2]']),
        (Annotated[list[list[int]], ListSet()], [[1], [1]], ["[1] is duplicated, at .x[1]"]),
        (
            Annotated[list[Port], ListMap("name", "number")],
            [{"name": "a"}, {"name": "a", "number": 80}],
            ['{"name": "a", "number": 80} is duplicated, at .x[1]'],
        ),
        (dict[str, int], {"a": "b"}, ["expected integer, got string, at .x.a"]),
        (dict[str, int], {"a": None}, []),
        (Annotated[dict[str, int], Meta(max_length=1)], {"a": 1, "b": 2}, ["2 entries are more than 1, at .x"]),
        (Port, {}, ["a value is required, at .x.name"]),
        (Port, {"name": None}, ["a value is required, at .x.name"]),
        (Port, {"name": "a", "number": None}, []),
        (Source, {"git": "a"}, []),
        (Source, {}, ["exactly one of git, image is required, got none, at .x"]),
        (Source, {"git": "a", "image": "b"}, ["exactly one of git, image is required, got git, image, at .x"]),
        (Unstructured, {"kind": "A"}, ["a value is required, at .x.apiVersion"]),
        (Annotated[dict[str, Any], EmbeddedResource()], {"apiVersion": "v1", "kind": "A"}, []),
        (Annotated[str, Meta(pattern="^a*$")], "b" * 100, [f'"{"b" * 76}... does not match ^a*$, at .x']),
    ],
)
def test_a_value_is_validated(annotation: Any, value: Any, found: list[str]) -> None:
    assert problems(annotation, value) == found


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        (Port, {"name": "a"}, {"name": "a", "number": 80}),
        (Port, {"name": "a", "number": None}, {"name": "a", "number": 80}),
        (Port, {"name": "a", "new": 1}, {"name": "a", "number": 80}),
        (Annotated[Port, PreserveUnknown()], {"name": "a", "new": 1}, {"name": "a", "new": 1, "number": 80}),
        (list[Port], [{}, None], [{"number": 80}, None]),
        (list[Annotated[int, Default(3)]], [None], [3]),
        (dict[str, Port], {"a": {}, "b": None}, {"a": {"number": 80}}),
        (dict[str, Any], {"a": None}, {"a": None}),
        (Any, {"a": None}, {"a": None}),
        (Annotated[int, Nullable(), Default(3)], None, None),
        (Unstructured, {"metadata": {"name": "a"}}, {"metadata": {"name": "a"}}),
    ],
)
def test_defaulting_and_pruning(annotation: Any, value: Any, result: Any) -> None:
    assert prune_and_default(SchemaBuilder().of(annotation, ""), value) == result


def test_each_object_gets_its_own_copy_of_a_default() -> None:
    class Words(Spec):
        words: list[str] = field(default_factory=lambda: ["a"])

    schema = SchemaBuilder().of(Words, "")
    prune_and_default(schema, {})["words"].append("b")

    assert prune_and_default(schema, {}) == {"words": ["a"]}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_generated_value_of_a_generated_type_decodes_and_is_valid(data: st.DataObject) -> None:
    kind = kind_for(data.draw(structs(1)), "Drawn")
    spec = data.draw(values_for(root_schema(kind)["properties"]["spec"]))

    read = from_wire(kind, {"spec": spec})

    assert validate(read) == []
    again = prune_and_default(root_schema(kind), to_wire(read))
    assert again == prune_and_default(root_schema(kind), again)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_violation_is_found_at_its_path(data: st.DataObject) -> None:
    kind = kind_for(data.draw(structs(1)), "Drawn")
    root = root_schema(kind)
    spec = data.draw(values_for(root["properties"]["spec"]))

    for path, broken in list(mistakes_in(root["properties"]["spec"], spec))[:5]:
        paths = {violation.path for violation in find_violations(root, prune_and_default(root, {"spec": broken}))}
        assert f".spec{path}" in paths
