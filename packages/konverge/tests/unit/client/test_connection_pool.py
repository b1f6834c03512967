"""The pool of connections: what is opened is closed, whenever a request is cancelled."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

import pytest

from faulty_server import ReceivedRequest, serving
from konverge.client.connection.http_connection import HttpConnection
from konverge.client.connection.limits import Limits
from konverge.client.connection.pool import ConnectionPool
from konverge.client.connection.proxies import ProxyRoute
from konverge.client.connection.routes import Route

pytestmark = pytest.mark.real_time


class GatedRoute(Route):
    """A route that returns an open connection once `gate` is set."""

    def __init__(self, server: str) -> None:
        super().__init__(server, server_name=None, proxy=ProxyRoute(None), limits=Limits())
        self.gate = asyncio.Event()
        self.is_open = asyncio.Event()
        self.opened: HttpConnection | None = None

    async def open(self, context: ssl.SSLContext | None, factory: Callable[[], HttpConnection]) -> HttpConnection:
        connection = await super().open(context, factory)
        self.opened = connection
        self.is_open.set()
        try:
            await self.gate.wait()
        except BaseException:
            connection.abort()
            raise
        return connection


async def never(request: ReceivedRequest) -> None:
    raise AssertionError(f"nothing is sent: {request}")


@pytest.mark.parametrize("steps", range(6))
async def test_a_connection_that_is_opened_while_its_request_is_cancelled_is_closed(steps: int) -> None:
    async with serving(never) as server:
        route = GatedRoute(server.url)
        pool = ConnectionPool(route, Limits())
        request = asyncio.create_task(pool.take(None, stream=False))
        await route.is_open.wait()
        assert route.opened is not None
        route.gate.set()
        for _ in range(steps):
            await asyncio.sleep(0)
        if request.cancel():
            with pytest.raises(asyncio.CancelledError):
                await request
            assert not route.opened.usable
        else:
            pool.release(request.result(), keep_alive=True)
        await pool.close()
        assert not route.opened.usable
