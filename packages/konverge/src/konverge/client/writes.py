"""Notifications of successful writes, for caches.

A listener is called as soon as the response is there and before the write returns, so that the next read of the writer
can see the write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from konverge.objects import Key, Kind

__all__ = ["WriteEvent", "WriteListener", "base_version_of"]


@dataclass(frozen=True, slots=True)
class WriteEvent:
    """A write and its response.

    `response` is the body of the response: the new object; after a delete the object with its deletionTimestamp, its
    last state, or a Status. `created` is True when this write created the object. `base_version` is the resource
    version that the write requires, "" when it requires none.
    """

    verb: str  # "create", "update", "patch", "apply" or "delete"
    kind: Kind
    key: Key
    response: bytes
    created: bool = False
    base_version: str = ""
    subresource: str = ""


WriteListener: TypeAlias = Callable[[WriteEvent], None]


def base_version_of(patch: Any) -> str:
    """Return the resource version that a patch requires: a field of a merge patch, or a test of a JSON patch."""
    if isinstance(patch, dict):
        metadata = patch.get("metadata")
        version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
        return version if isinstance(version, str) else ""
    if isinstance(patch, list):
        for operation in patch:
            if isinstance(operation, dict) and _tests_version(operation):
                return str(operation.get("value"))
    return ""


def _tests_version(operation: dict[str, Any]) -> bool:
    return operation.get("op") == "test" and operation.get("path") == "/metadata/resourceVersion"
