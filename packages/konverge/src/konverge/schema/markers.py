"""What an author puts into `Annotated[...]` to say more than a Python type can.

Bounds, lengths and patterns are said with `msgspec.Meta`, exported here as `Meta`; what Kubernetes adds is said
with the classes here. Each is frozen, so one marker can serve many fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Meta

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
    """Tell whether an expression compares with the value before the update."""
    return re.search(r"\boldSelf\b", rule) is not None


@dataclass(frozen=True)
class Rule:
    """A CEL expression that must be true: `Rule("self.min <= self.max", message="min is above max")`.

    The server compiles and evaluates it; konverge does neither. A rule that uses `oldSelf` is checked on updates only.

    Raises: ValueError for what the server refuses whatever the expression says.
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
            raise ValueError(f"the message of a Rule is one line, not {self.message!r}")
        if re.search(r"[\n\r]", self.rule.strip()) and not self.message.strip():
            raise ValueError("a Rule of several lines needs a message")
        if self.optional_old_self and not uses_old_self(self.rule):
            raise ValueError("optional_old_self is for a Rule that uses oldSelf")
        if self.reason and self.reason not in _REASONS:
            raise ValueError(f"{self.reason!r} is no reason for a Rule: write one of {', '.join(_REASONS)}")

    def to_wire(self) -> dict[str, Any]:
        """Return the rule as it stands in `x-kubernetes-validations`."""
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
"""The field keeps the value it first got."""


@dataclass(frozen=True)
class Format:
    """A format that the server checks, such as `Format("hostname")`; an unknown one it would silently ignore."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in FORMATS:
            raise ValueError(f"the server knows no format {self.name!r}: write one of {', '.join(sorted(FORMATS))}")


@dataclass(frozen=True, init=False)
class ListMap:
    """A list whose items are told apart by these wire names, as containers are by `name`."""

    keys: tuple[str, ...]

    def __init__(self, *keys: str) -> None:
        if not keys:
            raise ValueError("a ListMap needs its keys: ListMap('name')")
        object.__setattr__(self, "keys", keys)


@dataclass(frozen=True)
class ListSet:
    """A list without duplicates, merged item by item; `set[...]` has it by itself."""


@dataclass(frozen=True)
class Atomic:
    """A list, map or struct that is replaced as a whole, never merged by field managers."""


@dataclass(frozen=True)
class PreserveUnknown:
    """The server keeps fields of this struct or map that the schema does not name."""


@dataclass(frozen=True)
class Opaque:
    """The server sees any JSON object here and checks nothing, whatever the Python type says."""


@dataclass(frozen=True)
class EmbeddedResource:
    """The value is a whole Kubernetes object: the server checks its apiVersion, kind and metadata."""


@dataclass(frozen=True)
class Nullable:
    """An explicit null is kept by the server instead of being dropped."""


@dataclass(frozen=True)
class Default:
    """The default that the server fills in, where it is not the one of the Python field.

    `Annotated[int | None, Default(1)] = None` leaves the field out of what konverge writes, and the server puts 1.
    """

    value: Any
