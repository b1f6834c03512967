"""The simplest sink of a reflector: two dicts, and a list of all events."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from konverge.errors import DecodeError
from konverge.objects import Key

__all__ = ["RecordingSink", "SinkEvent"]

Json = dict[str, Any]


@dataclass(frozen=True)
class SinkEvent:
    """One event as an event handler sees it."""

    type: str
    name: str
    version: str
    uid: str = ""


@dataclass
class RecordingSink:
    """A sink that stores decoded objects by namespace and name, and records the changes."""

    objects: dict[str, Json] = field(default_factory=dict)
    events: list[SinkEvent] = field(default_factory=list)
    swaps: list[str] = field(default_factory=list)
    progressed: list[str] = field(default_factory=list)
    staged: dict[str, Json] | None = None
    max_staged: int = 0
    restarts: int = 0

    @property
    def version(self) -> str:
        return self.swaps[-1] if self.swaps else ""

    def newest(self, count: int) -> list[tuple[Key, int]]:
        return []

    def restart_history(self) -> None:
        self.restarts += 1

    def begin(self) -> None:
        self.staged = {}

    def put(self, raw: bytes) -> str:
        key, found = _read(raw)
        if self.staged is not None:
            self.staged[key] = found
        else:
            self._deliver(key, found)
        return str(found["metadata"]["resourceVersion"])

    def remove(self, raw: bytes) -> str:
        key, found = _read(raw)
        if self.staged is not None:
            self.staged.pop(key, None)
        elif self.objects.pop(key, None) is not None:
            self._record("DELETED", found)
        return str(found["metadata"]["resourceVersion"])

    async def swap(self, resource_version: str) -> None:
        self.swap_now(resource_version)

    def swap_now(self, resource_version: str) -> None:
        assert self.staged is not None, "a list ended that never began"
        staged, self.staged = self.staged, None
        self.swaps.append(resource_version)
        for key in [key for key in self.objects if key not in staged]:
            self._record("DELETED", self.objects.pop(key))
        for key, found in staged.items():
            self._deliver(key, found)

    def progress(self, resource_version: str) -> None:
        self.progressed.append(resource_version)

    def names(self) -> list[str]:
        return sorted(found["metadata"]["name"] for found in self.objects.values())

    def versions(self) -> dict[str, str]:
        return {key: found["metadata"]["resourceVersion"] for key, found in self.objects.items()}

    def _deliver(self, key: str, found: Json) -> None:
        before = self.objects.get(key)
        self.objects[key] = found
        if before is not None and before["metadata"].get("uid") != found["metadata"].get("uid"):
            self._record("DELETED", before)
            before = None
        if before is None:
            self._record("ADDED", found)
        elif before["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            self._record("MODIFIED", found)

    def _record(self, type_: str, found: Json) -> None:
        metadata = found["metadata"]
        self.events.append(SinkEvent(type_, metadata["name"], metadata["resourceVersion"], metadata.get("uid", "")))


def _read(raw: bytes) -> tuple[str, Json]:
    try:
        found = json.loads(raw)
        metadata = found["metadata"]
        return f"{metadata.get('namespace', '')}/{metadata['name'] + ''}", found | {
            "metadata": metadata | {"resourceVersion": metadata["resourceVersion"] + ""}
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DecodeError("an object has no name or no version") from error
