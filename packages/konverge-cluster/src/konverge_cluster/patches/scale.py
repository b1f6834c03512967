"""Field ownership through the `scale` subresource: one field, in two documents.

In a Scale the managers of the object's replicas own `.spec.replicas`. After a write to the Scale its entries are
translated back: a manager that lost the field in the Scale loses the replicas of the object, and a new one owns them.
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
    """Return the managedFields of a Scale.

    `replicas` is the path of the replicas by version of the object (".spec.replicas" is "spec.replicas" here); None for
    a version without the subresource.
    """
    managers: Managers = {}
    for identity, owned in read_managers(entries, trusted=entries).items():
        if _has(owned, replicas):
            managers[identity] = Owned(_REPLICAS, SCALE_VERSION, owned.time)
    return write_managers(managers)


def entries_of_object(
    entries: list[Any], scale_entries: list[Any], *, api_version: str, replicas: Mapping[str, str | None]
) -> list[dict[str, Any]]:
    """Return the managedFields of the object after a write to its Scale in `api_version`."""
    managers: Managers = {}
    before = read_managers(entries, trusted=entries)
    gained = read_managers(scale_entries)
    for identity, owned in before.items():
        if owned.version not in replicas:
            continue
        if not _has(owned, replicas):
            managers[identity] = owned
        elif identity in gained:
            managers[identity] = owned
            del gained[identity]
        elif rest := difference(owned.fields, _path(replicas[owned.version])):
            managers[identity] = owned.with_fields(rest)
    for identity, owned in gained.items():
        if intersection(owned.fields, _REPLICAS):
            time = before[identity].time if identity in before else None
            managers[identity] = Owned(_path(replicas[api_version]), api_version, time)
    return write_managers(managers)


def _has(owned: Owned, replicas: Mapping[str, str | None]) -> bool:
    return bool(intersection(owned.fields, _path(replicas.get(owned.version))))


def _path(dotted: str | None) -> FieldSet:
    return make_set(dotted) if dotted else {}
