"""The conditions of a definition, and its finalizer."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["CLEANUP", "set_condition"]

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a definition until its instances are gone."""


def set_condition(document: dict[str, Any], kind: str, status: str, reason: str, message: str, *, now: str) -> None:
    """Set a condition; the transition time is kept while its status stays the same.

    The status of the document is replaced, not modified: others may still read the old one.
    """
    before = document.get("status") or {}
    conditions = [dict(each) for each in before.get("conditions") or ()]
    found = next((each for each in conditions if each["type"] == kind), None)
    if found is None:
        found = {"type": kind, "status": "", "lastTransitionTime": now}
        conditions.append(found)
    if found["status"] != status:
        found["lastTransitionTime"] = now
    found.update(status=status, reason=reason, message=message)
    document["status"] = {**before, "conditions": conditions}
