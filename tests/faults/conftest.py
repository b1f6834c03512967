"""Fixtures that open the rigs of the fault scenarios: see `rigs`. Only `make faults` uses the real server."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest

import rigs
import widget_rigs
from konverge.testing import ControlPlane

# The short half of each scenario runs in asyncio's debug mode; the long one would measure the overhead of that mode.
FULL = [pytest.mark.faults, pytest.mark.plain_loop]
REAL = [*FULL, pytest.mark.control_plane, pytest.mark.real_time(limit=3600)]


@pytest.fixture(scope="session")
def uncached_plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A real server without a watch cache for config maps: what etcd compacts is gone.

    It depends on `control_plane`, which skips the test if the binaries are missing.
    """
    assert control_plane is not None
    with ControlPlane(extra_flags=["--watch-cache-sizes=configmaps#0"]) as plane:
        yield plane


@pytest.fixture(scope="session")
def compacting_plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A real server that compacts after two minutes; the default is five."""
    assert control_plane is not None
    with ControlPlane(extra_flags=["--etcd-compaction-interval=2m"]) as plane:
        yield plane


@pytest.fixture(
    params=["virtual", pytest.param("sockets", marks=pytest.mark.real_time), pytest.param("real", marks=REAL)]
)
def open_rig(request: pytest.FixtureRequest) -> rigs.OpenRig:
    """Return a function that opens a rig: `async with open_rig() as rig`."""
    return _opener(request)


@pytest.fixture(params=["virtual", pytest.param("real", marks=REAL)])
def open_long_rig(request: pytest.FixtureRequest) -> rigs.OpenRig:
    """Return a function that opens a rig for scenarios that last for minutes: on virtual or on real time."""
    return _opener(request)


@pytest.fixture(params=["virtual", pytest.param("real", marks=REAL)])
def open_compacting_rig(request: pytest.FixtureRequest) -> rigs.OpenRig:
    """Return a function that opens a rig whose server compacts old history."""
    return _opener(request, plane="compacting_plane")


@pytest.fixture(
    params=["virtual", pytest.param("full", marks=FULL), pytest.param("real", marks=REAL)],
)
def open_widgets(request: pytest.FixtureRequest) -> widget_rigs.OpenWidgets:
    """Return a function that opens a rig for the Widget operator: `async with open_widgets() as rig`."""
    if request.param != "real":
        return functools.partial(widget_rigs.virtual_widgets, full=request.param == "full")
    return functools.partial(widget_rigs.real_widgets, request.getfixturevalue("control_plane"))


@pytest.fixture(params=["virtual", pytest.param("full", marks=FULL)])
def open_virtual_widgets(request: pytest.FixtureRequest) -> widget_rigs.OpenWidgets:
    """Return a function that opens such a rig on virtual time only, for tests that would measure this process."""
    return functools.partial(widget_rigs.virtual_widgets, full=request.param == "full")


def _opener(request: pytest.FixtureRequest, *, plane: str = "uncached_plane") -> rigs.OpenRig:
    if request.param == "virtual":
        return rigs.virtual
    if request.param == "sockets":
        return rigs.sockets
    server: ControlPlane = request.getfixturevalue(plane)
    created = server.request("POST", "/api/v1/namespaces", body={"metadata": {"generateName": "faults-"}})
    return functools.partial(rigs.real_rig, server, created.json()["metadata"]["name"])
