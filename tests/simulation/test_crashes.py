"""T26 on virtual time: killed at any of its writes, an operator comes to the same end as one that was left alone."""

from __future__ import annotations

import pytest
from simulation_plays import FEW_STEPS, STEPS, Crash, Step, play_with_crash, play_without_faults


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("steps", [FEW_STEPS, pytest.param(STEPS, marks=pytest.mark.faults)], ids=["few", "all"])
async def test_t26_killed_at_any_write_it_ends_in_the_same_state_with_the_same_creates_and_deletes(
    steps: tuple[Step, ...], after: bool
) -> None:
    expected = await play_without_faults(steps)
    at = 0
    while True:
        at += 1
        play, ending = await play_with_crash(Crash(at, after), steps)
        assert ending == expected, f"killed {'after' if after else 'before'} write {at}"
        if not play.crashes:
            break
    assert at > 3 * len(steps), "each write was the last one once"
