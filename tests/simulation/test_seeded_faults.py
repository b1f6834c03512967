"""The whole operator under faults that one seed decides: it must end as it does without them.

Late, lost and failed answers, streams that are cut, ended or frozen, lists that are old, processes that are killed. A
seed that once failed stays here by its number.
"""

from __future__ import annotations

import os

import pytest
from simulation_plays import STEPS, play_with_faults, play_without_faults

from konverge.testing import run_virtually

FEW = range(4)
MANY = range(100, 100 + int(os.environ.get("KONVERGE_SEEDS", "100")))


@pytest.mark.parametrize("seed", [*FEW, *(pytest.param(seed, marks=pytest.mark.faults) for seed in MANY)])
async def test_under_faults_it_ends_as_it_does_without(seed: int) -> None:
    expected = await play_without_faults()

    play, ending = await play_with_faults(seed)

    assert ending == expected, f"after {play.crashes} crashes and {play.faults}"
    assert len(play.faults) > 3


def test_a_seed_replays_exactly() -> None:
    (first, one), (second, other) = [run_virtually(play_with_faults(7, STEPS[:3])) for _ in range(2)]

    assert one == other
    assert first.faults == second.faults
    assert [str(write) for write in first.rig.audit] == [str(write) for write in second.rig.audit]
    assert [write.sent for write in first.rig.audit] == [write.sent for write in second.rig.audit]
