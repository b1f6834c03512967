"""Connections to one server, kept open between requests."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from contextlib import suppress

from konverge.client.connection.http_connection import READ_BYTES, HttpConnection
from konverge.client.connection.limits import Limits
from konverge.client.connection.routes import ConnectionFailed, Route

__all__ = ["ConnectionPool", "PoolClosed"]

_CLOSING_TIME = 1.0


class PoolClosed(Exception):
    """The pool is closed."""


class ConnectionPool:
    """Connections to one server, by TLS context: a rotated certificate or CA leads to new ones.

    Promises:

    - at most `Limits.connections` calls have a connection at a time, the others wait in order; streams are not counted;
    - the connection that was used last is used next; one that is idle for `Limits.idle` seconds, or on which something
      arrived meanwhile, is closed;
    - after `close` no socket is left, and whoever waits gets PoolClosed.
    """

    def __init__(self, route: Route, limits: Limits) -> None:
        self._route = route
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._idle: dict[ssl.SSLContext | None, list[HttpConnection]] = {}
        self._open: set[HttpConnection] = set()
        self._opening: set[asyncio.Task[HttpConnection]] = set()
        self._calls = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._sweep: asyncio.TimerHandle | None = None
        self._empty: asyncio.Future[None] | None = None
        self._closed = False

    def take_idle(self, context: ssl.SSLContext | None, *, stream: bool) -> HttpConnection | None:
        """Return an idle connection if there is one and nothing has to wait, else None."""
        if self._closed or not (stream or self._has_room):
            return None
        idle = self._idle.get(context)
        while idle:
            connection = idle.pop()
            if not connection.usable:
                continue
            if connection.has_pending_input():
                connection.abort()
                continue
            self._calls += not stream
            connection.is_call = not stream
            return connection
        return None

    async def take(self, context: ssl.SSLContext | None, *, stream: bool) -> HttpConnection:
        """Return a connection, an idle one if there is one.

        Raises: PoolClosed, and the errors of `Route.open`.
        """
        if not stream:
            await self._begin_call()
        try:
            connection = self.take_idle(context, stream=True) or await self._open_connection(context)
        except BaseException:
            if not stream:
                self._end_call()
            raise
        connection.is_call = not stream
        return connection

    def release(self, connection: HttpConnection, *, keep_alive: bool) -> None:
        """Return a connection to the pool; one that cannot be used again is closed."""
        if keep_alive and connection.usable and not self._closed:
            connection.idle_since = self._loop.time()
            self._idle.setdefault(connection.context, []).append(connection)
            if self._sweep is None:
                self._sweep = self._loop.call_later(self._limits.idle, self._close_idle)
        else:
            connection.abort()
        if connection.is_call:
            self._end_call()

    def stop(self) -> None:
        """Open no connection and keep none from now on."""
        self._closed = True

    async def close(self) -> None:
        """Close all connections and wait until their sockets are closed."""
        self.stop()
        if self._sweep is not None:
            self._sweep.cancel()
        for task in self._opening:
            task.cancel()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(PoolClosed())
        for connection in self._open:
            connection.abort()
        if self._opening:
            await asyncio.wait(self._opening)
        if self._open:
            self._empty = self._loop.create_future()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._empty, _CLOSING_TIME)

    @property
    def _has_room(self) -> bool:
        return self._calls < self._limits.connections and not self._waiting

    async def _begin_call(self) -> None:
        """Wait until there are fewer calls than the limit, and count one more."""
        if self._has_room:
            self._calls += 1
            return
        turn: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._end_call()  # the turn came together with the cancellation: pass it on
            raise
        finally:
            with suppress(ValueError):
                self._waiting.remove(turn)

    def _end_call(self) -> None:
        """Pass the place of a call on to the next that waits."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._calls -= 1

    def _check_open(self) -> None:
        if self._closed:
            raise PoolClosed

    async def _open_connection(self, context: ssl.SSLContext | None) -> HttpConnection:
        """Open a connection in a task of its own, which `close` can cancel."""
        self._check_open()
        task = self._loop.create_task(self._route.open(context, self._new_connection))
        self._opening.add(task)
        try:
            connection = await task
        except asyncio.CancelledError:
            if task.cancelled():
                self._check_open()
            elif task.done() and task.exception() is None:
                task.result().abort()  # the connection came together with the cancellation
            raise
        finally:
            self._opening.discard(task)
        if not connection.usable:
            raise ConnectionFailed("the connection was closed before the request was sent")
        connection.context = context
        self._open.add(connection)
        return connection

    def _new_connection(self) -> HttpConnection:
        return HttpConnection(self._buffer, self._forget)

    def _forget(self, connection: HttpConnection) -> None:
        self._open.discard(connection)
        for idle in self._idle.values():
            with suppress(ValueError):
                idle.remove(connection)
        if not self._open and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def _close_idle(self) -> None:
        """Close what was idle for too long, and look again when the next one is."""
        self._sweep = None
        oldest = self._loop.time() - self._limits.idle
        for context, idle in list(self._idle.items()):
            for connection in [each for each in idle if each.idle_since <= oldest]:
                idle.remove(connection)
                connection.abort()
            if not idle:
                del self._idle[context]
        if self._idle:
            earliest = min(idle[0].idle_since for idle in self._idle.values())
            self._sweep = self._loop.call_at(earliest + self._limits.idle, self._close_idle)
