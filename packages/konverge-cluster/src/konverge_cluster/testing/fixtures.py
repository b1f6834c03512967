"""The pytest plugin with the fixture `cluster`: a new cluster for each test, on virtual time unless marked `real_time`.

pytest loads it through an entry point; `-p no:konverge_cluster.testing.fixtures` disables it. Rules:

1. An `async def` test that uses `cluster` runs as `konverge.testing.async_tests` describes. The cluster is entered
   before the test and exited after it.
2. Every other test is left alone. `pytest_plugins = ["konverge.testing.async_tests"]` runs all coroutines that way.
3. The module imports nothing of the cluster until a test uses it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from konverge.testing import coroutine_tests

if TYPE_CHECKING:
    from konverge_cluster.testing.clusters import TestCluster

__all__ = ["TestCluster", "cluster"]


def __getattr__(name: str) -> Any:
    """Import `TestCluster` on first use."""
    if name != "TestCluster":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from konverge_cluster.testing.clusters import TestCluster

    return TestCluster


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> TestCluster:
    """Return a new cluster with three nodes."""
    from konverge_cluster.testing.clusters import TestCluster, virtual_clock, wall_clock

    real = request.node.get_closest_marker("real_time") is not None
    return TestCluster(clock=wall_clock if real else virtual_clock)


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of `konverge.testing.async_tests`."""
    coroutine_tests.register_markers(config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Remember a test that is a coroutine and uses the cluster."""
    if "cluster" in getattr(item, "fixturenames", ()):
        coroutine_tests.store_coroutine(item)
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run a test that was remembered."""
    coroutine_tests.replace_coroutine(pyfuncitem)
    return (yield)
