"""The numbers of an event recorder."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["EventStats"]


class EventStats(Struct, frozen=True):
    """The numbers of a recorder since its start.

    Each recorded event is `written` (on the server, as an Event or in a count), `pending`, or dropped: because of a
    limit, because the queue was full, because its writes failed, or because the recorder stopped.
    """

    recorded: int
    written: int
    pending: int
    dropped_limit: int
    dropped_queue: int
    dropped_failed: int
    dropped_stopped: int
    creates: int  # requests that succeeded
    patches: int
    series: int  # stored now

    @property
    def dropped(self) -> int:
        """The number of events that will not reach the server."""
        return self.dropped_limit + self.dropped_queue + self.dropped_failed + self.dropped_stopped
