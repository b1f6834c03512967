"""What can be seen of a reflector from outside."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from konverge.errors import KonvergeError

__all__ = ["ReflectorStats", "State"]


class State(StrEnum):
    """What a reflector is doing."""

    IDLE = "idle"  # it was never run
    LISTING = "listing"
    OPENING = "opening"  # a watch is asked for, and the answer is not there yet
    WATCHING = "watching"
    WAITING = "waiting"  # for the time after a failure to pass
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ReflectorStats:
    """A reflector at one moment. Ages are in seconds, counts from its start.

    `synced` stays True once the first list is complete. `error` is what is wrong now, None when nothing is; a stream
    that merely said nothing and was opened anew is not wrong. `trouble_age` is how long it has been so. `silent` is how
    long ago the server was last heard, `bookmark_age` how long ago it last said that nothing is missing.
    """

    state: State
    state_age: float
    synced: bool
    error: KonvergeError | None
    trouble_age: float | None
    silent: float
    bookmark_age: float | None
    resource_version: str
    streaming: bool
    lists: int
    pages: int
    watches: int
    events: int
    bookmarks: int
    failures: int
