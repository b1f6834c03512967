"""Markers for `Annotated[...]`: what a schema needs beyond the Python type, as kubebuilder's markers do.

Bounds, lengths and patterns are written with `msgspec.Meta`, exported here as `Meta`. The classes here express what
Kubernetes adds. Each is frozen, so one marker can be used on many fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Meta, Struct

from konverge.schema.formats import FORMATS

__all__ = [
    "IMMUTABLE",
    "Atomic",
    "Default",
    "EmbeddedResource",
    "Format",
    "ListMap",
    "ListSet",
    "Meta",
    "Nullable",
    "Opaque",
    "PreserveUnknown",
    "Rule",
    "uses_old_self",
]

_REASONS = ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")


def uses_old_self(rule: str) -> bool:
    """Report whether an expression refers to the value before the update."""
    return re.search(r"\boldSelf\b", rule) is not None


class Rule(Struct, frozen=True):
    """A CEL expression that must be true: `Rule("self.min <= self.max", message="min is above max")`.

    The server compiles and evaluates it; konverge does neither. A rule that uses `oldSelf` is checked on updates only.

    Raises: ValueError for a rule that the server rejects whatever its expression is.
    """

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool = False

    def __post_init__(self) -> None:
        if not self.rule.strip():
            raise ValueError("a Rule needs an expression: Rule('self.min <= self.max', message='min is above max')")
        if re.search(r"[\n\r]", self.message.strip()):
            raise ValueError(f"the message of a Rule must be one line, got {self.message!r}")
        if re.search(r"[\n\r]", self.rule.strip()) and not self.message.strip():
            raise ValueError("a multi-line Rule needs a message")
        if self.optional_old_self and not uses_old_self(self.rule):
            raise ValueError("optional_old_self is for a Rule that uses oldSelf")
        if self.reason and self.reason not in _REASONS:
            raise ValueError(f"{self.reason!r} is not a valid reason of a Rule: write one of {', '.join(_REASONS)}")

    def to_wire(self) -> dict[str, Any]:
        """Return the entry for `x-kubernetes-validations`."""
        entries = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "reason": self.reason,
            "fieldPath": self.field_path,
            "optionalOldSelf": self.optional_old_self,
        }
        return {name: value for name, value in entries.items() if value}


IMMUTABLE: Final = Rule("self == oldSelf", message="the value cannot be changed")
"""The field keeps its first value."""


class Format(Struct, frozen=True):
    """A format that the server checks, such as `Format("hostname")`. The server would ignore an unknown format."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in FORMATS:
            raise ValueError(f"the server has no format {self.name!r}: write one of {', '.join(sorted(FORMATS))}")


@dataclass(frozen=True, init=False)
class ListMap:
    """A list whose items are identified by these wire names, as containers are by `name`."""

    keys: tuple[str, ...]

    def __init__(self, *keys: str) -> None:
        if not keys:
            raise ValueError("a ListMap needs its keys: ListMap('name')")
        object.__setattr__(self, "keys", keys)


class ListSet(Struct, frozen=True):
    """A list without duplicates, merged item by item. `set[...]` has this marker implicitly."""


class Atomic(Struct, frozen=True):
    """A list, map or struct that is replaced as a whole and never merged."""


class PreserveUnknown(Struct, frozen=True):
    """The server preserves fields of this struct or map that are not in the schema."""


class Opaque(Struct, frozen=True):
    """The server accepts any JSON here without validation, whatever the Python type is."""


class EmbeddedResource(Struct, frozen=True):
    """The value is a complete Kubernetes object: the server checks its apiVersion, kind and metadata."""


class Nullable(Struct, frozen=True):
    """The server preserves an explicit null instead of dropping it."""


class Default(Struct, frozen=True):
    """The default that the server sets, if it differs from that of the Python field.

    With `Annotated[int | None, Default(1)] = None` konverge omits the field, and the server sets it to 1.
    """

    value: Any
