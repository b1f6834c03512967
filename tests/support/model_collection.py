"""A model of a collection of the API server, small enough to be obviously right.

It has states, versions, a history with compaction, pages that are snapshots, and streams of frames.
"""

from __future__ import annotations

import json
from typing import Any

from konverge.errors import Expired, Invalid
from konverge.wire.frames import INITIAL_EVENTS_END
from konverge.wire.list_watch import List, NextRequest
from konverge.wire.options import ListOptions, WatchOptions

__all__ = ["ModelCollection", "frame", "status_frame"]

Json = dict[str, Any]


def frame(type_: str, found: Json) -> bytes:
    return json.dumps({"type": type_, "object": found}).encode() + b"\n"


def status_frame(code: int, reason: str = "", **details: Any) -> bytes:
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "no"}
    return frame("ERROR", status | ({"details": details} if details else {}))


def bookmark(version: int, **annotations: str) -> bytes:
    return frame("BOOKMARK", {"metadata": {"resourceVersion": str(version), "annotations": annotations}})


class ModelCollection:
    """Objects by name; each change has its own version. `offers_streaming` allows streaming lists."""

    def __init__(self, *, offers_streaming: bool = True) -> None:
        self.offers_streaming = offers_streaming
        self.version = 100
        self.compacted = 0
        self.objects: dict[str, Json] = {}
        self.history: list[tuple[int, str, Json]] = []
        self._snapshots: dict[int, dict[str, Json]] = {100: {}}
        self._uids = 0

    def write(self, name: str) -> None:
        """Create or update an object."""
        before = self.objects.get(name)
        self.version += 1
        if before is None:
            self._uids += 1
        uid = before["metadata"]["uid"] if before else f"uid-{self._uids}"
        found = {"metadata": {"name": name, "uid": uid, "resourceVersion": str(self.version)}}
        self._record("MODIFIED" if before else "ADDED", name, found)

    def delete(self, name: str) -> None:
        before = self.objects.get(name)
        if before is not None:
            self.version += 1
            found = {"metadata": before["metadata"] | {"resourceVersion": str(self.version)}}
            self._record("DELETED", name, found)

    def elsewhere(self) -> None:
        """Change another collection: the version increases, which only bookmarks show."""
        self.version += 1
        self._snapshots[self.version] = dict(self.objects)

    def compact(self) -> None:
        """Compact the whole history."""
        self.compacted = self.version

    def versions(self) -> dict[str, str]:
        return {f"/{name}": found["metadata"]["resourceVersion"] for name, found in self.objects.items()}

    def states(self, name: str) -> list[str]:
        """Return all versions of an object, in order."""
        return [str(version) for version, _, found in self.history if found["metadata"]["name"] == name]

    def respond(self, request: NextRequest) -> bytes:
        """Return the body of the response, up to now."""
        if isinstance(request, List):
            return self._page(request.options)
        return self._stream(request.options)

    def _record(self, type_: str, name: str, found: Json) -> None:
        if type_ == "DELETED":
            del self.objects[name]
        else:
            self.objects[name] = found
        self.history.append((self.version, type_, found))
        self._snapshots[self.version] = dict(self.objects)

    def _page(self, options: ListOptions) -> bytes:
        version, start = json.loads(options.continue_) if options.continue_ else (self.version, "")
        if version < self.compacted:
            raise Expired("the token is too old", status=410)
        snapshot = self._snapshots[version]
        names = sorted(name for name in snapshot if name > start)
        shown = names[: options.limit] if options.limit else names
        metadata = {"resourceVersion": str(version)}
        if len(shown) < len(names):
            metadata["continue"] = json.dumps([version, shown[-1]])
        return json.dumps({"metadata": metadata, "items": [snapshot[name] for name in shown]}).encode()

    def _stream(self, options: WatchOptions) -> bytes:
        if options.send_initial_events:
            if not self.offers_streaming:
                raise Invalid("sendInitialEvents is forbidden", status=422)
            initial = b"".join(frame("ADDED", found) for found in self.objects.values())
            return initial + bookmark(self.version, **{INITIAL_EVENTS_END: "true"})
        assert options.resource_version not in ("", "0"), "a watch from now on loses deletes"
        since = int(options.resource_version)
        if since < self.compacted:
            return status_frame(410, "Expired")
        changes = [frame(type_, found) for version, type_, found in self.history if version > since]
        return b"".join(changes) + bookmark(self.version)
