"""The schemas of primitive Python types."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec

from konverge.objects.durations import Duration
from konverge.objects.metadata import ObjectMeta
from konverge.objects.quantities import Quantity
from konverge.objects.resources import Unstructured
from konverge.objects.times import MicroTime
from konverge.schema.schema_errors import unsupported_type

__all__ = [
    "EXACTLY_ONE",
    "FRACTIONS",
    "INT_OR_STRING",
    "OBJECT_FIELDS",
    "PRESERVE",
    "PRIMITIVES",
    "PRIVATE",
    "SUGGESTIONS",
    "Schema",
    "schema_of_choices",
]

Schema: TypeAlias = dict[str, Any]

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
PRIVATE: Final = "x-konverge-"
"""Prefix of schema keys that only `values` reads. The server never receives them; it gets a CEL rule instead."""
EXACTLY_ONE: Final = f"{PRIVATE}exactly-one"
"""Groups of fields of which exactly one is set."""
FRACTIONS: Final = f"{PRIVATE}fractions"
"""Bounds that are not integers."""

_QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_DURATION: Final = r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"

OBJECT_FIELDS: Final[Mapping[str, Schema]] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
}
"""The fields of every object. The server validates them itself, and a schema must not say more about them."""

INT_OR_STRING: Final[Mapping[str, Any]] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}

PRIMITIVES: Final[Mapping[Any, Mapping[str, Any]]] = {
    str: {"type": "string"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number", "format": "double"},
    bool: {"type": "boolean"},
    bytes: {"type": "string", "format": "byte"},
    datetime: {"type": "string", "format": "date-time"},
    MicroTime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    UUID: {"type": "string", "format": "uuid"},
    Duration: {"type": "string", "format": "duration", "pattern": _DURATION},
    Quantity: {**INT_OR_STRING, "pattern": _QUANTITY},
    Unstructured: {"type": "object", "x-kubernetes-embedded-resource": True, PRESERVE: True},
    # Metadata inside a spec, as in pod templates: the common fields, and any others.
    ObjectMeta: {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "namespace": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        PRESERVE: True,
    },
    # No type means any JSON value, including null.
    Any: {"nullable": True, PRESERVE: True},
    msgspec.Raw: {"nullable": True, PRESERVE: True},
}

SUGGESTIONS: Final[Mapping[str, str]] = {
    "timedelta": "write konverge's Duration",
    "Decimal": "write konverge's Quantity, or str",
    "complex": "write a struct with two floats",
    "object": "write Any",
    "bytearray": "write bytes",
    "time": "write str with a pattern",
    "tuple": "write list[...] for items of one type, or a struct",
    "Sequence": "write list[...]",
    "Mapping": "write dict[str, ...]",
    "frozenset": "write set[...]",
}
"""What to write instead of a type without a schema, by type name."""


def schema_of_choices(choices: tuple[Any, ...], path: str) -> Schema:
    """Return the schema of an enum or a Literal whose choices are all strings or all integers.

    Raises: TypeError for anything else.
    """
    values = [choice.value if isinstance(choice, enum.Enum) else choice for choice in choices]
    if not values:
        raise unsupported_type(path, "an enum without members has no schema", "add members")
    if all(type(value) is str for value in values):
        return {"type": "string", "enum": values}
    if all(type(value) is int for value in values):
        return {"type": "integer", "format": "int64", "enum": values}
    raise unsupported_type(path, "the choices are not all str or all int", "write choices of one type")
