"""The checkers of the tests of databases find what they are for: planted losses and planted second writers."""

from __future__ import annotations

import pytest

from database_load import Load, Login, Probe, Prober, Write, is_acknowledged


def load_of(*acknowledged: tuple[int, int], unknown: tuple[tuple[int, int], ...] = ()) -> Load:
    """Return a load whose clients have written these rows; of the unknown ones no client knows the end."""
    load = Load("", Login())
    load.acknowledged = [Write(client, number, number, number + 0.5) for client, number in acknowledged]
    load.attempted = {*acknowledged, *unknown}
    return load


def prober_of(*probes: tuple[str, int, float, float]) -> Prober:
    prober = Prober(Login(), dict)
    prober.probes = [Probe(*one) for one in probes]
    return prober


def test_every_acknowledged_write_that_is_lost_is_found() -> None:
    load = load_of((0, 1), (0, 2), (1, 1), (1, 2))
    assert load.missing_from({(0, 1), (1, 2)}) == [(0, 2), (1, 1)]
    assert load.missing_from(set()) == [(0, 1), (0, 2), (1, 1), (1, 2)]


def test_a_write_whose_end_is_unknown_may_be_there_or_not() -> None:
    load = load_of((0, 1), unknown=((0, 2),))
    assert load.missing_from({(0, 1)}) == []
    assert load.missing_from({(0, 1), (0, 2)}) == []


def test_a_row_that_nobody_wrote_is_found() -> None:
    with pytest.raises(AssertionError, match="nobody wrote"):
        load_of((0, 1)).missing_from({(0, 1), (7, 7)})


def test_a_commit_that_did_not_wait_for_a_replica_is_not_acknowledged() -> None:
    assert is_acknowledged([])
    assert is_acknowledged(["there is already a transaction in progress"])
    assert not is_acknowledged(["canceling wait for synchronous replication due to user request"])
    assert not is_acknowledged(["canceling the wait for synchronous replication and terminating connection"])


def test_a_gap_is_measured_from_acknowledgement_to_acknowledgement() -> None:
    load = load_of((0, 1), (0, 2), (0, 9))
    assert load.longest_gap(0, 10) == 7.0
    assert load.longest_gap(3, 9) == 6.0


def test_two_writers_of_one_timeline_are_found() -> None:
    assert prober_of(("a", 1, 0.0, 0.1), ("b", 1, 0.2, 0.3)).violations() == ["timeline 1 has writes of ['a', 'b']"]


def test_a_writer_that_goes_on_after_its_successor_has_written_is_found() -> None:
    found = prober_of(("a", 1, 0.0, 0.1), ("b", 2, 0.2, 0.3), ("a", 1, 0.4, 0.5)).violations()
    assert found == ["a wrote on timeline 1 after timeline 2 had a write"]


def test_a_writer_two_timelines_behind_is_found() -> None:
    found = prober_of(("b", 3, 0.0, 0.1), ("a", 1, 0.2, 0.3)).violations()
    assert found == ["a wrote on timeline 1 after timeline 3 had a write"]


def test_one_writer_after_the_other_is_fine() -> None:
    probes = [("a", 1, 0.0, 0.1), ("a", 1, 0.2, 0.3), ("b", 2, 0.4, 0.5), ("a", 3, 0.6, 0.7), ("a", 3, 0.8, 0.9)]
    assert prober_of(*probes).violations() == []


def test_a_write_that_began_before_its_successor_wrote_may_end_later() -> None:
    """Such a write may have been committed before: only its answer was late."""
    assert prober_of(("a", 1, 0.0, 9.0), ("b", 2, 0.2, 0.3)).violations() == []
