from __future__ import annotations

from konverge.telemetry import GenerationClock


def test_the_latency_runs_from_the_first_event_to_the_status() -> None:
    clock = GenerationClock()
    clock.seen("a", 1, now=10.0)
    clock.seen("a", 1, now=12.0)
    assert clock.observed("a", 1, now=15.0) == 5.0


def test_a_generation_is_timed_once() -> None:
    clock = GenerationClock()
    clock.seen("a", 1, now=10.0)
    clock.observed("a", 1, now=11.0)
    clock.seen("a", 1, now=20.0)
    assert clock.observed("a", 1, now=21.0) is None


def test_skipped_generations_count_from_the_first() -> None:
    clock = GenerationClock()
    clock.seen("a", 1, now=10.0)
    clock.seen("a", 2, now=20.0)
    assert clock.observed("a", 2, now=25.0) == 15.0


def test_a_status_that_is_behind_leaves_the_newest_to_be_observed() -> None:
    clock = GenerationClock()
    clock.seen("a", 1, now=10.0)
    clock.seen("a", 2, now=20.0)
    assert clock.observed("a", 1, now=21.0) is None
    assert clock.observed("a", 2, now=25.0) == 5.0


def test_an_unseen_generation_has_no_latency() -> None:
    assert GenerationClock().observed("a", 3, now=1.0) is None


def test_the_number_of_keys_is_bounded() -> None:
    clock = GenerationClock(limit=2)
    for number in range(5):
        clock.seen(number, 1, now=0.0)
    assert [clock.observed(number, 1, now=1.0) for number in range(5)] == [None, None, None, 1.0, 1.0]


def test_a_new_object_of_the_same_name_starts_anew() -> None:
    clock = GenerationClock()
    clock.seen("a", 5, now=0.0)
    clock.observed("a", 5, now=1.0)
    clock.forget("a")
    clock.seen("a", 1, now=10.0)
    assert clock.observed("a", 1, now=12.0) == 2.0
