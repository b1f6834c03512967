"""Expiry of events: no client deletes them, so they are removed an hour after their last write."""

from __future__ import annotations

from collections import deque
from typing import Final

from konverge_cluster.api.cluster import Cluster, decode
from konverge_cluster.api.writes import entry_of

__all__ = ["EVENTS", "EventExpiry"]

EVENTS: Final = ("", "events")
LIFETIME: Final = 3600.0


class EventExpiry:
    """Removes events that have not been written for an hour.

    Nothing runs in the background: the server calls `delete_expired` before each request for events. A request never
    sees an expired event; watches receive the deletion at that time.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._events = cluster.storage.collection(EVENTS)
        self._position = self._events.position_after(cluster.storage.revision)
        self._deadlines: deque[tuple[float, str, int]] = deque()
        self._events.subscribe(self, self._schedule)

    def _schedule(self) -> None:
        changes = self._events.changes_from(self._position)
        if changes is None:
            changes = []
            self._position = self._events.position_after(self._cluster.storage.revision)
        self._position += len(changes)
        deadline = self._cluster.clock() + LIFETIME
        self._deadlines.extend((deadline, change.entry.key, change.revision) for change in changes)

    def delete_expired(self) -> None:
        """Delete the events that have expired."""
        now = self._cluster.clock()
        while self._deadlines and self._deadlines[0][0] <= now:
            _, key, revision = self._deadlines.popleft()
            entry = self._events.get(key)
            if entry is not None and entry.revision == revision:
                last = entry_of(key, decode(entry.raw), entry.encoding_version, self._cluster.storage.next_revision)
                self._cluster.storage.delete(self._events, last)
