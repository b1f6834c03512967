"""Hypothesis strategies for types, values and violations, for tests of the schema package here and on a real server."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterator
from datetime import date, datetime
from typing import Annotated, Any, Literal, TypeVar, get_origin
from uuid import UUID

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from konverge.objects.codec import from_wire
from konverge.objects.durations import Duration
from konverge.objects.models import field
from konverge.objects.quantities import Quantity
from konverge.schema import CustomResource, Default, Format, ListMap, ListSet, Meta, Nullable, Spec, schema_of
from konverge.schema.patterns import matches
from konverge.schema.primitives import FRACTIONS
from konverge.schema.structural import SchemaBuilder

T = TypeVar("T")

GROUP = "drawn.example.com"

PATTERNS = [r"^[a-z]+$", r"^\d{2,4}$", r"a.c", r"^(red|green)-\w+$", r"[^a-z]", r"^$|^x\s?$"]
FORMATS: dict[str, list[str]] = {
    "byte": ["YQ==", "YWI=", "YWJj"],
    "cidr": ["10.0.0.0/8", "fd00::/64"],
    "date": ["2026-01-01", "2024-02-29"],
    "date-time": ["2026-01-01T00:00:00Z", "2026-01-01T23:59:59.123456+02:00"],
    "duration": ["90s", "1h30m", "1.5h", "-10ms", "0"],
    "ipv4": ["10.0.0.1", "255.255.255.255"],
    "ipv6": ["::1", "fd00::1:2", "::ffff:10.0.0.1"],
    "k8s-short-name": ["web", "a-1"],
    "mac": ["01:23:45:67:89:ab", "01-23-45-67-89-ab"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000"],
}
QUANTITIES: list[Any] = ["1", "500m", "1.5Gi", "1e3", "0", 3, -2, ".5", "12Ei"]


def drawn(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """Generate `count` values, the same ones in every run."""
    found: list[T] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: T) -> None:
        found.append(value)

    collect()
    return found


# Types


def _bounded_ints(draw: st.DrawFn) -> Any:
    low = draw(st.none() | st.integers(-50, 50))
    high = draw(st.none() | st.integers(60, 200))
    step = draw(st.none() | st.integers(1, 5))
    if draw(st.booleans()):
        return Annotated[int, Meta(ge=low, le=high, multiple_of=step)]
    return Annotated[int, Meta(gt=low, lt=high, multiple_of=step)]


def _bounded_floats(draw: st.DrawFn) -> Any:
    low = draw(st.none() | st.sampled_from([-2.5, 0.0, 0.25]))
    high = draw(st.none() | st.sampled_from([10.0, 99.5]))
    return Annotated[float, Meta(ge=low, lt=high)]


def _bounded_texts(draw: st.DrawFn) -> Any:
    low = draw(st.none() | st.integers(0, 3))
    return Annotated[str, Meta(min_length=low, max_length=draw(st.none() | st.integers(3, 6)))]


@st.composite
def key_annotations(draw: st.DrawFn) -> Any:
    """Scalars that can be compared, for sets and list maps."""
    return draw(
        st.sampled_from([str, int, Literal["a", "b", "c"], Literal[1, 2, 3], Annotated[str, Meta(max_length=8)]])
    )


@st.composite
def leaf_annotations(draw: st.DrawFn) -> Any:
    plain = [str, int, float, bool, bytes, datetime, date, UUID, Quantity, Duration, Any, int | str, dict[str, Any]]
    choices: list[Callable[[], Any]] = [
        lambda: draw(st.sampled_from(plain)),
        lambda: draw(key_annotations()),
        lambda: _bounded_ints(draw),
        lambda: _bounded_floats(draw),
        lambda: _bounded_texts(draw),
        lambda: Annotated[str, Meta(pattern=draw(st.sampled_from(PATTERNS)))],
        lambda: Annotated[str, Format(draw(st.sampled_from(sorted(FORMATS))))],
    ]
    return draw(st.sampled_from(choices))()


def _list_of(draw: st.DrawFn, items: Any) -> Any:
    low = draw(st.none() | st.integers(0, 1))
    return Annotated[list[items], Meta(min_length=low, max_length=draw(st.none() | st.integers(2, 4)))]


@st.composite
def any_annotations(draw: st.DrawFn, depth: int) -> Any:
    if depth == 0:
        return draw(leaf_annotations())
    inner = any_annotations(depth - 1)
    choices: list[Callable[[], Any]] = [
        lambda: draw(leaf_annotations()),
        lambda: _list_of(draw, draw(inner)),
        lambda: set[draw(key_annotations())],  # type: ignore[misc]
        lambda: Annotated[list[draw(key_annotations())], ListSet()],  # type: ignore[misc]
        lambda: dict[str, draw(inner)],  # type: ignore[misc]
        lambda: draw(structs(depth - 1)),
        lambda: Annotated[list[draw(keyed_structs(depth - 1))], ListMap("key", "other")],  # type: ignore[misc]
    ]
    return draw(st.sampled_from(choices))()


@st.composite
def declarations(draw: st.DrawFn, depth: int) -> tuple[Any, Any]:
    """A field: its annotation and its default, `...` for a required one."""
    annotation = draw(any_annotations(depth))
    schema = SchemaBuilder().of(annotation, "")
    sort = draw(st.sampled_from(["required", "optional", "default", "server default", "null"]))
    if sort == "required":
        return annotation, ...
    if sort == "null" and "enum" not in schema:
        return Annotated[annotation | None, Nullable()], None
    if sort == "server default" and schema != PLAIN_ANY:
        return Annotated[annotation | None, Default(draw(values_for(schema).filter(lambda v: v is not None)))], None
    if sort == "default" and schema.get("type") not in ("array", "object", None):
        value = from_wire(annotation, draw(values_for(schema)))
        return annotation, field(default=value)
    return annotation | None, None


PLAIN_ANY = schema_of(Any)


def spec_of(fields: dict[str, Any], **defaults: Any) -> type[Spec]:
    """Return a spec class with these annotations; a list without a default is empty by default."""
    empty: dict[str, Any] = {
        name: field(default_factory=list) for name, hint in fields.items() if get_origin(hint) is list
    }
    body = {"__annotations__": fields, "__module__": __name__, **empty, **defaults}
    made = types.new_class("Drawn", (Spec,), {}, lambda namespace: namespace.update(body))
    assert issubclass(made, Spec)
    return made


def _make_struct(fields: dict[str, tuple[Any, Any]]) -> type[Spec]:
    defaults = {name: default for name, (_, default) in fields.items() if default is not ...}
    return spec_of({name: annotation for name, (annotation, _) in fields.items()}, **defaults)


@st.composite
def structs(draw: st.DrawFn, depth: int) -> type[Spec]:
    count = draw(st.integers(1, 4))
    return _make_struct({f"field_{place}": draw(declarations(depth)) for place in range(count)})


@st.composite
def keyed_structs(draw: st.DrawFn, depth: int) -> type[Spec]:
    fields = {"key": (draw(key_annotations()), ...), "other": (str, field(default="usual"))}
    return _make_struct({**fields, "value": draw(declarations(depth))})


def kind_for(spec: type[Spec], name: str, group: str = GROUP) -> type[CustomResource[Any, Any]]:
    """Return a kind with that spec."""
    bases = (CustomResource[spec],)  # type: ignore[valid-type]
    made = types.new_class(name, bases, {"group": group, "version": "v1"})
    assert issubclass(made, CustomResource)
    return made


# Values


def values_for(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Generate plain JSON values that the schema allows."""
    strategy = _values_for(schema)
    return st.none() | strategy if schema.get("nullable") else strategy


