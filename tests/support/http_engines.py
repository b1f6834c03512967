"""Both transports over sockets, for tests that run on each: `new_transport` creates the one of the current test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from konverge.client.access.config import ClientConfig
from konverge.client.aiohttp_transport import AiohttpTransport
from konverge.client.connection.limits import Limits
from konverge.client.transport import HttpTransport

__all__ = ["SocketTransport", "each_engine", "new_transport"]

SocketTransport = HttpTransport | AiohttpTransport

_current: list[type[HttpTransport] | type[AiohttpTransport]] = []


@pytest.fixture(params=[HttpTransport, AiohttpTransport], autouse=True)
def each_engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test of the module that imports this once for each transport."""
    _current.append(request.param)
    yield
    _current.pop()


def new_transport(config: ClientConfig, *, limits: Limits | None = None) -> SocketTransport:
    """Return a transport of the class that the current test is about."""
    return _current[-1](config, limits=limits)
