"""The time, as a controller asks for it: from a clock in seconds that is handed in, so that it may be a virtual one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

__all__ = ["Clock", "moment", "whole"]

Clock: TypeAlias = Callable[[], float]


def moment(clock: Clock) -> datetime:
    """Give the present in UTC."""
    return datetime.fromtimestamp(clock(), UTC)


def whole(at: datetime) -> datetime:
    """Give a moment as an object keeps it: in whole seconds."""
    return at.replace(microsecond=0)
