"""The whole operator with faults of one seed: it must reach the same final state as without them.

Late, lost and failed responses, streams that are reset, closed or stalled, stale lists, processes that are killed, and
two replicas that compete for a lease: the simulation kit checks each against the run without faults.
"""

from __future__ import annotations

import os

import pytest

from konverge_cluster.testing import Simulation, simulate
from simulation_scenarios import OpenLedger, act, act_briefly, widget_operator

MANY = int(os.environ.get("KONVERGE_SEEDS", "100"))


@simulate(widget_operator, external=OpenLedger, seeds=4, faults=40)
async def test_the_final_state_with_faults_is_that_without(sim: Simulation[OpenLedger]) -> None:
    await act_briefly(sim)


@pytest.mark.faults
@simulate(widget_operator, external=OpenLedger, seeds=MANY, faults=60)
async def test_the_final_state_with_faults_is_that_without_with_many_seeds(sim: Simulation[OpenLedger]) -> None:
    await act(sim)


@simulate(widget_operator, external=OpenLedger, seeds=4, faults=40, replicas=2)
async def test_of_two_candidates_only_the_leader_writes_and_a_new_one_reverts_nothing(
    sim: Simulation[OpenLedger],
) -> None:
    """A new leader reverts nothing, except if a stream has stalled undetected: then it acts on stale objects."""
    await act_briefly(sim)
    crashes = [one for one in sim.schedule if one.fault.startswith("crash") and one.at <= len(sim.writes)]
    assert len({write.process for write in sim.writes}) > 1 or not crashes


@pytest.mark.faults
@simulate(widget_operator, external=OpenLedger, seeds=MANY, faults=60, replicas=2)
async def test_two_candidates_with_many_seeds(sim: Simulation[OpenLedger]) -> None:
    await act(sim)


def test_a_seed_replays_exactly() -> None:
    first, second = [_log_of_all_seeds() for _ in range(2)]

    assert first == second
    assert len(first) == 2 + 3 + 2  # seeds of restarts and replacements, of faults, and two runs without faults
    assert len({str(run) for run in first}) > 3


def _log_of_all_seeds() -> list[list[tuple[float, int, str]]]:
    """Return the writes of each run, with their times and processes."""
    logs: list[list[tuple[float, int, str]]] = []

    @simulate(widget_operator, external=OpenLedger, seeds=3, faults=40)
    async def scenario(sim: Simulation[OpenLedger]) -> None:
        await act_briefly(sim)
        logs.append([(write.time, write.process, str(write)) for write in sim.writes])

    scenario()
    return logs
