"""The pytest fixture `cluster`: a new cluster for each test, on virtual time unless the test is marked `real_time`.

    pytest_plugins = ["konverge_cluster.testing.fixtures", "konverge.testing.async_tests"]

    async def test_the_app_becomes_ready(cluster: TestCluster) -> None:
        async with cluster.operator(*controllers()):
            await cluster.client().create(app)
            await cluster.settle()

`konverge.testing.async_tests` enters the cluster before the test, and exits it after the test.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge.client import Client
from konverge.controller import Controller
from konverge.errors import WaitTimeout
from konverge.manager import Manager
from konverge.objects import Unstructured, wall_clock
from konverge.testing.virtual_time import START, VirtualTimeLoop
from konverge_cluster.embedded_cluster import EmbeddedCluster

__all__ = ["TestCluster", "cluster"]


def virtual_clock() -> float:
    """Return the wall clock time on virtual time; the start time while no event loop runs."""
    try:
        return START + asyncio.get_running_loop().time()
    except RuntimeError:
        return START


class TestCluster(EmbeddedCluster):
    """An embedded cluster with methods for tests.

    Promises: on virtual time `settle` is exact, and nothing sleeps in real time. `listen` opens a socket, for tests on
    real time.
    """

    __test__ = False  # pytest would collect it because of its name
    enter_for_test = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"seed": 1, "heartbeat": 0.0, **options})

    @asynccontextmanager
    async def operator(
        self, *controllers: Controller[Any], name: str = "operator", **options: Any
    ) -> AsyncGenerator[Manager]:
        """Run controllers on this cluster inside an `async with` block."""
        manager = Manager(self.client(), name=name, **options)
        manager.add(*controllers)
        async with manager.running():
            yield manager

    async def install(self, *crds: Unstructured) -> Client:
        """Create CRDs, which the embedded server serves at once; return a client."""
        client = self.client()
        for crd in crds:
            await client.create(crd)
        return client

    async def settle(self, *, quiet: float = 15.0, limit: float = 3600.0) -> None:
        """Wait until nothing has been written for `quiet` seconds.

        Raises: WaitTimeout when writes continue for `limit` seconds.
        """
        loop = asyncio.get_running_loop()
        storage = self.server.cluster.storage
        end, since, last = loop.time() + limit, loop.time(), -1
        while loop.time() - since < quiet:
            if isinstance(loop, VirtualTimeLoop):
                await loop.settle()
            if storage.next_revision != last:
                last, since = storage.next_revision, loop.time()
            if loop.time() > end:
                raise WaitTimeout(f"cluster not settled after {limit:g} s: objects are still written")
            await asyncio.sleep(0.5)


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> TestCluster:
    """Return a new cluster with three nodes."""
    real = request.node.get_closest_marker("real_time") is not None
    return TestCluster(clock=wall_clock if real else virtual_clock)
