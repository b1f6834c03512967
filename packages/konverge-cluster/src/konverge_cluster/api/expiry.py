"""Events go after an hour: nobody deletes them, and a cluster makes them without end."""

from __future__ import annotations

from collections import deque
from typing import Final

from konverge_cluster.api.cluster import Cluster, decode
from konverge_cluster.api.writes import entry_of

__all__ = ["EVENTS", "EventExpiry"]

EVENTS: Final = ("", "events")
LIFETIME: Final = 3600.0


class EventExpiry:
    """Removes events that nobody has written to for an hour.

    Nothing runs in the background: `sweep` is called before each request to events, so what has expired is never seen,
    and the deletions are told to watchers then.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._events = cluster.storage.collection(EVENTS)
        self._position = self._events.position_after(cluster.storage.revision)
        self._due: deque[tuple[float, str, int]] = deque()
        self._events.subscribe(self, self._note)

    def _note(self) -> None:
        changes = self._events.changes_from(self._position)
        if changes is None:
            changes = []
            self._position = self._events.position_after(self._cluster.storage.revision)
        self._position += len(changes)
        when = self._cluster.clock() + LIFETIME
        self._due.extend((when, change.entry.key, change.revision) for change in changes)

    def delete_expired(self) -> None:
        """Delete what is due."""
        now = self._cluster.clock()
        while self._due and self._due[0][0] <= now:
            _, key, revision = self._due.popleft()
            entry = self._events.get(key)
            if entry is not None and entry.revision == revision:
                last = entry_of(key, decode(entry.raw), entry.encoding_version, self._cluster.storage.next_revision)
                self._cluster.storage.delete(self._events, last)
