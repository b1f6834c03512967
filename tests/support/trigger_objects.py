"""Events of a cache, for tests of triggers."""

from __future__ import annotations

import copy
import json
from typing import Any

from konverge.cache import Entry, Event, EventType
from konverge.cache.decoder import Decoder
from konverge.objects import Kind

__all__ = ["POD", "added", "deleted", "document", "entry", "updated"]

POD = Kind("", "v1", "Pod", "pods")


def document(name: str = "web", *, version: int = 1, **fields: Any) -> dict[str, Any]:
    """Return an object; `metadata` is merged into its own, `generation` included."""
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        **fields,
        "metadata": metadata | copy.deepcopy(fields.get("metadata", {})),
    }


def entry(obj: dict[str, Any], *, metadata_only: bool = False) -> Entry:
    """Return the cache entry of an object."""
    raw = json.dumps(obj, separators=(",", ":")).encode()
    return Decoder(POD, manager="us", metadata_only=metadata_only).decode(raw)


def added(obj: dict[str, Any], *, listed: bool = False, writer: Any = None) -> Event:
    return Event(EventType.ADDED, None, entry(obj), listed, writer)


def deleted(obj: dict[str, Any]) -> Event:
    return Event(EventType.DELETED, entry(obj), None)


def updated(old: dict[str, Any], new: dict[str, Any], *, metadata_only: bool = False, writer: Any = None) -> Event:
    """Return the update of an object; the new state has a later version."""
    new = copy.deepcopy(new)
    new["metadata"]["resourceVersion"] = str(int(old["metadata"]["resourceVersion"]) + 1)
    before, after = (entry(one, metadata_only=metadata_only) for one in (old, new))
    return Event(EventType.UPDATED, before, after, False, writer)
