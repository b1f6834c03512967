"""Ready-made things to wait for.

A claim looks at an object, or None when it is not there, and tells whether what is waited for has come true. Any
function of that shape will do; these say themselves in words, for the message when time runs out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from konverge.objects import AnyObject, Resource, to_wire

__all__ = ["Claim", "Look", "condition", "deleted", "exists", "field_is", "rolled_out"]

Look: TypeAlias = Callable[[AnyObject | None], bool]


@dataclass(frozen=True)
class Claim:
    """A claim about an object, in words and as a function."""

    words: str
    look: Look

    def __call__(self, obj: AnyObject | None) -> bool:
        return self.look(obj)

    def __str__(self) -> str:
        return self.words


def exists() -> Claim:
    """Wait until the object is there."""
    return Claim("exists", lambda obj: obj is not None)


def deleted() -> Claim:
    """Wait until the object is gone, its finalizers done."""
    return Claim("is deleted", lambda obj: obj is None)


def condition(type_: str, status: str = "True") -> Claim:
    """Wait for a condition of the object's current generation: `condition("Available")`, `condition("Established")`."""

    def look(obj: AnyObject | None) -> bool:
        document = _document(obj)
        generation = _at(document, ("metadata", "generation"))
        for one in _at(document, ("status", "conditions")) or ():
            if one.get("type") == type_ and one.get("status") == status:
                return bool(one.get("observedGeneration", generation) == generation)
        return False

    return Claim(f"has condition {type_}={status}", look)


def field_is(path: str, value: Any) -> Claim:
    """Wait until the field at a wire path has a value: `field_is(".status.phase", "Running")`."""
    names = tuple(path.lstrip(".").split("."))
    return Claim(f"has {path} = {value!r}", lambda obj: _at(_document(obj), names) == value)


def rolled_out() -> Claim:
    """Wait until a Deployment runs its current template with all replicas available, as `kubectl rollout status`."""

    def look(obj: AnyObject | None) -> bool:
        document = _document(obj)
        spec, status = document.get("spec") or {}, document.get("status") or {}
        wanted = spec.get("replicas", 1)
        counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
        observed = status.get("observedGeneration", 0) >= (_at(document, ("metadata", "generation")) or 1)
        return observed and counts == [wanted] * 3

    return Claim("is rolled out", look)


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
