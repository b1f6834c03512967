"""Structural schemas: the tree that pruning, defaulting, correlation and rules walk.

A structural schema specifies the type of every value, apart from its value validations (`anyOf`, `minimum`,
`pattern`, ...). Those stay in `raw`, the original schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["META_FIELDS", "Structural", "read_structural"]

META_FIELDS: Final = ("apiVersion", "kind", "metadata")

_EMPTY: Final[Mapping[str, Any]] = {}


@dataclass(slots=True, eq=False)
class Structural:
    """One node of a structural schema.

    `values` is the schema of `additionalProperties`; `open` means that this key is present, be it a schema, true
    or false. `default` is None if there is none: null is no default.
    """

    raw: Mapping[str, Any] = field(default_factory=dict)
    type: str = ""
    nullable: bool = False
    default: Any = None
    properties: dict[str, Structural] = field(default_factory=dict)
    values: Structural | None = None
    open: bool = False
    items: Structural | None = None
    preserves: bool = False
    embedded: bool = False
    int_or_string: bool = False
    list_type: str = ""
    map_keys: tuple[str, ...] = ()
    map_type: str = ""

    @property
    def rules(self) -> list[Mapping[str, Any]]:
        """The `x-kubernetes-validations` of this node."""
        found: list[Mapping[str, Any]] = self.raw.get("x-kubernetes-validations") or []
        return found

    @property
    def format(self) -> str:
        return str(self.raw.get("format", ""))

    def child(self, key: str) -> Structural | None:
        """Return the schema of a key: that of its property, else that of the additional properties."""
        return self.properties.get(key) or self.values

    def children(self) -> Iterator[Structural]:
        yield from self.properties.values()
        if self.values is not None:
            yield self.values
        if self.items is not None:
            yield self.items

    def walk(self) -> Iterator[Structural]:
        """Yield this node and everything below it."""
        yield self
        for child in self.children():
            yield from child.walk()


def read_structural(schema: Mapping[str, Any]) -> Structural:
    """Parse a schema of a definition; its non-structural parts are ignored."""
    more = schema.get("additionalProperties")
    items = schema.get("items")
    properties = schema.get("properties") or _EMPTY
    return Structural(
        raw=schema,
        type=schema.get("type", ""),
        nullable=schema.get("nullable") is True,
        default=schema.get("default"),
        properties={name: read_structural(each) for name, each in properties.items()},
        values=read_structural(more) if isinstance(more, Mapping) else None,
        open=more is not None,
        items=read_structural(items) if isinstance(items, Mapping) else None,
        preserves=schema.get("x-kubernetes-preserve-unknown-fields") is True,
        embedded=schema.get("x-kubernetes-embedded-resource") is True,
        int_or_string=schema.get("x-kubernetes-int-or-string") is True,
        list_type=schema.get("x-kubernetes-list-type") or "",
        map_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        map_type=schema.get("x-kubernetes-map-type") or "",
    )
