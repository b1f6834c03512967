"""T46: three kinds, fifteen random steps, random crashes. Every run ends like the one without faults.

After each step the objects have to be those of the run without faults, and at the end the creates and deletes and the
ledger too: `konverge_cluster.testing.simulate` compares them.
"""

from __future__ import annotations

import pytest

from campaign_operator import STEPS, RandomUser, SmallCluster, campaign_operator
from konverge_cluster.testing import Simulation, simulate
from simulation_scenarios import OpenLedger

SEEDS = 50
"""Of one sequence of steps. The even ones together kill the process before and after every write."""

FAULTS = (
    *("crash-before", "crash-after", "restart", "lose-lease"),
    *("conflict", "busy", "error", "unavailable", "timeout", "lost-response", "late-response"),
    *("foreign-touch", "foreign-edit", "foreign-delete"),
)


def campaign(number: int) -> None:
    """Run one sequence of steps with all its seeds."""

    @simulate(
        campaign_operator, external=OpenLedger, seeds=SEEDS, faults=20, only=FAULTS, nodes=0, cluster=SmallCluster
    )
    async def steps(sim: Simulation[OpenLedger]) -> None:
        user = RandomUser(sim, number)
        for _ in range(STEPS):
            await user.act()
            await sim.settle()

    steps()


def test_t46_random_crashes_end_with_the_same_objects_creates_and_deletes() -> None:
    campaign(0)


@pytest.mark.campaigns
@pytest.mark.parametrize("number", range(1, 41))
def test_t46_with_two_thousand_seeds(number: int) -> None:
    campaign(number)
