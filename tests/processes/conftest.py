"""Process nodes with and without namespaces: each test of the contract runs on both."""

from __future__ import annotations

import sys
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from konverge_cluster.processes import LocalImage
from process_clusters import ProcessCluster, Start, process_cluster


@pytest.fixture(params=["namespaces", "paths"])
def start(request: pytest.FixtureRequest) -> Start:
    """Return a function that starts a cluster with process nodes, in one of the two modes."""
    assert sys.platform == "linux", "process nodes need Linux"

    def started(*images: LocalImage, **options: Any) -> AbstractAsyncContextManager[ProcessCluster]:
        return process_cluster(*images, namespaces=request.param == "namespaces", **options)

    return started
