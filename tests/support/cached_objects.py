"""Objects as a server sends them, in one line each: what tests of the cache write."""

from __future__ import annotations

import json
from typing import Any

from konverge.objects import Key, Kind

__all__ = ["THING", "at", "deleted", "thing"]

THING = Kind("example.com", "v1", "Thing", "things")


def at(name: str, namespace: str = "shop") -> Key:
    return Key(namespace, name)


def thing(
    name: str, version: int | str, *, namespace: str = "shop", uid: str = "", spec: Any = None, **more: Any
) -> bytes:
    """Give a thing as JSON; `more` are fields of its metadata, by wire name."""
    metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    document = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata | more, "spec": spec or {}}
    return json.dumps(document, separators=(",", ":")).encode()


def deleted(uid: str) -> bytes:
    """Give what a server answers to a delete that is done."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Success", "details": {"kind": "things", "uid": uid}}
    return json.dumps(status).encode()
