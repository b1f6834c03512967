"""Ownership through the `scale` subresource: one field, in two documents.

A Scale shows whoever owns the replicas of the object behind it as owner of `.spec.replicas`. After a write to the Scale
its entries go back: an owner that the Scale lost loses the replicas of the object, one that it gained owns them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge_cluster.patches.field_sets import FieldSet, difference, intersection, make_set
from konverge_cluster.patches.managers import Managers, Owned, read_managers, write_managers

__all__ = ["SCALE_VERSION", "entries_of_object", "entries_of_scale"]

SCALE_VERSION = "autoscaling/v1"
_REPLICAS = make_set("spec.replicas")


def entries_of_scale(entries: list[Any], replicas: Mapping[str, str | None]) -> list[dict[str, Any]]:
    """Give the managedFields that a Scale shows.

    `replicas` tells, by version of the object, where its replicas are (".spec.replicas" is "spec.replicas" here); None
    for a version without the subresource.
    """
    shown: Managers = {}
    for identity, owned in read_managers(entries, trusted=entries).items():
        if _has(owned, replicas):
            shown[identity] = Owned(_REPLICAS, SCALE_VERSION, owned.time)
    return write_managers(shown)


def entries_of_object(
    entries: list[Any], scale_entries: list[Any], *, api_version: str, replicas: Mapping[str, str | None]
) -> list[dict[str, Any]]:
    """Give the managedFields of the object after a write to its Scale in `api_version`."""
    kept: Managers = {}
    before = read_managers(entries, trusted=entries)
    gained = read_managers(scale_entries)
    for identity, owned in before.items():
        if owned.version not in replicas:
            continue
        if not _has(owned, replicas):
            kept[identity] = owned
        elif identity in gained:
            kept[identity] = owned
            del gained[identity]
        elif rest := difference(owned.fields, _path(replicas[owned.version])):
            kept[identity] = owned.with_fields(rest)
    for identity, owned in gained.items():
        if intersection(owned.fields, _REPLICAS):
            time = before[identity].time if identity in before else None
            kept[identity] = Owned(_path(replicas[api_version]), api_version, time)
    return write_managers(kept)


def _has(owned: Owned, replicas: Mapping[str, str | None]) -> bool:
    return bool(intersection(owned.fields, _path(replicas.get(owned.version))))


def _path(dotted: str | None) -> FieldSet:
    return make_set(dotted) if dotted else {}
