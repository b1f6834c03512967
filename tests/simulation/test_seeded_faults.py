"""The whole operator under faults that one seed decides: it must end as it does without them.

Late, lost and failed answers, streams that are cut, ended or frozen, lists that are old, processes that are killed. A
seed that once failed stays here by its number.
"""

from __future__ import annotations

import os
from itertools import groupby

import pytest

from konverge.testing import run_in_virtual_time
from simulation_scenarios import FEW_STEPS, STEPS, Ending, Play, play_with_faults, play_with_two, play_without_faults
from widget_rigs import Write

FEW = range(2)
LONG = [pytest.mark.faults, pytest.mark.plain_loop]
MANY = [pytest.param(seed, marks=LONG) for seed in range(100, 100 + int(os.environ.get("KONVERGE_SEEDS", "100")))]


@pytest.fixture(scope="module")
def expected() -> Ending:
    """How the play ends when nothing goes wrong."""
    return run_in_virtual_time(play_without_faults())


@pytest.mark.parametrize("seed", [*FEW, *MANY])
async def test_under_faults_it_ends_as_it_does_without(seed: int, expected: Ending) -> None:
    play, ending = await play_with_faults(seed)

    assert ending == expected, f"after {play.crashes} crashes and {play.faults}"
    assert len(play.faults) > 3


@pytest.mark.parametrize("seed", [1, *MANY])
async def test_of_two_who_compete_under_faults_never_two_write(seed: int) -> None:
    expected, (play, ending) = await _compete(seed, freezes=True)

    terms = [who for who, _ in groupby(sorted(play.rig.writes(), key=_arrival), key=lambda write: write.who)]
    assert len(terms) == len(set(terms)), "nobody writes again after another has written"
    assert (ending.widgets, ending.children) == (expected.widgets, expected.children)


@pytest.mark.parametrize("seed", [1, *MANY])
async def test_who_takes_over_undoes_nothing(seed: int) -> None:
    """Unless a stream fell silent and nobody can know: then it acts on what it heard last."""
    expected, (_, ending) = await _compete(seed, freezes=False)

    assert ending.counts == expected.counts


async def _compete(seed: int, *, freezes: bool) -> tuple[Ending, tuple[Play, Ending]]:
    steps = FEW_STEPS if seed in FEW else STEPS
    return await play_without_faults(steps), await play_with_two(seed, steps, freezes=freezes)


def _arrival(write: Write) -> float:
    return write.sent


def test_a_seed_replays_exactly() -> None:
    (first, one), (second, other) = [run_in_virtual_time(play_with_faults(7, STEPS[:3])) for _ in range(2)]

    assert one == other
    assert first.faults == second.faults
    assert [str(write) for write in first.rig.audit] == [str(write) for write in second.rig.audit]
    assert [write.sent for write in first.rig.audit] == [write.sent for write in second.rig.audit]
