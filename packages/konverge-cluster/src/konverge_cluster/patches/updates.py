"""Field ownership after a create, an update, or a patch that is not an apply.

The steps, in the order of the real server:

1. Start with the managedFields in the request, so that clients can edit them; `[]` and `[{}]` reset them. A request
   without managedFields or with invalid ones, and every write to a subresource, starts with the live ones.
2. An existing object without managedFields is not tracked until the next apply. A new object is tracked.
3. Every manager, including the writer's own previous entry, loses the fields that this write changed or removed; the
   writer owns the changed fields. Fields that the endpoint resets, and those that no manager owns (names, versions,
   times), are excluded.
4. The time of the writer's entry is updated only when this write adds fields to it.
5. At most ten Update entries are kept.
6. If ownership cannot be computed (a value does not match the schema), the object loses its managedFields.
"""

from __future__ import annotations

from typing import Any

from konverge_cluster.patches.comparison import same
from konverge_cluster.patches.elements import PathElementError
from konverge_cluster.patches.endpoints import Endpoint, without_managed_fields
from konverge_cluster.patches.field_sets import union
from konverge_cluster.patches.managers import (
    Managers,
    Owned,
    build_identity,
    cap_updaters,
    read_managers,
    write_managers,
)
from konverge_cluster.patches.ownership import Change, reconcile_with_schema, strip
from konverge_cluster.patches.validation import ValidationError, validate

__all__ = ["keep_times", "track_update"]


def track_update(
    old: dict[str, Any] | None, new: dict[str, Any], *, manager: str, endpoint: Endpoint, now: str
) -> list[dict[str, Any]]:
    """Return the managedFields of `new` when `manager` writes it over `old` (None for a create).

    `now` is the time of the write (``2026-01-31T12:00:00Z``). An empty list means that the key is omitted.
    """
    managers = _initial_managers(old, new, endpoint)
    if not managers and old is not None:
        return []
    try:
        return write_managers(managers_after_update(old, new, managers, manager=manager, endpoint=endpoint, now=now))
    except (ValidationError, PathElementError):
        return []


def managers_after_update(
    old: dict[str, Any] | None,
    new: dict[str, Any],
    managers: Managers,
    *,
    manager: str,
    endpoint: Endpoint,
    now: str,
) -> Managers:
    """Return what each manager owns after an Update.

    Raises: ValidationError or PathElementError when a value does not match the schema.
    """
    after = without_managed_fields(new)
    before = _before_creation(endpoint, after) if old is None else without_managed_fields(old)
    root = endpoint.topology.root
    validate(root, after, allow_duplicates=True)
    if old is not None and not endpoint.topology.structured:
        validate(root, before, allow_duplicates=True)
    change = Change(endpoint, before, after)
    managers = change.managers_after(reconcile_with_schema(endpoint, managers, before))
    changed = strip(change.at(endpoint.api_version)[0])
    if changed:
        identity = build_identity(manager, "Update", endpoint.api_version, endpoint.subresource)
        previous = managers.get(identity)
        owned = union(changed, previous.fields) if previous is not None else changed
        managers[identity] = Owned(owned, endpoint.api_version, now)
    return cap_updaters(managers)


def _before_creation(endpoint: Endpoint, new: dict[str, Any]) -> dict[str, Any]:
    """Return the object before its first write: a null of a Go struct is what a new struct has, so nobody owns it."""
    if not endpoint.topology.structured:
        return endpoint.topology.zero
    return {name: None for name, value in new.items() if value is None} | endpoint.topology.zero


def keep_times(old: dict[str, Any], new: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the managedFields to store for `new`: with the times of `old` if nothing else differs.

    A write that changes nothing must not change the object, and a newer time would change it. Call this with the object
    to store, after admission.
    """
    before, after = _entries(old) or [], _entries(new) or []
    if len(before) != len(after) or before == after:
        return after
    if [_without_time(entry) for entry in before] != [_without_time(entry) for entry in after]:
        return after
    return before if same(without_managed_fields(old), without_managed_fields(new)) else after


def _without_time(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "time"}


def _initial_managers(old: dict[str, Any] | None, new: dict[str, Any], endpoint: Endpoint) -> Managers:
    live = (_entries(old) if old is not None else None) or []
    requested = None if endpoint.subresource else _entries(new)
    if requested is not None and _is_reset(requested):
        return {}
    if requested is not None:
        try:
            managers = read_managers(requested, trusted=live)
        except PathElementError:
            managers = {}
        if managers:
            return managers
    return _read_or_empty(live)


def _read_or_empty(entries: list[Any]) -> Managers:
    """Read stored managedFields; return an empty dict for invalid ones."""
    try:
        return read_managers(entries, trusted=entries)
    except PathElementError:
        return {}


def _is_reset(entries: list[Any]) -> bool:
    return not entries or (len(entries) == 1 and isinstance(entries[0], dict) and not any(entries[0].values()))


def _entries(obj: dict[str, Any]) -> list[Any] | None:
    metadata = obj.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    return entries if isinstance(entries, list) else None
