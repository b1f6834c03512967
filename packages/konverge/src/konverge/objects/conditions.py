"""Status conditions: whether something is true of an object, since when, and for which generation.

`last_transition_time` of a condition is when its *status* last changed. It must not change with the reason or the
message alone; `set_condition` ensures that.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol, TypeAlias, get_args

from konverge.objects.metadata import ObjectMeta
from konverge.objects.models import Model, field
from konverge.objects.times import now as current_time

__all__ = [
    "Condition",
    "ConditionStatus",
    "HasConditions",
    "find_condition",
    "is_true",
    "remove_condition",
    "set_condition",
]

ConditionStatus: TypeAlias = Literal["True", "False", "Unknown"]


class Condition(Model):
    """A condition of an object: true, false or unknown (metav1.Condition)."""

    type: str
    status: str
    reason: str = field(default_factory=str)  # a factory, since the server requires the field even if it is empty
    message: str = field(default_factory=str)
    last_transition_time: datetime | None = None
    observed_generation: int | None = None


class _StatusWithConditions(Protocol):
    @property
    def conditions(self) -> Sequence[Condition] | None: ...


class HasConditions(Protocol):
    """An object with conditions in its status."""

    @property
    def metadata(self) -> ObjectMeta: ...
    @property
    def status(self) -> _StatusWithConditions: ...


def find_condition(conditions: list[Condition], type_: str) -> Condition | None:
    """Return the condition of that type, or None."""
    return next((condition for condition in conditions if condition.type == type_), None)


def is_true(conditions: list[Condition], type_: str) -> bool:
    """Report whether the condition of that type exists and is true."""
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
    """Add or replace a condition in the list; return whether anything changed.

    The transition time changes only with the status.
    """
    value = str(status) if isinstance(status, bool) else status
    if value not in get_args(ConditionStatus):
        raise ValueError(f"{value!r} is not a condition status (write True, False or 'Unknown')")
    old = find_condition(conditions, type_)
    unchanged = old is not None and old.status == value
    new = Condition(
        type=type_,
        status=value,
        reason=reason,
        message=message,
        last_transition_time=old.last_transition_time if old and unchanged else now or current_time(),
        observed_generation=observed_generation,
    )
    if old is None:
        conditions.append(new)
    elif new != old:
        conditions[conditions.index(old)] = new
    return new != old


def remove_condition(conditions: list[Condition], type_: str) -> bool:
    """Remove the condition of that type from the list; return whether it existed."""
    others = [condition for condition in conditions if condition.type != type_]
    removed = len(others) != len(conditions)
    conditions[:] = others
    return removed
