"""The conditions of a namespace that is being deleted: five, each about one cause that may hold it up.

Plain functions: from the result of content deletion to conditions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from konverge.k8s.core.v1 import NamespaceCondition

__all__ = ["DeletionResult", "conditions_after"]

_SUCCESS: Final = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@dataclass
class DeletionResult:
    """The result of one pass of content deletion.

    `remaining` counts objects by "plural.group", `finalizers` the objects with a finalizer, by its name. `estimate` is
    how many seconds the rest may take; `pods_only` means that only pods were deleted so far.
    """

    discovery_error: str = ""
    errors: list[str] = field(default_factory=list)
    remaining: Counter[str] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    estimate: float = 0.0
    pods_only: bool = False

    @property
    def all_errors(self) -> list[str]:
        """All errors of this pass."""
        return [*([self.discovery_error] if self.discovery_error else []), *self.errors]

    @property
    def is_empty(self) -> bool:
        """Whether no content remains and no error occurred."""
        return not (self.all_errors or self.remaining or self.estimate)


def conditions_after(
    result: DeletionResult, before: list[NamespaceCondition] | None, now: datetime
) -> list[NamespaceCondition]:
    """Return the conditions after a pass; an unchanged status keeps its transition time, other conditions stay."""
    conditions = {one.type: one for one in before or ()}
    failures = _failures(result)
    for type_, success in _SUCCESS.items():
        status = "True" if type_ in failures else "False"
        reason, message = failures.get(type_, success)
        old = conditions.get(type_)
        since = old.last_transition_time if old is not None and old.status == status else now
        conditions[type_] = NamespaceCondition(
            type=type_, status=status, reason=reason, message=message, last_transition_time=since
        )
    return list(conditions.values())


def _failures(result: DeletionResult) -> dict[str, tuple[str, str]]:
    failures: dict[str, tuple[str, str]] = {}
    if result.discovery_error:
        failures["NamespaceDeletionDiscoveryFailure"] = ("DiscoveryFailed", result.discovery_error)
    if result.errors:
        message = f"Failed to delete all resource types, {len(result.errors)} remaining: "
        failures["NamespaceDeletionContentFailure"] = (
            "ContentDeletionFailed",
            message + ", ".join(sorted(result.errors)),
        )
    if result.pods_only:
        # While pods terminate, the real controller does not count the rest.
        return failures
    if result.remaining:
        counts = (f"{name} has {count} resource instances" for name, count in sorted(result.remaining.items()))
        failures["NamespaceContentRemaining"] = (
            "SomeResourcesRemain",
            f"Some resources are remaining: {', '.join(counts)}",
        )
    if result.finalizers:
        counts = (f"{name} in {count} resource instances" for name, count in sorted(result.finalizers.items()))
        message = f"Some content in the namespace has finalizers remaining: {', '.join(counts)}"
        failures["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
    return failures
