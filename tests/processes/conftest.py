"""Process nodes with and without namespaces: each test of the contract runs on both."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from konverge_cluster.processes import LocalImage
from process_clusters import ProcessCluster, SharedCluster, Start, process_cluster

MODES = ("namespaces", "paths")


@pytest.fixture(params=MODES)
def start(request: pytest.FixtureRequest) -> Start:
    """Return a function that starts a cluster with process nodes, in one of the two modes."""
    assert sys.platform == "linux", "process nodes need Linux"

    def started(*images: LocalImage, **options: Any) -> AbstractAsyncContextManager[ProcessCluster]:
        return process_cluster(*images, namespaces=request.param == "namespaces", **options)

    return started


@pytest.fixture(scope="session", params=MODES)
def shared_cluster(request: pytest.FixtureRequest) -> Iterator[SharedCluster]:
    """Run a cluster that tests share, in each of the two modes."""
    assert sys.platform == "linux", "process nodes need Linux"
    cluster = SharedCluster(namespaces=request.param == "namespaces")
    yield cluster
    cluster.stop()
