"""Functions of optional values: `self.?field.orValue(1)`."""

from __future__ import annotations

from typing import Any

from konverge_cluster.cel.functions import Library
from konverge_cluster.cel.types import BOOL, list_of, optional_of, param
from konverge_cluster.cel.values import NONE, Duration, Optional, Timestamp

__all__ = ["add_optionals"]


def _is_zero(value: Any) -> bool:
    if isinstance(value, (Duration, Timestamp)):
        return value.nanos == 0
    if isinstance(value, Optional):
        return not value.has_value
    return not value


def add_optionals(library: Library) -> None:
    """Add the functions of optional values."""
    v = param("V")
    maybe, values, maybes = optional_of(v), list_of(v), list_of(optional_of(v))
    library.add("optional.of", "optional_of", (v,), maybe, Optional)
    library.add(
        "optional.ofNonZeroValue",
        "optional_ofNonZeroValue",
        (v,),
        maybe,
        lambda x: NONE if _is_zero(x) else Optional(x),
    )
    library.add("optional.none", "optional_none", (), maybe, lambda: NONE)
    library.method("value", "optional_value", (maybe,), v, lambda each: each.value)
    library.add("hasValue", "optional_hasValue", (maybe,), BOOL, lambda each: each.has_value, member=True)
    library.method("or", "optional_or_optional", (maybe, maybe), maybe, lambda a, b: a if a.has_value else b)
    library.method("orValue", "optional_orValue_value", (maybe, v), v, lambda a, b: a.value if a.has_value else b)
    library.method("first", "list_first", (values,), maybe, lambda items: Optional(items[0]) if items else NONE)
    library.method("last", "list_last", (values,), maybe, lambda items: Optional(items[-1]) if items else NONE)
    library.add("optional.unwrap", "optional_unwrap", (maybes,), values, _unwrap)
    library.method("unwrapOpt", "optional_unwrapOpt", (maybes,), values, _unwrap)
    library.constant("optional_type", maybe)


def _unwrap(items: list[Optional]) -> list[Any]:
    return [each.value for each in items if each.has_value]
