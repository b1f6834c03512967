"""Tables, the format that `kubectl get` requests: columns, and one row of cells for each object."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

__all__ = [
    "AGE_COLUMN",
    "CREATED_DESCRIPTION",
    "DEFAULT_COLUMNS",
    "NAME_COLUMN",
    "NAME_DESCRIPTION",
    "Column",
    "age_of",
    "human_duration",
]

NAME_DESCRIPTION: Final = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a"
    " client to request the generation of an appropriate name automatically. Name is primarily intended for creation"
    " idempotence and configuration definition. Cannot be updated. More info:"
    " https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
CREATED_DESCRIPTION: Final = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed"
    " to be set in happens-before order across separate operations. Clients may not set this value. It is represented"
    " in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info:"
    " https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. `kubectl get` shows priority 0; priority 1 only with `-o wide`."""

    name: str
    type: str
    description: str
    format: str = ""
    priority: int = 0


NAME_COLUMN: Final = Column("Name", "string", NAME_DESCRIPTION, "name")
AGE_COLUMN: Final = Column("Age", "string", CREATED_DESCRIPTION)
DEFAULT_COLUMNS: Final = (NAME_COLUMN, Column("Created At", "date", CREATED_DESCRIPTION))


def human_duration(seconds: float) -> str:
    """Format a duration with two or three digits, as kubectl does: `0s`, `119s`, `5m34s`, `3h`, `47h`, `8d`, `2y1d`."""
    whole = int(seconds)
    if whole < 0:
        return "0s" if whole == -1 else "<invalid>"
    if whole < 120:
        return f"{whole}s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    return _days(hours)


def _days(hours: int) -> str:
    days = hours // 24
    if hours < 24 * 8:
        return _two(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    if hours < 24 * 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def age_of(timestamp: Any, now: float) -> str:
    """Format the time since an RFC 3339 timestamp; `<unknown>` when there is none."""
    if not isinstance(timestamp, str) or not timestamp:
        return "<unknown>"
    return human_duration(now - datetime.fromisoformat(timestamp).timestamp())
