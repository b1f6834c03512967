"""What a namespace that is being deleted says about itself: five conditions, each about one thing that may hold it up.

Plain functions: what was found while emptying it goes in, conditions come out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from konverge.k8s.core.v1 import NamespaceCondition

__all__ = ["Findings", "conditions_after"]

_FINE: Final = {
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
class Findings:
    """What was found while a namespace was emptied.

    `remaining` counts objects by "plural.group", `finalizers` those that have a finalizer, by its name. `estimate` is
    how many seconds what remains may well take; `pods_remain` says that nothing but pods was touched.
    """

    discovery_error: str = ""
    errors: list[str] = field(default_factory=list)
    remaining: Counter[str] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    estimate: float = 0.0
    pods_remain: bool = False

    @property
    def problems(self) -> list[str]:
        """All that went wrong."""
        return [*([self.discovery_error] if self.discovery_error else []), *self.errors]

    @property
    def is_empty(self) -> bool:
        """Whether nothing remains and nothing went wrong."""
        return not (self.problems or self.remaining or self.estimate)


def conditions_after(
    findings: Findings, before: list[NamespaceCondition] | None, now: datetime
) -> list[NamespaceCondition]:
    """Give the conditions after a look; what has not changed keeps its time, what others set stays."""
    kept = {one.type: one for one in before or ()}
    failures = _failures(findings)
    for type_, fine in _FINE.items():
        status = "True" if type_ in failures else "False"
        reason, message = failures.get(type_, fine)
        old = kept.get(type_)
        since = old.last_transition_time if old is not None and old.status == status else now
        kept[type_] = NamespaceCondition(
            type=type_, status=status, reason=reason, message=message, last_transition_time=since
        )
    return list(kept.values())


def _failures(findings: Findings) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    if findings.discovery_error:
        found["NamespaceDeletionDiscoveryFailure"] = ("DiscoveryFailed", findings.discovery_error)
    if findings.errors:
        words = f"Failed to delete all resource types, {len(findings.errors)} remaining: "
        found["NamespaceDeletionContentFailure"] = (
            "ContentDeletionFailed",
            words + ", ".join(sorted(findings.errors)),
        )
    if findings.pods_remain:
        # While pods go, the real controller does not count.
        return found
    if findings.remaining:
        counts = (f"{name} has {count} resource instances" for name, count in sorted(findings.remaining.items()))
        found["NamespaceContentRemaining"] = (
            "SomeResourcesRemain",
            f"Some resources are remaining: {', '.join(counts)}",
        )
    if findings.finalizers:
        counts = (f"{name} in {count} resource instances" for name, count in sorted(findings.finalizers.items()))
        words = f"Some content in the namespace has finalizers remaining: {', '.join(counts)}"
        found["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", words)
    return found
