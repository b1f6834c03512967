"""Conditions: what is true of an object, since when, and for which generation.

A condition's `last_transition_time` says when its *status* last changed, so it must not move when only the reason or
message does. That one rule is easy to get wrong by hand; `set_condition` keeps it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias, get_args

from konverge.objects.models import Model, field
from konverge.objects.times import now as current_time

__all__ = ["Condition", "ConditionStatus", "find_condition", "is_true", "remove_condition", "set_condition"]

ConditionStatus: TypeAlias = Literal["True", "False", "Unknown"]


class Condition(Model):
    """One thing that is true, false or unknown of an object (metav1.Condition)."""

    type: str
    status: str
    reason: str = field(default_factory=str)  # from a factory: the server wants it written, also when empty
    message: str = field(default_factory=str)
    last_transition_time: datetime | None = None
    observed_generation: int | None = None


def find_condition(conditions: list[Condition], type_: str) -> Condition | None:
    """Give the condition of that type, or None."""
    return next((condition for condition in conditions if condition.type == type_), None)


def is_true(conditions: list[Condition], type_: str) -> bool:
    """Tell whether the condition of that type is there and true."""
    condition = find_condition(conditions, type_)
    return condition is not None and condition.status == "True"


def set_condition(
    conditions: list[Condition],
    type_: str,
    status: bool | ConditionStatus,
    *,
    reason: str,
    message: str = "",
    observed_generation: int | None = None,
    now: datetime | None = None,
) -> bool:
    """Put a condition into the list, in its old place or at the end; tell whether anything changed.

    The transition time moves only when the status does.
    """
    word = str(status) if isinstance(status, bool) else status
    if word not in get_args(ConditionStatus):
        raise ValueError(f"{word!r} is no status of a condition: write True, False or 'Unknown'")
    old = find_condition(conditions, type_)
    stayed = old is not None and old.status == word
    new = Condition(
        type=type_,
        status=word,
        reason=reason,
        message=message,
        last_transition_time=old.last_transition_time if old and stayed else now or current_time(),
        observed_generation=observed_generation,
    )
    if old is None:
        conditions.append(new)
    elif new != old:
        conditions[conditions.index(old)] = new
    return new != old


def remove_condition(conditions: list[Condition], type_: str) -> bool:
    """Take the condition of that type out of the list; tell whether it was there."""
    kept = [condition for condition in conditions if condition.type != type_]
    removed = len(kept) != len(conditions)
    conditions[:] = kept
    return removed
