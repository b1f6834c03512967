"""How a kind is kept: one value for all choices."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from konverge.cache.decoder import Transform
from konverge.cache.indexes import Values
from konverge.objects import FieldSelector, LabelSelector

__all__ = ["CacheOptions"]


@dataclass(frozen=True, kw_only=True)
class CacheOptions:
    """How the objects of a kind are chosen and kept. What is None is left to the options below it.

    - `namespaces`: only these; () is all of them.
    - `labels`, `fields`: selectors, evaluated by the server; "" selects everything.
    - `metadata_only`: ask for metadata only and keep nothing else.
    - `compress`: hold objects compressed (needs `konverge[zstd]`); a read then costs a few microseconds more.
    - `transform`: a function that changes an object before it is kept, to drop what nobody reads.
    - `manager`: the field manager whose applied fields are kept; all other managedFields are dropped.
    - `ordered`: False for a server whose resourceVersions are not numbers in order: there own writes are seen when
      they come back by the watch.
    - `indexes`: by name; see `by_path` and `by_function`.
    """

    namespaces: tuple[str, ...] | None = None
    labels: str | None = None
    fields: str | None = None
    metadata_only: bool | None = None
    compress: bool | None = None
    transform: Transform | None = None
    manager: str | None = None
    ordered: bool | None = None
    indexes: tuple[tuple[str, Values], ...] | None = None

    def __post_init__(self) -> None:
        LabelSelector.parse(self.labels or "")
        FieldSelector.parse(self.fields or "")
        if isinstance(self.namespaces, str):
            raise TypeError(f"namespaces is a tuple: write namespaces=({self.namespaces!r},)")

    def over(self, below: CacheOptions) -> CacheOptions:
        """Give these options, and those of `below` where these say nothing."""
        given: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        return replace(below, **{name: value for name, value in given.items() if value is not None})
