"""Conditions for `Client.wait_for`.

A condition is a function of an object, or of None when the object does not exist. It returns whether the wait is over.
Any such function will do; those in this module also have a description for the message of a timeout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from konverge.objects import AnyObject, Resource, to_wire

__all__ = [
    "ConditionFunc",
    "WaitCondition",
    "exists",
    "field_equals",
    "has_condition",
    "is_deleted",
    "is_deployment_complete",
]

ConditionFunc: TypeAlias = Callable[[AnyObject | None], bool]


class WaitCondition(Struct, frozen=True):
    """A condition with its description, such as "is deleted"."""

    description: str
    condition: ConditionFunc

    def __call__(self, obj: AnyObject | None) -> bool:
        return self.condition(obj)

    def __str__(self) -> str:
        return self.description


def exists() -> WaitCondition:
    """Wait until the object exists."""
    return WaitCondition("exists", lambda obj: obj is not None)


def is_deleted() -> WaitCondition:
    """Wait until the object does not exist, which is after its last finalizer is removed."""
    return WaitCondition("is deleted", lambda obj: obj is None)


def has_condition(type_: str, status: str = "True") -> WaitCondition:
    """Wait for a status condition of the current generation: `has_condition("Available")`."""

    def holds(obj: AnyObject | None) -> bool:
        document = _document(obj)
        generation = _at(document, ("metadata", "generation"))
        for condition in _at(document, ("status", "conditions")) or ():
            if condition.get("type") == type_ and condition.get("status") == status:
                return bool(condition.get("observedGeneration", generation) == generation)
        return False

    return WaitCondition(f"has condition {type_}={status}", holds)


def field_equals(path: str, value: Any) -> WaitCondition:
    """Wait until the field at a wire path has this value: `field_equals(".status.phase", "Running")`."""
    names = tuple(path.lstrip(".").split("."))
    return WaitCondition(f"has {path} = {value!r}", lambda obj: _at(_document(obj), names) == value)


def is_deployment_complete() -> WaitCondition:
    """Wait until all replicas of a Deployment run its current template and are available (`kubectl rollout status`)."""

    def holds(obj: AnyObject | None) -> bool:
        document = _document(obj)
        spec, status = document.get("spec") or {}, document.get("status") or {}
        desired = spec.get("replicas", 1)
        counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
        observed = status.get("observedGeneration", 0) >= (_at(document, ("metadata", "generation")) or 1)
        return observed and counts == [desired] * 3

    return WaitCondition("is rolled out", holds)


def _document(obj: AnyObject | None) -> dict[str, Any]:
    if obj is None:
        return {}
    return to_wire(obj) if isinstance(obj, Resource) else obj


def _at(document: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document
