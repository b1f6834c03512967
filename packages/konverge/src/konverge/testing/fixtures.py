"""The pytest fixtures of the real control plane, as a plugin: ``pytest_plugins = ["konverge.testing.fixtures"]``.

Rules:

1. One control plane serves the whole run, started by the first test that asks for it; each test gets namespaces of
   its own. It forgets no version on its own: how long a run takes changes no answer (`ControlPlane.compact` does).
2. A test that asks for the fixture is marked ``control_plane`` by that, so ``-m 'not control_plane'`` leaves it out.
3. Where the programs are missing such tests are skipped, and the summary says once how to get them. With
   ``KONVERGE_REQUIRE_CONTROL_PLANE=1`` they fail instead: a run that must prove something cannot skip the proof.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from konverge.errors import ControlPlaneError
from konverge.testing.binaries import find_binaries
from konverge.testing.control_plane import ControlPlane

REQUIRE = "KONVERGE_REQUIRE_CONTROL_PLANE"
SKIPPED = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """The run's own etcd and kube-apiserver."""
    try:
        find_binaries()
    except ControlPlaneError as missing:
        if os.environ.get(REQUIRE, "0") not in ("", "0"):
            pytest.fail(f"{missing}; {REQUIRE} is set, so this is no skip", pytrace=False)
        request.config.stash[SKIPPED] = str(missing)
        pytest.skip(str(missing))
    with ControlPlane(extra_flags=["--etcd-compaction-interval=0"]) as plane:
        yield plane


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """The name of a fresh namespace, told to go after the test; nobody waits for that."""
    wish = {"metadata": {"generateName": "test-"}}
    answer = control_plane.request("POST", "/api/v1/namespaces", body=wish)
    assert answer.status == 201, answer.body
    name = answer.json()["metadata"]["name"]
    yield name
    control_plane.request("DELETE", f"/api/v1/namespaces/{name}")


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known, also to a project that does not list it."""
    config.addinivalue_line("markers", "control_plane: needs the real etcd and kube-apiserver")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what asks for the control plane, before marks select tests."""
    if "control_plane" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.control_plane)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say once why tests were skipped: the default report shows no reasons."""
    if SKIPPED in config.stash:
        terminalreporter.write_line(f"skipped the tests that need a control plane: {config.stash[SKIPPED]}")
