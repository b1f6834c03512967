"""The managers of an object: who owns which fields, as `metadata.managedFields` tells it.

Rules:

1. An entry is known by manager, operation, version and subresource; for Apply the version does not count, so that a
   manager that applies in a newer version keeps its one entry.
2. Entries stand in the order of operation, time, manager, version, subresource.
3. There are at most ten Update entries. The oldest ones of a version are folded into one named `ancient-changes`.
4. Entries that nothing happened to are given back as they came.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from konverge_cluster.patches.elements import PathElementError
from konverge_cluster.patches.field_sets import FieldSet, ordered, read_set, union
from konverge_cluster.patches.go_text import quote

__all__ = ["Identity", "Managers", "Owned", "cap_updaters", "manager_name", "read_managers", "write_managers"]

MAX_UPDATERS = 10
_LONGEST_NAME = 128
_FIELDS_TYPE = "FieldsV1"


class Identity(NamedTuple):
    """What tells one entry from another; `version` is "" for Apply."""

    manager: str
    operation: str
    version: str
    subresource: str

    @property
    def text(self) -> str:
        """The entry's name as the real server sorts conflicts by it."""
        parts = (("manager", 0), ("operation", 1), ("apiVersion", 2), ("subresource", 3))
        return json.dumps({key: self[place] for key, place in parts if self[place]}, separators=(",", ":"))

    def __str__(self) -> str:
        """Write who this is as conflict messages do."""
        name = quote(self.manager)
        if self.subresource:
            name += f" with subresource {quote(self.subresource)}"
        return f"{name} using {self.version}" if self.operation == "Update" else name


def build_identity(manager: str, operation: str, version: str, subresource: str) -> Identity:
    """Name an entry; nobody in particular is called "unknown"."""
    return Identity(manager or "unknown", operation, "" if operation == "Apply" else version, subresource)


@dataclass(frozen=True, slots=True)
class Owned:
    """What a manager owns, in which version, since when; `source` is the entry it was read from."""

    fields: FieldSet
    version: str
    time: str | None
    source: dict[str, Any] | None = None

    def with_fields(self, fields: FieldSet) -> Owned:
        """Give the same with other fields."""
        return self if fields is self.fields else replace(self, fields=fields, source=None)


Managers = dict[Identity, Owned]


def read_managers(entries: Iterable[Any], *, trusted: Iterable[Any] = ()) -> Managers:
    """Read managedFields; entries that equal a `trusted` one are taken as they are.

    Raises: Unreadable when an entry is none.
    """
    known = list(trusted)
    managers: Managers = {}
    for place, entry in enumerate(entries):
        identity = _identity_of(entry, place)
        fields = entry.get("fieldsV1") or {}
        if entry not in known:
            fields = read_set(fields)
        source = entry if fields is entry.get("fieldsV1") else None
        managers[identity] = Owned(fields, entry["apiVersion"], _in_seconds(entry.get("time")), source)
    return managers


def _identity_of(entry: Any, place: int) -> Identity:
    if not isinstance(entry, dict) or entry.get("operation") not in ("Apply", "Update"):
        raise PathElementError("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion"):
        raise PathElementError("apiVersion must not be empty")
    if not entry.get("fieldsType"):
        raise PathElementError(f"missing fieldsType in managed fields entry {place}")
    if entry["fieldsType"] != _FIELDS_TYPE:
        raise PathElementError(f"invalid fieldsType {quote(entry['fieldsType'])} in managed fields entry {place}")
    version = "" if entry["operation"] == "Apply" else entry["apiVersion"]
    return Identity(entry.get("manager") or "", entry["operation"], version, entry.get("subresource") or "")


def _in_seconds(time: str | None) -> str | None:
    """Bring a time to the form that is stored: UTC, whole seconds."""
    if not time or (len(time) == 20 and time[-1] == "Z"):
        return time or None
    try:
        return datetime.fromisoformat(time).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return time


def write_managers(managers: Managers) -> list[dict[str, Any]]:
    """Write managedFields."""
    entries = [_entry(identity, owned) for identity, owned in managers.items()]
    if len(entries) > 1:
        entries.sort(key=_place)
    return entries


def _entry(identity: Identity, owned: Owned) -> dict[str, Any]:
    if owned.source is not None and owned.source.get("time") == owned.time:
        return owned.source
    entry: dict[str, Any] = {
        "manager": identity.manager,
        "operation": identity.operation,
        "apiVersion": owned.version,
        "time": owned.time,
        "fieldsType": _FIELDS_TYPE,
        "fieldsV1": ordered(owned.fields),
    }
    if owned.time is None:
        del entry["time"]
    if identity.subresource:
        entry["subresource"] = identity.subresource
    return entry


def _place(entry: dict[str, Any]) -> tuple[str, ...]:
    desired = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple(entry.get(key) or "" for key in desired)


def cap_updaters(managers: Managers) -> Managers:
    """Fold the oldest Update entries until there are no more than `MAX_UPDATERS`."""
    updaters = [identity for identity in managers if identity.operation == "Update"]
    surplus = len(updaters) - MAX_UPDATERS
    if surplus <= 0:
        return managers
    updaters.sort(key=lambda identity: (managers[identity].time or "", identity.text))
    capped = dict(managers)
    first: dict[str, Identity] = {}
    for identity in updaters:
        if surplus <= 0:
            break
        version = capped[identity].version
        if version not in first:
            first[version] = identity
            continue
        _fold(capped, identity, first[version])
        surplus -= 1
    return capped


def _fold(managers: Managers, identity: Identity, first: Identity) -> None:
    """Move an entry, and the oldest one of its version when that is still on its own, into the bucket."""
    folded = managers.pop(identity)
    bucket = build_identity("ancient-changes", "Update", folded.version, "")
    older = managers[bucket] if bucket in managers else managers.pop(first)
    managers[bucket] = Owned(union(folded.fields, older.fields), folded.version, folded.time)


def manager_name(field_manager: str, user_agent: str) -> str:
    """Give the name that a write goes under: what the request says, else the front of its User-Agent."""
    if field_manager:
        return field_manager
    name = ""
    for character in user_agent.split("/")[0]:
        if not character.isprintable():
            continue
        if len((name + character).encode()) > _LONGEST_NAME:
            break
        name += character
    return name
