"""Formats of table cells: ages, labels, selectors, truncated lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from konverge_cluster.api.strategy import Document
from konverge_cluster.api.tables import age_of

__all__ = ["NONE", "UNSET", "access_modes", "age", "container_cells", "join_first", "labels_text", "selector_text"]

NONE: Final = "<none>"
UNSET: Final = "<unset>"
_MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def age(document: Document, now: float) -> str:
    return age_of(document["metadata"].get("creationTimestamp"), now)


def labels_text(values: dict[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((values or {}).items())) or NONE


def selector_text(selector: Document | None, empty: str = NONE) -> str:
    """Return a label selector in the syntax of kubectl's command line."""
    if selector is None:
        return empty
    parts = [(key, f"{key}={value}") for key, value in selector.get("matchLabels", {}).items()]
    parts += [(each["key"], _requirement(each)) for each in selector.get("matchExpressions", ())]
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0])) or empty


def _requirement(requirement: Document) -> str:
    key, values = requirement["key"], ",".join(sorted(requirement.get("values", ())))
    match requirement["operator"]:
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return str(key)
        case _:
            return f"!{key}"


def container_cells(spec: Document | None) -> list[str]:
    """Return two cells: the names and the images of the containers of a pod spec."""
    containers = (spec or {}).get("containers") or ()
    return [",".join(each["name"] for each in containers), ",".join(each.get("image", "") for each in containers)]


def join_first(values: Iterable[str], limit: int = 3, empty: str = UNSET) -> str:
    """Join the first values of a list, and append how many more there are."""
    items = list(values)
    if not items:
        return empty
    text = ",".join(items[:limit])
    return f"{text} + {len(items) - limit} more..." if len(items) > limit else text


def access_modes(modes: Iterable[str]) -> str:
    present = set(modes)
    return ",".join(short for mode, short in _MODES.items() if mode in present)
