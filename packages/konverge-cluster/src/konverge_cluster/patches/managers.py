"""The field managers of an object, as in `metadata.managedFields`.

Rules:

1. An entry is identified by manager, operation, version and subresource. For Apply the version is ignored, so a manager
   that applies in a newer version keeps its one entry.
2. Entries are sorted by operation, time, manager, version, subresource.
3. There are at most ten Update entries. The oldest ones of a version are merged into one named `ancient-changes`.
4. Unchanged entries are returned as they were read.
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
    """The identity of an entry; `version` is "" for Apply."""

    manager: str
    operation: str
    version: str
    subresource: str

    @property
    def text(self) -> str:
        """The identity as JSON, the sort key of conflicts on the real server."""
        parts = (("manager", 0), ("operation", 1), ("apiVersion", 2), ("subresource", 3))
        return json.dumps({key: self[index] for key, index in parts if self[index]}, separators=(",", ":"))

    def __str__(self) -> str:
        """Return the manager in the form of conflict messages."""
        name = quote(self.manager)
        if self.subresource:
            name += f" with subresource {quote(self.subresource)}"
        return f"{name} using {self.version}" if self.operation == "Update" else name


def build_identity(manager: str, operation: str, version: str, subresource: str) -> Identity:
    """Return the identity of an entry; an empty manager name becomes "unknown"."""
    return Identity(manager or "unknown", operation, "" if operation == "Apply" else version, subresource)


@dataclass(frozen=True, slots=True)
class Owned:
    """The fields that a manager owns, their version, and the time; `source` is the entry that was read."""

    fields: FieldSet
    version: str
    time: str | None
    source: dict[str, Any] | None = None

    def with_fields(self, fields: FieldSet) -> Owned:
        """Return a copy with other fields."""
        return self if fields is self.fields else replace(self, fields=fields, source=None)


Managers = dict[Identity, Owned]


def read_managers(entries: Iterable[Any], *, trusted: Iterable[Any] = ()) -> Managers:
    """Read managedFields; entries that equal a `trusted` one are not parsed again.

    Raises: PathElementError for an invalid entry.
    """
    known = list(trusted)
    managers: Managers = {}
    for index, entry in enumerate(entries):
        identity = _identity_of(entry, index)
        fields = entry.get("fieldsV1") or {}
        if entry not in known:
            fields = read_set(fields)
        source = entry if fields is entry.get("fieldsV1") else None
        managers[identity] = Owned(fields, entry["apiVersion"], _in_seconds(entry.get("time")), source)
    return managers


def _identity_of(entry: Any, index: int) -> Identity:
    if not isinstance(entry, dict) or entry.get("operation") not in ("Apply", "Update"):
        raise PathElementError("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion"):
        raise PathElementError("apiVersion must not be empty")
    if not entry.get("fieldsType"):
        raise PathElementError(f"missing fieldsType in managed fields entry {index}")
    if entry["fieldsType"] != _FIELDS_TYPE:
        raise PathElementError(f"invalid fieldsType {quote(entry['fieldsType'])} in managed fields entry {index}")
    version = "" if entry["operation"] == "Apply" else entry["apiVersion"]
    return Identity(entry.get("manager") or "", entry["operation"], version, entry.get("subresource") or "")


def _in_seconds(time: str | None) -> str | None:
    """Return a time in the stored form: UTC, whole seconds."""
    if not time or (len(time) == 20 and time[-1] == "Z"):
        return time or None
    try:
        # Unlike strftime, isoformat writes the year with four digits.
        return datetime.fromisoformat(time).astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, ValueError):
        return time


def write_managers(managers: Managers) -> list[dict[str, Any]]:
    """Return managedFields."""
    entries = [_entry(identity, owned) for identity, owned in managers.items()]
    if len(entries) > 1:
        entries.sort(key=_sort_key)
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


def _sort_key(entry: dict[str, Any]) -> tuple[str, ...]:
    keys = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple(entry.get(key) or "" for key in keys)


def cap_updaters(managers: Managers) -> Managers:
    """Merge the oldest Update entries until there are no more than `MAX_UPDATERS`."""
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
    """Merge an entry into `ancient-changes`; without such an entry, merge it with the oldest one of its version."""
    folded = managers.pop(identity)
    bucket = build_identity("ancient-changes", "Update", folded.version, "")
    older = managers[bucket] if bucket in managers else managers.pop(first)
    managers[bucket] = Owned(union(folded.fields, older.fields), folded.version, folded.time)


def manager_name(field_manager: str, user_agent: str) -> str:
    """Return the field manager of a write: the one in the request, or else the first part of its User-Agent."""
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
