"""The whole operator with faults of one seed: it must reach the same final state as without them.

Late, lost and failed responses, streams that are reset, closed or stalled, stale lists, processes that are killed. A
seed that failed once stays here by its number.
"""

from __future__ import annotations

import os
from itertools import groupby

import pytest

from konverge.testing import run_in_virtual_time
from simulation_scenarios import (
    FEW_STEPS,
    STEPS,
    FinalState,
    Scenario,
    run_with_faults,
    run_with_two_candidates,
    run_without_faults,
)
from widget_rigs import Write

FEW = range(2)
LONG = [pytest.mark.faults, pytest.mark.plain_loop]
MANY = [pytest.param(seed, marks=LONG) for seed in range(100, 100 + int(os.environ.get("KONVERGE_SEEDS", "100")))]


@pytest.fixture(scope="module")
def expected() -> FinalState:
    """The final state without faults."""
    return run_in_virtual_time(run_without_faults())


@pytest.mark.parametrize("seed", [*FEW, *MANY])
async def test_the_final_state_with_faults_is_that_without(seed: int, expected: FinalState) -> None:
    scenario, final_state = await run_with_faults(seed)

    assert final_state == expected, f"after {scenario.crashes} crashes and {scenario.faults}"
    assert len(scenario.faults) > 3


@pytest.mark.parametrize("seed", [1, *MANY])
async def test_of_two_candidates_only_the_leader_writes(seed: int) -> None:
    expected, (scenario, final_state) = await _compete(seed, freezes=True)

    terms = [
        client for client, _ in groupby(sorted(scenario.rig.writes(), key=_arrival), key=lambda write: write.client)
    ]
    assert len(terms) == len(set(terms)), "no process writes again after another has written"
    assert (final_state.widgets, final_state.children) == (expected.widgets, expected.children)


@pytest.mark.parametrize("seed", [1, *MANY])
async def test_a_new_leader_reverts_nothing(seed: int) -> None:
    """Except if a stream has stalled undetected: then it acts on stale objects."""
    expected, (_, final_state) = await _compete(seed, freezes=False)

    assert final_state.counts == expected.counts


async def _compete(seed: int, *, freezes: bool) -> tuple[FinalState, tuple[Scenario, FinalState]]:
    steps = FEW_STEPS if seed in FEW else STEPS
    return await run_without_faults(steps), await run_with_two_candidates(seed, steps, freezes=freezes)


def _arrival(write: Write) -> float:
    return write.sent


def test_a_seed_replays_exactly() -> None:
    (first, one), (second, other) = [run_in_virtual_time(run_with_faults(7, STEPS[:3])) for _ in range(2)]

    assert one == other
    assert first.faults == second.faults
    assert [str(write) for write in first.rig.audit] == [str(write) for write in second.rig.audit]
    assert [write.sent for write in first.rig.audit] == [write.sent for write in second.rig.audit]
