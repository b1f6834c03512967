"""Where a reflector reads from: the seam between following a collection and the client.

Cache and client do not know each other. `konverge.client.Collection` is a source; so is whatever a test writes.
"""

from __future__ import annotations

from typing import Protocol

from konverge.wire.messages import Response
from konverge.wire.options import ListOptions, WatchOptions

__all__ = ["Source"]


class Source(Protocol):
    """One collection of an API server: a kind, in one namespace or in all, in full or metadata only.

    Each call is one request: the reflector decides itself when to ask again. Both raise the ApiError of a refusal,
    TransportError when no answer came.

    A source that says `can_stall = False` has streams that end or go on, and never just stop coming: the silence of
    those is not looked at.
    """

    async def list(self, options: ListOptions) -> bytes:
        """Ask for a list, or a page of it, and give the whole body of a good answer."""
        ...

    async def watch(self, options: WatchOptions) -> Response:
        """Open a watch, and give the answer when its headers are there; the caller closes it."""
        ...
