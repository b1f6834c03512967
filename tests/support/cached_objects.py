"""Objects as a server sends them, for tests of the cache."""

from __future__ import annotations

import json
from typing import Any

from konverge.cache.options import CacheOptions
from konverge.cache.store import Store
from konverge.objects import Key, Kind

__all__ = ["WIDGET", "at", "deleted", "listed", "relist", "widget"]

WIDGET = Kind("example.com", "v1", "Widget", "widgets")


def at(name: str, namespace: str = "shop") -> Key:
    return Key(namespace, name)


def widget(
    name: str, version: int | str, *, namespace: str = "shop", uid: str = "", spec: Any = None, **more: Any
) -> bytes:
    """Return a widget as JSON; `more` are fields of its metadata, by wire name."""
    metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    document = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata | more, "spec": spec or {}}
    return json.dumps(document, separators=(",", ":")).encode()


def deleted(uid: str) -> bytes:
    """Return the Status that a server sends for a completed delete."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Success", "details": {"kind": "widgets", "uid": uid}}
    return json.dumps(status).encode()


async def listed(*widgets: bytes, version: int = 10, **options: Any) -> Store:
    """Return a store after a list of these objects."""
    store = Store(WIDGET, options=CacheOptions(**options))
    await relist(store, *widgets, version=version)
    return store


async def relist(store: Store, *widgets: bytes, version: int) -> None:
    """List these objects into a store."""
    store.begin()
    for one in widgets:
        store.put(one)
    await store.swap(str(version))
