"""What a reflector writes into: the seam between following a collection and keeping it.

The reflector knows nothing of stores, and a store nothing of lists and watches. Rules of the seam:

1. Objects come as JSON bytes, as the server sent them. Those of a watch name their `kind` and `apiVersion`; items of a
   list of built-in kinds do not.
2. Between `begin` and `swap` changes are *staged*: they build the next state, and readers see nothing of them. Outside
   of that they are *delivered*: readers see them when the call returns.
3. A list may be given up at any point: another `begin` then throws away what was staged.
4. Only `swap` awaits. While it runs, the reflector calls nothing else.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Sink"]


class Sink(Protocol):
    """Takes the changes of one collection, from one reflector, in order."""

    def begin(self) -> None:
        """Start a new list: forget what is staged, keep what is delivered."""
        ...

    def put(self, raw: bytes) -> str:
        """Take the state of one object, new or changed, and give its resourceVersion.

        Raises: DecodeError when it has no name or no resourceVersion that can be read; then nothing has changed.
        Whatever else is wrong with an object is no reason to refuse it.
        """
        ...

    def remove(self, raw: bytes) -> str:
        """Take the last state of an object that is gone, and give its resourceVersion; one unknown is no error.

        Raises: as `put`.
        """
        ...

    async def swap(self, resource_version: str) -> None:
        """End the list: what is staged becomes what is delivered, in one step and before the first await.

        An object that is missing from the new state is told as deleted. Returns when every subscriber has been told.
        """
        ...

    def progress(self, resource_version: str) -> None:
        """Note that everything up to this version has been delivered; called for bookmarks."""
        ...
