"""The time, as a controller asks for it: from a clock in seconds that is handed in, so that it may be a virtual one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

__all__ = ["Clock", "truncate_to_seconds", "utc_now"]

Clock: TypeAlias = Callable[[], float]


def utc_now(clock: Clock) -> datetime:
    """Give the present in UTC."""
    return datetime.fromtimestamp(clock(), UTC)


def truncate_to_seconds(at: datetime) -> datetime:
    """Give a utc_now as an object keeps it: in truncate_to_seconds seconds."""
    return at.replace(microsecond=0)
