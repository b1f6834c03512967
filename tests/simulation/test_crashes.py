"""T26 on virtual time: an operator that is killed at any of its writes still reaches the same final state."""

from __future__ import annotations

import pytest

from simulation_scenarios import FEW_STEPS, STEPS, Crash, Step, deleted_while_down, run_with_crash, run_without_faults

# The state before a write is that after the previous one: the quick half is enough for `make test`.
MOMENTS = pytest.mark.parametrize(
    "after", [pytest.param(False, marks=pytest.mark.faults, id="before"), pytest.param(True, id="after")]
)


@MOMENTS
@pytest.mark.parametrize("steps", [FEW_STEPS, pytest.param(STEPS, marks=pytest.mark.faults)], ids=["few", "all"])
async def test_t26_killed_at_any_write_it_ends_in_the_same_state_with_the_same_creates_and_deletes(
    steps: tuple[Step, ...], after: bool
) -> None:
    expected = await run_without_faults(steps)
    at = 0
    while True:
        at += 1
        scenario, final_state = await run_with_crash(Crash(at, after), steps)
        assert final_state == expected, f"killed {'after' if after else 'before'} write {at}"
        if not scenario.crashes:
            break
    assert at > 3 * len(steps), "each write was the last one in one run"


@MOMENTS
async def test_the_ledger_is_closed_also_if_the_object_is_deleted_while_the_process_is_down(
    after: bool,
) -> None:
    at = 0
    while True:
        at += 1
        scenario = await deleted_while_down(Crash(at, after))
        ledger = scenario.rig.ledger
        assert ledger.uids("open") <= ledger.uids("close"), f"killed {'after' if after else 'before'} write {at}"
        if not scenario.crashes:
            break
    assert at > 4
