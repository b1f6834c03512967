"""An operator that is killed at any write and restarted reaches the same result with the same creates and deletes."""

from __future__ import annotations

from konverge.testing import run_in_virtual_time
from webapp_scenarios import run_scenario


def test_an_operator_killed_at_any_write_reaches_the_same_result() -> None:
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
    # A crash before a write equals a crash after the previous one, so only the first write is tried both ways.
    for at, after in [(1, False), *((at, True) for at in range(1, whole.writes + 1))]:
        crashing, found, snapshots = run_in_virtual_time(run_scenario(at, after=after), debug=False)
        assert crashing.killed.is_set(), f"there is no write {at}"
        assert found == counts, f"killed at write {at}"
        assert snapshots == expected, f"killed at write {at}"
