"""The interface that a reflector reads from; client-go calls it ListerWatcher.

The cache does not depend on the client. `konverge.client.Collection` is a source, and tests write their own.
"""

from __future__ import annotations

from typing import Protocol

from konverge.wire.messages import Response
from konverge.wire.options import ListOptions, WatchOptions

__all__ = ["Source"]


class Source(Protocol):
    """One collection of an API server: a kind, in one namespace or in all, in full or metadata only.

    Each call is one request; the reflector decides when to retry. Both methods raise the ApiError of an error response,
    and TransportError when there is no response.

    A source may have a method `get(key)`, which returns one object as JSON: a reflector reads objects live to find out
    whether the server's history restarted. A source with the attribute `can_stall = False` has streams that never
    stall: they end, or they continue. The reflector applies no idle timeout to them.
    """

    async def list(self, options: ListOptions) -> bytes:
        """Request a list, or a page of it; return the body of a successful response."""
        ...

    async def watch(self, options: WatchOptions) -> Response:
        """Open a watch; return the response when its headers have arrived. The caller closes it."""
        ...
