"""The pytest fixtures of the real control plane, as a plugin: ``pytest_plugins = ["konverge.testing.fixtures"]``.

Rules:

1. One control plane serves the whole run; the first test that uses it starts it. Each test has its own namespace. etcd
   is not compacted automatically, so the duration of a run changes no result (`ControlPlane.compact` compacts it).
2. A test that uses the fixture is marked ``control_plane`` automatically; ``-m 'not control_plane'`` deselects it.
3. When the programs are missing these tests are skipped, and the summary says once how to get them. With
   ``KONVERGE_REQUIRE_CONTROL_PLANE=1`` they fail instead, so that a run cannot pass without them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from konverge.errors import ControlPlaneError
from konverge.testing.binaries import find_binaries
from konverge.testing.control_plane import ControlPlane

REQUIRE = "KONVERGE_REQUIRE_CONTROL_PLANE"
MISSING = "no control plane: "


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """Start etcd and kube-apiserver for the test run."""
    try:
        find_binaries()
    except ControlPlaneError as missing:
        if os.environ.get(REQUIRE, "0") not in ("", "0"):
            pytest.fail(f"{missing}; {REQUIRE} is set, so the test is not skipped", pytrace=False)
        pytest.skip(f"{MISSING}{missing}")
    with ControlPlane(extra_flags=["--etcd-compaction-interval=0"]) as plane:
        yield plane


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """Create a namespace and return its name. It is deleted after the test, without waiting for the deletion."""
    body = {"metadata": {"generateName": "test-"}}
    response = control_plane.request("POST", "/api/v1/namespaces", body=body)
    assert response.status == 201, response.body
    name = response.json()["metadata"]["name"]
    yield name
    control_plane.request("DELETE", f"/api/v1/namespaces/{name}")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, also for a project that does not list it."""
    config.addinivalue_line("markers", "control_plane: needs the real etcd and kube-apiserver")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that use the control plane, before markers select tests."""
    if "control_plane" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.control_plane)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report once why tests were skipped, here or in a worker of pytest-xdist: the default report shows no reasons."""
    for report in terminalreporter.getreports("skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        if reason.startswith(f"Skipped: {MISSING}"):
            missing = reason.removeprefix(f"Skipped: {MISSING}")
            terminalreporter.write_line(f"skipped the tests that need a control plane: {missing}")
            return
