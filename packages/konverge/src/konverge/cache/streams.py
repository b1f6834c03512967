"""A stream of events for observers that may be slow."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import Any

from konverge.cache.entries import Entry
from konverge.cache.events import Event, change_events
from konverge.objects import Key

__all__ = ["EventStream"]


class EventStream(AsyncIterator[Event]):
    """Events in the order in which they happen, for readers that may be slow.

    Promises: the reader receives the last state of every object, however slow it is. Unread changes of one object are
    merged into one, from the first old state to the last new one, so that there are never more pending events than
    objects. An object that was added and deleted in between is not reported.
    """

    def __init__(self) -> None:
        self._pending: OrderedDict[Key, tuple[Entry | None, Entry | None, bool, Any]] = OrderedDict()
        self._ready: list[Event] = []
        self._more = asyncio.Event()
        self._on_close: Callable[[], None] = lambda: None
        self._closed = False

    def on_close(self, callback: Callable[[], None]) -> None:
        """Set the function that ends the subscription."""
        self._on_close = callback

    def notify(self, event: Event) -> None:
        """Add an event; this is the event handler of the store."""
        old, new, writer = event.old, event.new, event.writer
        pending = self._pending.pop(event.key, None)
        if pending is not None:
            old, writer = pending[0], None
        if old is not None or new is not None:
            self._pending[event.key] = (old, new, event.listed, writer)
            self._more.set()

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        while not self._ready:
            if self._closed:
                raise StopAsyncIteration
            if self._pending:
                old, new, listed, writer = self._pending.popitem(last=False)[1]
                self._ready = list(change_events(old, new, listed=listed, writer=writer))
            else:
                self._more.clear()
                await self._more.wait()
        return self._ready.pop(0)

    async def aclose(self) -> None:
        """End the stream; `contextlib.aclosing` calls it."""
        self._closed = True
        self._pending.clear()
        self._more.set()
        self._on_close()
