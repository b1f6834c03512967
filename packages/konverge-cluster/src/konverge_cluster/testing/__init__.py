"""Tests of operators on an embedded cluster: the pytest fixture `cluster`, and simulations with faults.

    async def test_the_app_becomes_ready(cluster: TestCluster) -> None:
        async with cluster.operator(operator):
            await cluster.client().create(app)
            await cluster.settle()

pytest finds the fixture by itself (`konverge_cluster.testing.fixtures`). `simulate` runs a scenario without faults,
and then under many schedules of faults.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from konverge_cluster.testing.clusters import TestCluster, virtual_clock
    from konverge_cluster.testing.simulation.options import SimulationFailure
    from konverge_cluster.testing.simulation.runs import Simulation
    from konverge_cluster.testing.simulation.simulate import simulate

__all__ = ["Simulation", "SimulationFailure", "TestCluster", "simulate", "virtual_clock"]

_MODULES = {
    "Simulation": "simulation.runs",
    "SimulationFailure": "simulation.options",
    "TestCluster": "clusters",
    "simulate": "simulation.simulate",
    "virtual_clock": "clusters",
}


def __getattr__(name: str) -> Any:
    """Import a name on first use: pytest imports this package in every project."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value
