"""With any faults and any concurrent writes, each key has seen the last change of others in the end.

This is a model test of the triggers (which changes enqueue which keys, and which are taken for own writes), not a
simulation of an operator: nothing converges here, so there is no run without faults to compare with, and the simulation
kit is not for it. What each reconcile has seen is compared with the server instead.

The reconciles write by every method of the client, and fail without a retry at any of them, so that only a change by
another client enqueues a key again. A seed that failed once stays here by its number.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from enqueue_scenarios import run_enqueue_scenario
from konverge.objects import Key
from konverge.reconcile import Journal, Run
from konverge.reconcile.journal import Reason
from konverge.testing import run_in_virtual_time

ONCE_FAILED = [438]  # a child was created and deleted while no watch was open
SENSITIVE = [105, 100]  # fail when the response to a write with changes of others is taken for the reconcile's own
FEW = [0, *SENSITIVE, *ONCE_FAILED]
LONG = [pytest.mark.faults, pytest.mark.plain_loop]
MANY = [pytest.param(seed, marks=LONG) for seed in range(500, 500 + 3 * int(os.environ.get("KONVERGE_SEEDS", "100")))]


@pytest.mark.parametrize("seed", [*FEW, *MANY])
async def test_every_key_has_seen_the_last_change_of_others(seed: int) -> None:
    scenario = await run_enqueue_scenario(seed)

    assert not scenario.unseen, scenario.unseen[0]


class DroppingJournal(Journal):
    """A journal that drops what it is given, at random."""

    def __init__(self, dice: Random) -> None:
        super().__init__()
        self._dice = dice
        self.dropped = 0

    def add_reason(self, key: Key, reason: Reason, *, since: float | None = None) -> None:
        if not self._drops():
            super().add_reason(key, reason, since=since)

    def begin(self, key: Key, *, attempt: int = 1, reconcile_id: str = "") -> Run:
        run = super().begin(key, attempt=attempt, reconcile_id=reconcile_id)
        if self._drops():
            self.forget(key)
        return run

    def _drops(self) -> bool:
        drops = self._dice.random() < 0.5
        self.dropped += drops
        return drops


@pytest.mark.parametrize("seed", [1, *SENSITIVE, *[pytest.param(seed, marks=LONG) for seed in range(2, 40)]])
def test_a_journal_that_drops_entries_at_random_changes_no_outcome(seed: int) -> None:
    journals: list[DroppingJournal] = []

    def dropping() -> Journal:
        journals.append(DroppingJournal(Random(seed)))
        return journals[-1]

    whole = run_in_virtual_time(run_enqueue_scenario(seed))
    dropped = run_in_virtual_time(run_enqueue_scenario(seed, new_journal=dropping))

    assert dropped.log == whole.log
    assert dropped.unseen == whole.unseen == []
    assert sum(one.dropped for one in journals) > 5


def test_a_seed_of_it_replays_exactly() -> None:
    first, second = [run_in_virtual_time(run_enqueue_scenario(1)) for _ in range(2)]

    assert first.log == second.log
    assert len(first.log.lines) > 30
