"""The removals that were delivered since the last list or bookmark.

A late state of a removed object must not bring it back, and a late state of a new object must not be dropped. The
version of the removal tells them apart.
"""

from __future__ import annotations

from konverge.objects import Key

__all__ = ["Removals"]

_MAX_REMOVALS = 1000
"""How many removals are remembered; when there are more, states older than the oldest of them count as stale."""


class Removals:
    """Versions of removals by key, and a version up to which everything is known: what is unknown there is gone."""

    def __init__(self) -> None:
        self._known = -1
        self._versions: dict[Key, int] = {}

    def __len__(self) -> int:
        return len(self._versions)

    def record(self, key: Key, version: int) -> None:
        """Record that an object was removed at a version."""
        self._versions[key] = max(version, self._versions.pop(key, -1))
        if len(self._versions) > _MAX_REMOVALS:
            self._known = max(self._known, self._versions.pop(next(iter(self._versions))))

    def is_stale(self, key: Key, version: int) -> bool:
        """Report whether a state of an unknown object is older than its removal."""
        return version <= max(self._known, self._versions.get(key, -1))

    def reset(self, version: int) -> None:
        """Record that everything up to a version is delivered: by a list or a bookmark."""
        self._known = version
        self._versions.clear()
