"""The objects that one reconcile has applied, and what each apply did."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from konverge.client import WriteEvent
from konverge.objects import AnyObject, Key, split_api_version
from konverge.reconcile.changed_fields import changed_fields

__all__ = ["Applied", "AppliedObjects"]

ObjectIdentity: TypeAlias = tuple[str, str, Key]
"""Group, kind and key of an object; the API version that it is read in does not matter."""


class Applied(Struct, frozen=True):
    """What an apply did: the object was created, changed at some paths, or not changed.

    `paths` are the wire paths at which the object differs from the one that was compared, such as `.spec.replicas`;
    status and the server's own metadata are not compared. They are empty for an object that was created, and for one
    that was changed although the cache did not have it yet.
    """

    action: Literal["created", "changed", "unchanged"]
    paths: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.action} {', '.join(self.paths)}" if self.paths else self.action


class AppliedObjects:
    """The objects that one reconcile has applied."""

    def __init__(self) -> None:
        self._objects: dict[ObjectIdentity, Applied | None] = {}
        self._created: set[ObjectIdentity] = set()

    def add(self, obj: AnyObject) -> ObjectIdentity:
        """Add an object that is about to be applied; its namespace must be set. Return it for `finish`."""
        identity = _identity_of(obj)
        self._objects[identity] = None
        self._created.discard(identity)
        return identity

    def record_write(self, write: WriteEvent) -> None:
        """Record that a write created an object: only the response of an apply shows that."""
        if write.created:
            self._created.add((write.kind.group, write.kind.kind, write.key))

    def finish(self, identity: ObjectIdentity, before: bytes | None, after: dict[str, Any] | None) -> None:
        """Record the result of an apply: the object as it was compared, None if there was none, and the response.

        Without a response, nothing was sent.
        """
        self._objects[identity] = _applied(before, after, created=identity in self._created)

    def find(self, obj: AnyObject, key: Key) -> Applied | None:
        """Return what the last apply of an object did; None if it was not applied, or its apply failed."""
        return self._objects.get((*_identity_of(obj)[:2], key))

    def __contains__(self, obj: AnyObject) -> bool:
        return _identity_of(obj) in self._objects

    def __len__(self) -> int:
        return len(self._objects)


def _applied(before: bytes | None, after: dict[str, Any] | None, *, created: bool) -> Applied:
    if created:
        return Applied("created")
    if after is None:
        return Applied("unchanged")
    if before is None:
        return Applied("changed")
    paths = tuple(changed_fields(before, after))
    return Applied("changed", paths) if paths else Applied("unchanged")


def _identity_of(obj: AnyObject) -> ObjectIdentity:
    return split_api_version(obj.api_version)[0], obj.kind, obj.key
