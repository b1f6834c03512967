"""Killed at each single write and started again, the operator comes to the same end, by as many creates and deletes."""

from __future__ import annotations

from konverge.testing import run_in_virtual_time
from webapp_scenarios import run_scenario


def test_killed_at_any_write_it_ends_the_same_with_the_same_creates_and_deletes() -> None:
    whole, counts, expected = run_in_virtual_time(run_scenario(0, after=True), debug=False)
    assert counts == {
        "create deployments": 2,
        "create services": 1,
        "create ingresses": 1,
        "create horizontalpodautoscalers": 1,
        "delete deployments": 1,
        "delete services": 1,
        "delete ingresses": 1,
        "delete horizontalpodautoscalers": 1,
    }
    assert expected["gone"] == []
    assert whole.writes > 25
    # Before a write is after the one before it; so only the first is tried both ways.
    for at, after in [(1, False), *((at, True) for at in range(1, whole.writes + 1))]:
        crashing, made, seen = run_in_virtual_time(run_scenario(at, after=after), debug=False)
        assert crashing.killed.is_set(), f"there is no write {at}"
        assert made == counts, f"killed at write {at}"
        assert seen == expected, f"killed at write {at}"
