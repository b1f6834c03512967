"""The pytest fixture `cluster`: a fresh cluster for each test, on virtual time unless the test is on real time.

    pytest_plugins = ["konverge_cluster.testing.fixtures", "konverge.testing.async_tests"]

    async def test_it_heals(cluster: TestCluster) -> None:
        async with cluster.operator(*controllers()):
            await cluster.client().create(app)
            await cluster.settle()

It is entered before the test begins, by `asynctests`, and left when it ends.
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
    """Give the wall clock of a cluster on virtual time; before its loop runs it is at its beginning."""
    try:
        return START + asyncio.get_running_loop().time()
    except RuntimeError:
        return START


class TestCluster(EmbeddedCluster):
    """An embedded cluster with what tests need beside it.

    Promises: on virtual time `settle` is exact, and nothing here sleeps; `listen` gives it a socket, for tests on real
    time.
    """

    __test__ = False  # it is no test, whatever its name
    enter_for_test = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"seed": 1, "heartbeat": 0.0, **options})

    @asynccontextmanager
    async def operator(
        self, *controllers: Controller[Any], name: str = "operator", **options: Any
    ) -> AsyncGenerator[Manager]:
        """Run controllers on this cluster while the block runs."""
        manager = Manager(self.client(), name=name, **options)
        manager.add(*controllers)
        async with manager.running():
            yield manager

    async def install(self, *crds: Unstructured) -> Client:
        """Create CRDs, wait until they are served, and give a client."""
        client = self.client()
        for crd in crds:
            await client.create(crd)
        return client

    async def settle(self, *, quiet: float = 15.0, limit: float = 3600.0) -> None:
        """Let time pass until nothing has been written for `quiet` seconds.

        Raises: WaitTimeout when it does not come to rest within `limit` seconds.
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
                raise WaitTimeout(f"the cluster did not come to rest within {limit:g} s")
            await asyncio.sleep(0.5)


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> TestCluster:
    """A fresh cluster with three nodes."""
    real = request.node.get_closest_marker("real_time") is not None
    return TestCluster(clock=wall_clock if real else virtual_clock)
