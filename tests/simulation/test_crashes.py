"""T26 on virtual time: killed at any of its writes, an operator comes to the same end as one that was left alone."""

from __future__ import annotations

import pytest

from simulation_scenarios import FEW_STEPS, STEPS, Crash, Step, deleted_while_down, play_with_crash, play_without_faults

# Before a write the world is as it is after the one before it: the quick half is enough for every day.
MOMENTS = pytest.mark.parametrize(
    "after", [pytest.param(False, marks=pytest.mark.faults, id="before"), pytest.param(True, id="after")]
)


@MOMENTS
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


@MOMENTS
async def test_what_was_opened_in_the_ledger_is_closed_also_when_the_object_is_deleted_while_the_process_is_down(
    after: bool,
) -> None:
    at = 0
    while True:
        at += 1
        play = await deleted_while_down(Crash(at, after))
        ledger = play.rig.ledger
        assert ledger.uids("open") <= ledger.uids("close"), f"killed {'after' if after else 'before'} write {at}"
        if not play.crashes:
            break
    assert at > 4
