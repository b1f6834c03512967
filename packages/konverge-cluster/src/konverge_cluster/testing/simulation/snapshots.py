"""Snapshots: the objects of the user and the operator, without what differs from run to run.

Times become "<time>", uids name their object, resource versions, generations and managed fields are dropped, and an
observed generation is shown as how far it is behind. Conditions are sorted by type: their order depends on which of
them changed last. Addresses that the server assigns are dropped too; generated names and addresses of pods are shown as
such. Values of Secrets that differ between two runs without faults are generated, such as passwords: they are shown as
which value of a run they are, since a second one is a mistake.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from konverge_cluster.storage import Entry
from konverge_cluster.testing.simulation.audits import Audit
from konverge_cluster.testing.simulation.foreign import ANNOTATION

__all__ = ["differences", "find_generated", "hide_generated", "normalize", "take_snapshot"]

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_DROPPED: Final = {
    *("managedFields", "resourceVersion", "generation", "clusterIP", "clusterIPs", "nodePort"),
    "deployment.kubernetes.io/revision",  # how often it changed on the way, which faults may well change
    "endpoints.kubernetes.io/last-change-trigger-time",  # when a change was noticed, not after a restart
    ANNOTATION,
}
_SHOWN: Final = 6


def take_snapshot(audit: Audit) -> dict[str, Any]:
    """Return the objects that the user or the operator has created, by name."""
    found: dict[str, Any] = {}
    own = [entry for collection in audit.storage for entry in collection.entries() if entry.uid in audit.creators]
    for entry in own:
        if entry.revision not in audit.plain:
            _note_addresses(entry, audit)
    for entry in own:
        name = audit.name_of(entry.uid)
        while name in found:
            name += "+"
        if entry.revision not in audit.plain:
            audit.plain[entry.revision] = _plain_object(entry, audit)
        found[name] = audit.plain[entry.revision]
    return found


def find_generated(one: dict[str, Any], other: dict[str, Any]) -> set[tuple[str, str]]:
    """Return object and key of the values of Secrets that differ between the same step of two runs."""
    return {
        (name, key)
        for name, secret in one.items()
        if name.startswith("secrets ")
        for key, value in (secret.get("data") or {}).items()
        if name in other and (other[name].get("data") or {}).get(key, value) != value
    }


def hide_generated(
    snapshot: dict[str, Any], generated: set[tuple[str, str]], values: dict[tuple[str, str], list[str]]
) -> dict[str, Any]:
    """Replace generated values by which value they are; `values` are those that the run has had so far."""
    shown = dict(snapshot)
    for name, key in generated:
        data = (shown.get(name) or {}).get("data") or {}
        if key in data:
            seen = values.setdefault((name, key), [])
            if data[key] not in seen:
                seen.append(data[key])
            shown[name] = {**shown[name], "data": {**data, key: f"<generated value {1 + seen.index(data[key])}>"}}
    return shown


def _note_addresses(entry: Entry, audit: Audit) -> None:
    if b'"podIP"' in entry.raw:
        status = msgspec.json.decode(entry.raw).get("status") or {}
        audit.assigned |= {one["ip"]: "<address>" for one in status.get("podIPs") or ()}


def _plain_object(entry: Entry, audit: Audit) -> Any:
    document = msgspec.json.decode(entry.raw)
    metadata = document["metadata"]
    metadata.pop("uid")
    if not set(metadata.get("annotations", ())) - _DROPPED:
        metadata.pop("annotations", None)
    if metadata.pop("generateName", ""):
        metadata.pop("name")
    if b'"OnDelete"' in entry.raw:  # a StatefulSet: which template was the first one, also when it is created again
        for name in ("currentRevision", "currentReplicas"):
            document.get("status", {}).pop(name, None)
    return _plain(document, audit, metadata.get("generation", 0))


def normalize(value: Any, audit: Audit) -> Any:
    """Return the state of an external service as plain data, comparable between runs."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return _plain(value, audit, 0)


def _plain(value: Any, audit: Audit, generation: int) -> Any:
    if isinstance(value, Mapping):
        items = {_text(str(key), audit): one for key, one in value.items() if key not in _DROPPED}
        plain = {key: _plain(one, audit, generation) for key, one in items.items()}
        if isinstance(plain.get("conditions"), list):
            plain["conditions"].sort(key=_condition_type)
        if isinstance(plain.get("observedGeneration"), int) and generation:
            plain["observedGeneration"] = f"{generation - plain['observedGeneration']} behind"
        return plain
    if isinstance(value, list | tuple):
        return [_plain(one, audit, generation) for one in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(one, audit, generation) for one in value), key=str)
    return _text(value, audit) if isinstance(value, str) else value


def _condition_type(condition: Any) -> str:
    return str(condition.get("type", "")) if isinstance(condition, dict) else ""


def _text(text: str, audit: Audit) -> str:
    if text in audit.assigned:
        return audit.assigned[text]
    return audit.without_uids(_TIME.sub("<time>", text))


def differences(expected: Any, found: Any) -> str:
    """Return the paths at which two states differ, and both values; the first few."""
    lines = list(_differences("", expected, found))
    more = f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return "; ".join(lines[:_SHOWN]) + more


def _differences(path: str, expected: Any, found: Any) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}):
            below = f"{path}.{key}" if path else key
            if key not in found:
                yield f"{below} is missing"
            elif key not in expected:
                yield f"{below} should not exist: {str(found[key])[:200]}"
            else:
                yield from _differences(below, expected[key], found[key])
    elif expected != found:
        yield f"{path} is {str(found)[:200]!r} instead of {str(expected)[:200]!r}"
