"""The kinds that a server serves, from its aggregated discovery: plurals, scopes, and the kinds of subresources.

The input is the JSON of `/api` and `/apis` as `APIGroupDiscoveryList`. Only stable versions (v1, v2, ...) are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from konverge.objects.kinds import Kind, Scope

__all__ = ["Served", "is_stable", "served_kinds"]

_STABLE = re.compile(r"v\d+")


@dataclass(frozen=True)
class Served:
    """A kind, and the subresources that accept it if it has no collection (`pods/eviction`)."""

    kind: Kind
    subresources: tuple[str, ...] = ()


def is_stable(version: str) -> bool:
    return _STABLE.fullmatch(version) is not None


def served_kinds(*discoveries: Any) -> dict[tuple[str, str, str], Served]:
    """Return the served kinds by (group, version, kind)."""
    found = {_identity(kind): Served(kind) for kind in _collections(discoveries)}
    uses: dict[tuple[str, str, str], list[str]] = {}
    for identity, path in _subresources(discoveries):
        if identity not in found:
            uses.setdefault(identity, []).append(path)
    for identity, paths in uses.items():
        group, version, kind = identity
        # A kind without a collection has no plural, so use the one that it would have.
        found[identity] = Served(Kind(group, version, kind, f"{kind.lower()}s"), tuple(sorted(set(paths))))
    return found


def _collections(discoveries: Iterable[Any]) -> Iterator[Kind]:
    for group, version, resource in _resources(discoveries):
        where = _response(group, version, resource)
        if where is not None:
            yield Kind(*where, resource["resource"], Scope(_scope(resource)))


def _subresources(discoveries: Iterable[Any]) -> Iterator[tuple[tuple[str, str, str], str]]:
    for group, version, resource in _resources(discoveries):
        for each in resource.get("subresources", ()):
            where = _response(group, version, each)
            if where is not None and is_stable(where[1]):
                yield where, f"{resource['resource']}/{each['subresource']}"


def _resources(discoveries: Iterable[Any]) -> Iterator[tuple[str, str, Any]]:
    for group, version in _group_versions(discoveries):
        if is_stable(version["version"]):
            for resource in version.get("resources", ()):
                yield group, version["version"], resource


def _group_versions(discoveries: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for discovery in discoveries:
        for group in discovery["items"]:
            for version in group["versions"]:
                yield group["metadata"].get("name", ""), version


def _response(group: str, version: str, resource: Any) -> tuple[str, str, str] | None:
    """Return the kind of the responses of a resource; empty group and version mean those of the resource."""
    kind = resource.get("responseKind")
    if not kind or not kind.get("kind"):
        return None
    if not kind.get("version"):
        return group, version, kind["kind"]
    return kind.get("group", ""), kind["version"], kind["kind"]


def _scope(resource: Any) -> str:
    return str(resource.get("scope") or "Namespaced")


def _identity(kind: Kind) -> tuple[str, str, str]:
    return kind.group, kind.version, kind.kind
