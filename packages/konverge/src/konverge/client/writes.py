"""Notifications of successful writes, for caches.

A listener is called as soon as the response is there and before the write returns, so that the next read of the writer
can see the write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from konverge.objects import AnyObject, Key, Kind, Unstructured, decode

__all__ = ["WriteEvent", "WriteListener", "Written", "base_version_of"]

R = TypeVar("R", bound=AnyObject)


class Written(NamedTuple, Generic[R]):
    """The response of a write: as an object, and as the JSON values that it was made of."""

    obj: R
    document: Unstructured


@dataclass(frozen=True)
class WriteEvent:
    """A write and its response.

    `response` is the body of the response: the new object; after a delete the object with its deletionTimestamp, its
    last state, or a Status. `created` is True when this write created the object. `base_version` is the resource
    version that the write requires, "" when it requires none. `obj` is the decoded response, None if it does not decode
    into its class; `document` is the same as JSON values, None for a delete. Whoever needs a part of the response reads
    it here, so that it is parsed once.
    """

    verb: str  # "create", "update", "patch", "apply" or "delete"
    kind: Kind
    key: Key
    response: bytes
    created: bool = False
    base_version: str = ""
    subresource: str = ""
    obj: AnyObject | None = field(default=None, compare=False, repr=False)
    document: Unstructured | None = field(default=None, compare=False, repr=False)

    version: str = field(init=False, compare=False, default="")
    """The resource version of the response; "" for that of a delete."""
    generation: int = field(init=False, compare=False, default=0)
    """The generation of the response, 0 if it has none."""
    uid: str = field(init=False, compare=False, default="")
    made_version: bool = field(init=False, compare=False, default=False)
    """Whether this write alone made the version.

    It created the object, or required the version that it replaced and got another one. The response to a write that
    changes nothing has the version that another client made.
    """

    def __post_init__(self) -> None:
        if self.verb == "delete":
            return
        put = partial(object.__setattr__, self)
        document = self.document
        if document is None:
            put("document", document := decode(Unstructured, self.response))
        metadata = document.get("metadata") or {}
        version, generation = metadata.get("resourceVersion") or "", metadata.get("generation")
        put("version", version)
        put("generation", generation if isinstance(generation, int) else 0)
        put("uid", metadata.get("uid") or "")
        put("made_version", self.created or self.base_version not in ("", version))

    @property
    def observed_generation(self) -> int:
        """The generation that the status of the response observes; 0 if it has none, or one of another type."""
        status = self.document.get("status") if self.document is not None else None
        found = status.get("observedGeneration") if isinstance(status, dict) else None
        return found if isinstance(found, int) else 0


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
