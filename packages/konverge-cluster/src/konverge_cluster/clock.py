"""Time for controllers: from a clock in seconds that is an argument, so that tests can pass a virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

__all__ = ["Clock", "truncate_to_seconds", "utc_now"]

Clock: TypeAlias = Callable[[], float]


def utc_now(clock: Clock) -> datetime:
    """Return the current time in UTC."""
    return datetime.fromtimestamp(clock(), UTC)


def truncate_to_seconds(at: datetime) -> datetime:
    """Return a time in whole seconds, the precision of API objects."""
    return at.replace(microsecond=0)