def _values_for(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "x-kubernetes-int-or-string" in schema:
        return st.sampled_from(QUANTITIES) if "pattern" in schema else st.integers(-9, 9) | st.text("ab%", max_size=3)
    by_type: dict[str, Callable[[dict[str, Any]], st.SearchStrategy[Any]]] = {
        "string": _texts,
        "integer": _integers,
        "number": _numbers,
        "boolean": lambda _: st.booleans(),
        "array": _arrays,
        "object": _objects,
    }
    return by_type[schema["type"]](schema) if "type" in schema else ANY_JSON


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text("abc", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text("xyz", min_size=1, max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)


def _texts(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    if "format" in schema:
        return st.sampled_from(FORMATS[schema["format"]])
    if "pattern" in schema:
        pattern = schema["pattern"]
        ascii_text = st.from_regex(pattern, alphabet=st.characters(codec="ascii"))
        return ascii_text.filter(lambda text: matches(pattern, text))
    letters = st.characters(exclude_categories=["Cs"])
    return st.text(letters, min_size=schema.get("minLength", 0), max_size=schema.get("maxLength", 6))


def _integers(schema: dict[str, Any]) -> st.SearchStrategy[int]:
    step = schema.get("multipleOf", 1)
    low = schema.get("minimum", -(2**53)) + bool(schema.get("exclusiveMinimum"))
    high = schema.get("maximum", 2**63 - 1) - bool(schema.get("exclusiveMaximum"))
    return st.integers(-(-low // step), high // step).map(lambda count: count * step)


def _numbers(schema: dict[str, Any]) -> st.SearchStrategy[float]:
    schema = {**schema, **schema.get(FRACTIONS, {})}
    return st.floats(
        schema.get("minimum"),
        schema.get("maximum"),
        exclude_max=bool(schema.get("exclusiveMaximum")),
        allow_nan=False,
        allow_infinity=False,
    )


def _arrays(schema: dict[str, Any]) -> st.SearchStrategy[list[Any]]:
    keys = schema.get("x-kubernetes-list-map-keys", ())
    kind = schema.get("x-kubernetes-list-type")

    def identity(item: Any) -> str:
        # An item that leaves a key out has the key's default.
        wanted = [item.get(key, "usual") for key in keys] if kind == "map" else item
        return json.dumps(wanted)

    items = values_for(schema["items"])
    unique = identity if kind in ("map", "set") else None
    return st.lists(items, min_size=schema.get("minItems", 0), max_size=schema.get("maxItems", 3), unique_by=unique)


def _objects(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    if "additionalProperties" in schema:
        keys = st.text("abz-", min_size=1, max_size=4)
        return st.dictionaries(keys, values_for(schema["additionalProperties"]), max_size=2)
    if "properties" not in schema:
        return st.dictionaries(st.text("xyz", min_size=1, max_size=2), ANY_JSON, max_size=2)
    required = set(schema.get("required", ()))
    parts = {key: values_for(part) for key, part in schema["properties"].items()}
    return st.fixed_dictionaries(
        {key: part for key, part in parts.items() if key in required},
        optional={key: part for key, part in parts.items() if key not in required},
    )


# Mistakes


def mistakes_in(schema: dict[str, Any], value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the value with one constraint violated, a different one each time, and the path of the violation."""
    if value is None:
        return
    yield from _own_mistakes(schema, value)
    if isinstance(value, list) and "items" in schema:
        for place, item in enumerate(value):
            for path, broken in mistakes_in(schema["items"], item):
                yield f"[{place}]{path}", [*value[:place], broken, *value[place + 1 :]]
    elif isinstance(value, dict):
        parts = schema.get("properties", {})
        for key, item in value.items():
            part = parts.get(key, schema.get("additionalProperties"))
            for path, broken in mistakes_in(part, item) if part is not None else ():
                yield f".{key}{path}", {**value, key: broken}
        for key in schema.get("required", ()):
            yield f".{key}", {name: item for name, item in value.items() if name != key}


def _own_mistakes(schema: dict[str, Any], value: Any) -> Iterator[tuple[str, Any]]:
    if "type" in schema:
        yield "", {"string": 5, "integer": "x", "number": "x", "boolean": 1, "array": {}, "object": []}[schema["type"]]
    elif "x-kubernetes-int-or-string" in schema:
        yield "", True
    if "enum" in schema:
        yield "", "no member" if schema["type"] == "string" else 99
    elif schema.get("type") == "string":
        yield from _text_mistakes(schema)
    elif schema.get("type") in ("integer", "number"):
        yield from _number_mistakes(schema)
    elif schema.get("type") == "array":
        yield from _list_mistakes(schema, value)
    elif "pattern" in schema:
        yield "", "not a quantity"


def _text_mistakes(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if schema.get("minLength"):
        yield "", ""
    if "maxLength" in schema:
        yield "", "ä" * (schema["maxLength"] + 1)
    if "pattern" in schema:
        # None of the patterns is found in this text.
        yield "", "x\ty"[:2] + "x" if schema["pattern"] != "[^a-z]" else "abc"
    if "format" in schema:
        yield "", "%%"


def _number_mistakes(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    schema = {**schema, **schema.get(FRACTIONS, {})}
    step = schema.get("multipleOf", 1)
    if "minimum" in schema:
        yield "", schema["minimum"] if schema.get("exclusiveMinimum") else schema["minimum"] - step
    if "maximum" in schema:
        yield "", schema["maximum"] if schema.get("exclusiveMaximum") else schema["maximum"] + step
    if step > 1:
        yield "", step * 10 + 1
    if schema["type"] == "integer":
        yield "", 2**63
        yield "", 1.5


def _list_mistakes(schema: dict[str, Any], value: list[Any]) -> Iterator[tuple[str, Any]]:
    unique = schema.get("x-kubernetes-list-type") in ("set", "map")
    if schema.get("minItems") and value:
        yield "", []
    if "maxItems" in schema and value and not unique:
        yield "", value[:1] * (schema["maxItems"] + 1)
    if unique and value:
        yield f"[{len(value)}]", [*value, value[0]]
