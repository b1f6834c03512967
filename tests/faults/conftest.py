"""Where scenarios are played: see `rigs`. The real server is asked by `make faults` only."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest

import rigs
import widget_rigs
from konverge.testing import ControlPlane

# The short half of each scenario runs in asyncio's debug mode; the long one would measure that.
FULL = [pytest.mark.faults, pytest.mark.plain_loop]
REAL = [*FULL, pytest.mark.control_plane, pytest.mark.real_time(limit=3600)]


@pytest.fixture(scope="session")
def forgetful_plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A real server that keeps no history of config maps beside etcd's: what is compacted there is gone.

    Asking for the run's own server first says whether the programs are there.
    """
    assert control_plane is not None
    with ControlPlane(extra_flags=["--watch-cache-sizes=configmaps#0"]) as plane:
        yield plane


@pytest.fixture(scope="session")
def aging_plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A real server that forgets what is older than two minutes; the default is five."""
    assert control_plane is not None
    with ControlPlane(extra_flags=["--etcd-compaction-interval=2m"]) as plane:
        yield plane


@pytest.fixture(
    params=["virtual", pytest.param("sockets", marks=pytest.mark.real_time), pytest.param("real", marks=REAL)]
)
def open_rig(request: pytest.FixtureRequest) -> rigs.OpenRig:
    """Opens a rig: `async with open_rig() as rig`."""
    return _opener(request)


@pytest.fixture(params=["virtual", pytest.param("real", marks=REAL)])
def open_long_rig(request: pytest.FixtureRequest) -> rigs.OpenRig:
    """Opens a rig for scenarios that last for minutes: those that take no real time, or all of it."""
    return _opener(request)


@pytest.fixture(params=["virtual", pytest.param("real", marks=REAL)])
def open_aging_rig(request: pytest.FixtureRequest) -> rigs.OpenRig:
    """Opens a rig whose server forgets what is old."""
    return _opener(request, plane="aging_plane")


@pytest.fixture(
    params=["virtual", pytest.param("full", marks=FULL), pytest.param("real", marks=REAL)],
)
def open_widgets(request: pytest.FixtureRequest) -> widget_rigs.OpenWidgets:
    """Opens a rig for the Widget operator: `async with open_widgets() as rig`."""
    if request.param != "real":
        return functools.partial(widget_rigs.virtual_widgets, full=request.param == "full")
    return functools.partial(widget_rigs.real_widgets, request.getfixturevalue("control_plane"))


@pytest.fixture(params=["virtual", pytest.param("full", marks=FULL)])
def open_virtual_widgets(request: pytest.FixtureRequest) -> widget_rigs.OpenWidgets:
    """Opens such a rig on virtual time only, for what would measure this very process on a real one."""
    return functools.partial(widget_rigs.virtual_widgets, full=request.param == "full")


def _opener(request: pytest.FixtureRequest, *, plane: str = "forgetful_plane") -> rigs.OpenRig:
    if request.param == "virtual":
        return rigs.virtual
    if request.param == "sockets":
        return rigs.sockets
    server: ControlPlane = request.getfixturevalue(plane)
    made = server.request("POST", "/api/v1/namespaces", body={"metadata": {"generateName": "faults-"}})
    return functools.partial(rigs.real_rig, server, made.json()["metadata"]["name"])
