"""Writes that succeeded, told to whoever keeps a copy of the cluster.

A listener is told in one step with the answer, before the writer goes on: whatever the writer reads next can see it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from konverge.objects import Key, Kind

__all__ = ["WriteListener", "Written", "base_version_of"]


@dataclass(frozen=True, slots=True)
class Written:
    """A write and what the server answered.

    `answer` is the object as it is now; after a delete it is the object with its deletion mark, its last state, or a
    Status. `created` says that this write made the object. `base_version` is the version that the write was bound to,
    "" when it was bound to none.
    """

    verb: str  # "create", "update", "patch", "apply" or "delete"
    kind: Kind
    key: Key
    answer: bytes
    created: bool = False
    base_version: str = ""
    subresource: str = ""


WriteListener: TypeAlias = Callable[[Written], None]


def base_version_of(patch: Any) -> str:
    """Give the version that a patch is bound to: as a merge patch names it, or as a JSON patch tests it."""
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
