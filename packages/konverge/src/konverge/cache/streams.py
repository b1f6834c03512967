"""A stream of events for observers, who take their time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from konverge.cache.entries import Entry
from konverge.cache.events import Event, events_between
from konverge.objects import Key

__all__ = ["EventStream"]


class EventStream(AsyncIterator[Event]):
    """Events in the order in which they happen, for whoever may be slow.

    Promises: the last state of every object is told, however slow the reader; changes of one object that it has not
    read yet become one, from the first old state to the last new one, so that there are never more events waiting than
    objects. An object that came and went in between is not told.
    """

    def __init__(self) -> None:
        self._waiting: dict[Key, tuple[Entry | None, Entry | None, bool, Any]] = {}
        self._ready: list[Event] = []
        self._more = asyncio.Event()
        self._close: Callable[[], None] = lambda: None
        self._closed = False

    def closes_with(self, close: Callable[[], None]) -> None:
        """Note what ends the subscription."""
        self._close = close

    def tell(self, event: Event) -> None:
        """Take an event; the subscriber of a store."""
        old, new, writer = event.old, event.new, event.writer
        waiting = self._waiting.pop(event.key, None)
        if waiting is not None:
            old, writer = waiting[0], None
        if old is not None or new is not None:
            self._waiting[event.key] = (old, new, event.listed, writer)
            self._more.set()

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        while not self._ready:
            if self._closed:
                raise StopAsyncIteration
            if self._waiting:
                old, new, listed, writer = self._waiting.pop(next(iter(self._waiting)))
                self._ready = list(events_between(old, new, listed=listed, writer=writer))
            else:
                self._more.clear()
                await self._more.wait()
        return self._ready.pop(0)

    async def aclose(self) -> None:
        """End the stream; `contextlib.aclosing` calls it."""
        self._closed = True
        self._waiting.clear()
        self._more.set()
        self._close()
