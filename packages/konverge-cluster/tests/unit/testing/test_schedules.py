"""Schedules as data: text, coverage of every write, shrinking."""

from __future__ import annotations

import pytest

from konverge_cluster.testing.simulation.schedules import (
    Bounds,
    Entry,
    Schedule,
    generate_schedules,
    parse_schedule,
    show_schedule,
    shrink,
)

BOUNDS = Bounds(writes=17, reads=9, rests=3, deletes=(5, 9))


def test_a_schedule_is_one_line_of_text() -> None:
    for schedule in generate_schedules(20, BOUNDS):
        assert parse_schedule(show_schedule(schedule)) == schedule


@pytest.mark.parametrize("text", ["crash:1", "crash-after", "crash-after:x"])
def test_a_wrong_word_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=repr(text)):
        parse_schedule(f"conflict:1 {text}")


@pytest.mark.parametrize("seeds", [1, 2, 7, 50])
def test_a_crash_before_and_after_every_write_whatever_the_number_of_seeds(seeds: int) -> None:
    restarts, replaced, *seeded = generate_schedules(seeds, BOUNDS)
    assert len(seeded) == seeds
    found = {entry for schedule in seeded[::2] for entry in schedule}
    assert found >= {Entry(fault, at) for at in range(1, 18) for fault in ("crash-before", "crash-after")}
    assert [entry.at for entry in restarts] == [1, 2, 3]
    assert {5, 9} <= {entry.at for entry in replaced}


def test_every_seed_has_faults() -> None:
    assert all(generate_schedules(1000, BOUNDS))


def test_each_write_is_the_last_one_of_a_process_in_one_run() -> None:
    _, _, *single = generate_schedules(0, BOUNDS, each_write=True)
    assert single == [(Entry("crash-before", 1),), *((Entry("crash-after", at),) for at in range(1, 18))]


def test_the_number_of_faults_is_limited() -> None:
    few = [len(one) for one in generate_schedules(40, BOUNDS, faults=10)[3::2]]
    many = [len(one) for one in generate_schedules(40, BOUNDS, faults=60)[3::2]]
    assert max(few) <= 10
    assert 20 < max(many) <= 60


def test_random_schedules_have_only_the_faults_that_are_asked_for() -> None:
    _, _, *seeded = generate_schedules(40, BOUNDS, faults=60, only=("conflict", "restart"))
    assert {entry.fault for schedule in seeded[1::2] for entry in schedule} == {"conflict", "restart"}


def test_shrinking_finds_the_one_entry_that_fails() -> None:
    schedule = parse_schedule("busy:1 conflict:2 crash-after:3 error:4")
    assert shrink(schedule, lambda tried: Entry("crash-after", 3) in tried) == (Entry("crash-after", 3),)


def test_shrinking_finds_two_entries_that_fail_together() -> None:
    schedule = parse_schedule("busy:1 conflict:2 crash-after:3 error:4 restart:1")
    needed = {Entry("busy", 1), Entry("error", 4)}
    assert set(shrink(schedule, lambda tried: needed <= set(tried))) == needed


def test_shrinking_stops_after_a_number_of_runs() -> None:
    schedule: Schedule = tuple(Entry("busy", at) for at in range(1, 60))
    tried: list[Schedule] = []

    def fails(shorter: Schedule) -> bool:
        tried.append(shorter)
        return False

    assert shrink(schedule, fails, runs=10) == schedule
    assert len(tried) == 10
