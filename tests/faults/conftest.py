"""Where scenarios are played: see `rigs`. The real server is asked by `make faults` only."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest
import rigs

from konverge.testing import ControlPlane

REAL = [pytest.mark.faults, pytest.mark.control_plane, pytest.mark.real_time(limit=900)]


@pytest.fixture(scope="session")
def forgetful_plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A real server that keeps no history of config maps beside etcd's: what is compacted there is gone.

    Asking for the run's own server first says whether the programs are there.
    """
    assert control_plane is not None
    flags = ["--watch-cache-sizes=configmaps#0", "--etcd-compaction-interval=2m"]
    with ControlPlane(extra_flags=flags) as plane:
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


def _opener(request: pytest.FixtureRequest) -> rigs.OpenRig:
    if request.param == "virtual":
        return rigs.virtual
    if request.param == "sockets":
        return rigs.sockets
    plane: ControlPlane = request.getfixturevalue("forgetful_plane")
    made = plane.request("POST", "/api/v1/namespaces", body={"metadata": {"generateName": "faults-"}})
    namespace = made.json()["metadata"]["name"]
    return functools.partial(rigs.real_rig, plane, namespace)
