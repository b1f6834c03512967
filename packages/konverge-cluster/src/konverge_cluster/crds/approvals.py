"""Protected groups of the Kubernetes community: a definition in one needs an approval annotation."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from konverge_cluster.api.strategy import Document

__all__ = ["APPROVED", "approval_condition", "approval_state", "is_protected"]

APPROVED: Final = "api-approved.kubernetes.io"
_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"
_CONDITIONS: Final = {
    "missing": ("False", "MissingAnnotation"),
    "invalid": ("False", "InvalidAnnotation"),
    "approved": ("True", "ApprovedAnnotation"),
    "bypassed": ("False", "UnapprovedAnnotation"),
}


def approval_state(document: Document) -> tuple[str, str]:
    """Return the state of the approval that protected groups need, and the text that explains it."""
    annotation = (document["metadata"].get("annotations") or {}).get(APPROVED, "")
    needed = f'protected groups must have approval annotation "{APPROVED}"'
    if not annotation:
        return "missing", f"{needed}, {_SEE}"
    if annotation.startswith("unapproved"):
        return "bypassed", f'not approved: "{annotation}"'
    parts = urlsplit(annotation)
    if parts.scheme and parts.netloc:
        return "approved", f"approved in {annotation}"
    return "invalid", f'{needed} with either a URL or a reason starting with "unapproved", {_SEE}'


def is_protected(group: str) -> bool:
    """Report whether a group belongs to the Kubernetes community."""
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def approval_condition(document: Document) -> tuple[str, str, str] | None:
    """Return status, reason and message of the approval condition; None for other groups."""
    if not is_protected(document["spec"]["group"]):
        return None
    state, text = approval_state(document)
    return (*_CONDITIONS[state], text)
