"""Channels: what happens outside of the cluster and wakes a key."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from konverge.objects import Key
from konverge.triggers.reasons import EnqueueReason

__all__ = ["Channel"]


class Channel:
    """Keys to wake that come from elsewhere: a webhook, a message, a poll of some cloud.

    Promises: a key that is put reaches everybody who listens at that time; while nobody does it is kept, once, for the
    first who will. `put` tells the listeners at once, in one step.
    """

    def __init__(self, name: str = "channel") -> None:
        self.name = name
        self._listeners: dict[object, Callable[[Key, EnqueueReason], None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None  # set while somebody listens
        self._kept: dict[Key, None] = {}
        self._lock = threading.Lock()  # between threads that put and the loop that takes; never held across an await

    def put(self, key: Key) -> None:
        """Enqueue a key; call it on the event loop."""
        if not self._listeners:
            with self._lock:
                self._kept[key] = None
            return
        wake = EnqueueReason(self.name, "", key, "", "channel")
        for listener in list(self._listeners.values()):
            listener(key, wake)

    def put_threadsafe(self, key: Key) -> None:
        """Enqueue a key from any thread, soon after."""
        with self._lock:
            self._kept[key] = None
            if self._loop is not None:
                with suppress(RuntimeError):  # a loop that was closed meanwhile
                    self._loop.call_soon_threadsafe(self._pass_on)

    async def run(self, listener: Callable[[Key, EnqueueReason], None]) -> None:
        """Tell a listener what is put, and before that what was kept, until cancelled."""
        loop = asyncio.get_running_loop()
        token = object()
        self._listeners[token] = listener
        with self._lock:
            self._loop = loop
        try:
            self._pass_on()
            await loop.create_future()
        finally:
            del self._listeners[token]
            if not self._listeners:
                with self._lock:
                    self._loop = None

    def _pass_on(self) -> None:
        if not self._listeners:
            return
        with self._lock:
            kept, self._kept = self._kept, {}
        for key in kept:
            self.put(key)

    def __repr__(self) -> str:
        return f"Channel({self.name!r})"
