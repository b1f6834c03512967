"""The observable state of a reflector."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from konverge.errors import KonvergeError

__all__ = ["ReflectorState", "ReflectorStats"]


class ReflectorState(StrEnum):
    """What a reflector is doing."""

    IDLE = "idle"  # never run
    LISTING = "listing"
    OPENING = "opening"  # a watch was requested, and its response has not arrived
    WATCHING = "watching"
    WAITING = "waiting"  # for the backoff after a failure
    STOPPED = "stopped"


class ReflectorStats(Struct, frozen=True):
    """A reflector at one moment. Ages and times are in seconds, counts are since its start.

    - `synced` stays True once the first list is complete.
    - `error` is the current error, None when there is none; an idle watch that was opened again is not an error.
    - `error_age` is how long the reflector has been failing.
    - `idle_time` is how long ago the server last sent data, `bookmark_age` how long ago it sent the last bookmark.
    """

    state: ReflectorState
    state_age: float
    synced: bool
    error: KonvergeError | None
    error_age: float | None
    idle_time: float
    bookmark_age: float | None
    resource_version: str
    streaming: bool
    lists: int
    pages: int
    watches: int
    events: int
    bookmarks: int
    failures: int
