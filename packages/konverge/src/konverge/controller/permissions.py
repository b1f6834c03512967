"""Permissions: what a controller must be allowed to do. RBAC rules are made of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from konverge.objects import Kind

__all__ = ["EVENTS", "LEASES", "Permission", "check_names", "permissions_on", "rules_of"]

_WATCH = ("list", "watch")


class Permission(Struct, frozen=True, order=True):
    """One verb on one resource or subresource, of all objects or of the one with a name."""

    group: str
    resource: str
    subresource: str
    verb: str
    name: str = ""

    def __str__(self) -> str:
        part = f"/{self.subresource}" if self.subresource else ""
        group = f".{self.group}" if self.group else ""
        name = f" {self.name}" if self.name else ""
        return f"{self.verb} on {self.resource}{group}{part}{name}"


EVENTS = tuple(Permission("events.k8s.io", "events", "", verb) for verb in ("create", "patch"))
"""The permissions of the event recorder."""

LEASES = tuple(Permission("coordination.k8s.io", "leases", "", verb) for verb in ("create", "get", "update"))
"""The permissions of leader election."""


def permissions_on(
    kind: Kind, verbs: Iterable[str] = _WATCH, subresource: str = "", names: Iterable[str] = ("",)
) -> list[Permission]:
    """Return the permissions for some verbs on a kind, or on its objects with these names."""
    return [Permission(kind.group, kind.plural, subresource, verb, name) for verb in verbs for name in names]


def check_names(kind: Kind, verbs: Iterable[str], subresource: str, names: tuple[str, ...]) -> None:
    """Check that RBAC can limit these verbs to these names.

    Raises: ValueError when it cannot, TypeError for anything but a tuple of names.
    """
    if not isinstance(names, tuple) or not all(isinstance(name, str) and name for name in names):
        raise TypeError("names is a tuple of names: write names=('one', 'two'), and names=('one',) for a single one")
    for verb in verbs if names else ():
        if verb == "deletecollection" or (verb == "create" and not subresource):
            raise ValueError(
                f"RBAC cannot limit {verb} to names, since the request has none:"
                f" write .needs({kind.kind}, {verb!r}) without names"
            )
        if verb in _WATCH and len(names) > 1:
            raise ValueError(f"{verb} is allowed by one name only: a field selector holds one, got {names}")


def rules_of(permissions: Iterable[Permission]) -> list[dict[str, Any]]:
    """Return RBAC policy rules that allow exactly these, in a stable order.

    There is one for each group and set of verbs. Permissions with names have rules of their own, after the others: one
    for each resource and set of verbs.
    """
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for one in sorted(set(permissions)):
        resource = f"{one.resource}/{one.subresource}" if one.subresource else one.resource
        verbs.setdefault((one.group, resource, one.name), []).append(one.verb)
    resources: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    names: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (group, resource, name), allowed in sorted(verbs.items()):
        if name:
            names.setdefault((group, resource, tuple(allowed)), []).append(name)
        else:
            resources.setdefault((group, tuple(allowed)), []).append(resource)
    return [_rule(group, found, allowed) for (group, allowed), found in resources.items()] + [
        {**_rule(group, [resource], allowed), "resourceNames": found}
        for (group, resource, allowed), found in names.items()
    ]


def _rule(group: str, resources: list[str], verbs: Iterable[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}
