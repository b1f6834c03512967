"""Channels: enqueue keys because of events outside of the cluster."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from konverge.objects import Key
from konverge.triggers.reasons import EnqueueReason

__all__ = ["Channel"]


class Channel:
    """Keys to enqueue from outside of the cluster: a webhook, a message, a poll of a cloud API.

    Promises: each key is passed to every handler that runs at that time. Without a handler it is stored, once, for the
    first one that runs. `put` calls the handlers before it returns.
    """

    def __init__(self, name: str = "channel") -> None:
        self.name = name
        self._handlers: dict[object, Callable[[Key, EnqueueReason], None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None  # set while a handler runs
        self._pending: dict[Key, None] = {}
        self._lock = threading.Lock()  # between put_threadsafe and the event loop; never held across an await

    def put(self, key: Key) -> None:
        """Enqueue a key; call it on the event loop."""
        if not self._handlers:
            with self._lock:
                self._pending[key] = None
            return
        reason = EnqueueReason(self.name, "", key, "", "channel")
        for handler in list(self._handlers.values()):
            handler(key, reason)

    def put_threadsafe(self, key: Key) -> None:
        """Enqueue a key from any thread; the handlers are called soon after."""
        with self._lock:
            self._pending[key] = None
            if self._loop is not None:
                with suppress(RuntimeError):  # the loop was closed meanwhile
                    self._loop.call_soon_threadsafe(self._flush)

    async def run(self, handler: Callable[[Key, EnqueueReason], None]) -> None:
        """Call a handler with each key, stored keys first, until cancelled."""
        loop = asyncio.get_running_loop()
        token = object()
        self._handlers[token] = handler
        with self._lock:
            self._loop = loop
        try:
            self._flush()
            await loop.create_future()
        finally:
            del self._handlers[token]
            if not self._handlers:
                with self._lock:
                    self._loop = None

    def _flush(self) -> None:
        if not self._handlers:
            return
        with self._lock:
            pending, self._pending = self._pending, {}
        for key in pending:
            self.put(key)

    def __repr__(self) -> str:
        return f"Channel({self.name!r})"
