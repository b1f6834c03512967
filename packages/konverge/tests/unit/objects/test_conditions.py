from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from konverge.objects.codec import encode
from konverge.objects.conditions import Condition, find_condition, is_true, remove_condition, set_condition

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 1, 13, tzinfo=UTC)


def test_the_transition_time_moves_only_when_the_status_does() -> None:
    conditions: list[Condition] = []
    assert set_condition(conditions, "Ready", False, reason="Starting", now=NOON)
    assert set_condition(conditions, "Ready", False, reason="Waiting", message="for pods", now=LATER)
    assert conditions[0].last_transition_time == NOON
    assert set_condition(conditions, "Ready", True, reason="Up", observed_generation=2, now=LATER)
    assert conditions[0].last_transition_time == LATER


def test_setting_the_same_again_changes_nothing() -> None:
    conditions: list[Condition] = []
    set_condition(conditions, "Ready", True, reason="Up", now=NOON)
    assert not set_condition(conditions, "Ready", True, reason="Up", now=LATER)
    assert conditions == [Condition(type="Ready", status="True", reason="Up", last_transition_time=NOON)]


def test_conditions_keep_their_order() -> None:
    conditions: list[Condition] = []
    for name in ("A", "B", "C"):
        set_condition(conditions, name, "Unknown", reason="New", now=NOON)
    set_condition(conditions, "B", True, reason="Done", now=NOON)
    assert [c.type for c in conditions] == ["A", "B", "C"]
    assert is_true(conditions, "B")
    assert not is_true(conditions, "A")
    assert not is_true(conditions, "Z")


def test_a_condition_can_be_removed_once() -> None:
    conditions = [Condition(type="A", status="True"), Condition(type="B", status="True")]
    assert remove_condition(conditions, "A")
    assert not remove_condition(conditions, "A")
    assert find_condition(conditions, "A") is None
    assert find_condition(conditions, "B") is not None


def test_an_empty_message_is_encoded_since_the_server_requires_it() -> None:
    assert encode(Condition(type="A", status="True", reason="R")) == (
        b'{"type":"A","status":"True","reason":"R","message":""}'
    )


@pytest.mark.parametrize("status", ["true", "", "maybe", None, 1])
def test_a_status_that_is_none_is_refused_and_changes_nothing(status: Any) -> None:
    conditions: list[Condition] = []
    with pytest.raises(ValueError, match="is not a condition status"):
        set_condition(conditions, "Ready", status, reason="Up")
    assert conditions == []
