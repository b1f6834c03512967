"""Process nodes with and without namespaces: each test of the contract runs on both.

They need Linux. There a skipped test is a failed one, unless it lacks a binary of the control plane, or MariaDB.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from konverge.errors import ControlPlaneError
from konverge.testing import find_binaries
from konverge_cluster.processes import LocalImage
from process_clusters import ProcessCluster, SharedCluster, Start, hidden_images, process_cluster, select_tests
from running_mariadb import MISSING

MODES = ("namespaces", "paths")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = missing_binaries()
    for item in items:
        if item.get_closest_marker("processes") is None:
            continue
        if sys.platform != "linux":
            item.add_marker(pytest.mark.skip(reason="process nodes need Linux"))
        elif missing and item.get_closest_marker("control_plane"):
            item.add_marker(pytest.mark.skip(reason=missing))
        elif MISSING and item.get_closest_marker("mariadb"):
            item.add_marker(pytest.mark.skip(reason=f"needs MariaDB, {', '.join(MISSING)} not found"))


def missing_binaries() -> str:
    """Return why kubectl and etcd cannot be used, "" if they can."""
    try:
        find_binaries(("kubectl", "etcd"))
    except ControlPlaneError as missing:
        return str(missing)
    return ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    may_be_skipped = any(item.get_closest_marker(name) for name in ("control_plane", "mariadb"))
    if report.skipped and sys.platform == "linux" and not may_be_skipped:
        report.outcome = "failed"
        report.longrepr = f"no test of process nodes may be skipped on Linux: {report.longrepr}"
    return report


@pytest.fixture(params=MODES)
def start(request: pytest.FixtureRequest) -> Start:
    """Return a function that starts a cluster with process nodes, in one of the two modes."""

    def started(*images: LocalImage, **options: Any) -> AbstractAsyncContextManager[ProcessCluster]:
        return process_cluster(*images, namespaces=request.param == "namespaces", **options)

    return started


def early(request: pytest.FixtureRequest) -> list[pytest.Item]:
    """Return the tests that may be started early: not those that another process may run."""
    return [] if hasattr(request.config, "workerinput") else request.session.items


@pytest.fixture(scope="session", params=MODES)
def shared_cluster(request: pytest.FixtureRequest) -> Iterator[SharedCluster]:
    """Run a cluster that tests share, in each of the two modes."""
    tests = select_tests(early(request), "shared_cluster", request.param)
    with hidden_images() as images:
        cluster = SharedCluster(*images, tests=tests, namespaces=request.param == "namespaces")
        yield cluster
        cluster.stop()


@pytest.fixture(scope="session")
def limited_cluster(request: pytest.FixtureRequest) -> Iterator[SharedCluster]:
    """Run a cluster in which restarts wait long and logs are short."""
    cluster = SharedCluster(tests=select_tests(early(request), "limited_cluster"), crash_backoff=30.0, log_limit=10_000)
    yield cluster
    cluster.stop()
