"""The interface that a reflector writes to.

The reflector does not depend on the store, and the store does not depend on lists and watches. Rules:

1. Objects are JSON bytes, as the server sent them. Objects of a watch have `kind` and `apiVersion`; items of a list of
   built-in kinds do not.
2. Between `begin` and `swap` changes are *staged*: they build the next state, and readers do not see them. At any other
   time they are *delivered*: readers see them when the call returns.
3. A list may be abandoned at any point: the next `begin` discards what was staged.
4. Only `swap` awaits. While it runs, the reflector calls nothing else.
"""

from __future__ import annotations

from typing import Protocol

from konverge.objects import Key

__all__ = ["Sink"]


class Sink(Protocol):
    """Receives the changes of one collection from one reflector, in order."""

    @property
    def version(self) -> str:
        """The version up to which everything is delivered; "" before the first list."""
        ...

    def newest(self, count: int) -> list[tuple[Key, int]]:
        """Return the delivered objects with the highest versions, and these versions."""
        ...

    def restart_history(self) -> None:
        """Accept the next list even if it is older than what is delivered: the server's history restarted."""
        ...

    def begin(self) -> None:
        """Start a new list: discard what is staged, keep what is delivered."""
        ...

    def put(self, raw: bytes) -> str:
        """Store the state of one object, new or changed; return its resourceVersion.

        Raises: DecodeError when its name or resourceVersion is missing or unreadable; then nothing has changed. No
        other defect of an object is a reason to reject it.
        """
        ...

    def remove(self, raw: bytes) -> str:
        """Remove an object, given its last state; return its resourceVersion. An unknown object is not an error.

        Raises: as `put`.
        """
        ...

    async def swap(self, resource_version: str) -> None:
        """End the list: replace what is delivered with what is staged, in one step and before the first await.

        An object that is missing from the new state is reported as deleted. Return when all subscribers are notified.
        """
        ...

    def progress(self, resource_version: str) -> None:
        """Record that everything up to this version has been delivered; called for bookmarks."""
        ...
