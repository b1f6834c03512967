"""Permissions: what a controller must be allowed to do. RBAC rules are made of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from konverge.objects import Kind

__all__ = ["EVENTS", "LEASES", "Permission", "permissions_on", "rules_of"]

_WATCH = ("list", "watch")


@dataclass(frozen=True, slots=True, order=True)
class Permission:
    """One verb on one resource or subresource."""

    group: str
    resource: str
    subresource: str
    verb: str

    def __str__(self) -> str:
        part = f"/{self.subresource}" if self.subresource else ""
        group = f".{self.group}" if self.group else ""
        return f"{self.verb} on {self.resource}{group}{part}"


EVENTS = tuple(Permission("events.k8s.io", "events", "", verb) for verb in ("create", "patch"))
"""The permissions of the event recorder."""

LEASES = tuple(Permission("coordination.k8s.io", "leases", "", verb) for verb in ("create", "get", "update"))
"""The permissions of leader election."""


def permissions_on(kind: Kind, verbs: Iterable[str] = _WATCH, subresource: str = "") -> list[Permission]:
    """Return the permissions for some verbs on a kind."""
    return [Permission(kind.group, kind.plural, subresource, verb) for verb in verbs]


def rules_of(permissions: Iterable[Permission]) -> list[dict[str, Any]]:
    """Return RBAC policy rules that allow exactly these: one for each group and set of verbs, in a stable order."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for one in sorted(set(permissions)):
        resource = f"{one.resource}/{one.subresource}" if one.subresource else one.resource
        verbs.setdefault((one.group, resource), []).append(one.verb)
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), allowed in verbs.items():
        grouped.setdefault((group, tuple(allowed)), []).append(resource)
    return [
        {"apiGroups": [group], "resources": resources, "verbs": list(allowed)}
        for (group, allowed), resources in grouped.items()
    ]
