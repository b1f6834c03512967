"""Preconditions of writes to children, and what to do when the server refuses them.

A write carries what the cache knows: the uid and the version of the child, or that there is none. If the server knows
otherwise, the cache is stale, and not only about the child: its owner may have been deleted and created again. A write
for the dead owner would take a live child from the new one, and garbage collection would then delete it. So both are
read from the server before anything is written without a version. Rules that hold here:

1. A refused precondition is never a reason to delete or recreate anything, and never terminal: it is a `Conflict`.
2. No request is added as long as the cache is not behind.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from konverge.cache import Cache, Entry
from konverge.client import Client
from konverge.client.targets import Target, resolve_object_target
from konverge.errors import AlreadyExists, ApiError, ApplyConflict, Conflict, Forbidden, Invalid, NotFound
from konverge.objects import AnyObject, Kind, Resource, Unstructured, replace

__all__ = ["CREATE_ONLY", "Precondition", "check_owner", "is_stale"]

R = TypeVar("R", bound=AnyObject)


class Precondition(NamedTuple):
    """What an object must have for a write to happen; "" is not checked."""

    uid: str = ""
    version: str = ""

    @classmethod
    def of(cls, live: Entry | None) -> Precondition:
        """Return the precondition that an object is the one that was read, or that there is none."""
        return CREATE_ONLY if live is None else cls(live.uid, str(live.version))

    def added_to(self, obj: R) -> R:
        """Return a copy of an object to apply that has the precondition."""
        names = ("uid", "resource_version") if isinstance(obj, Resource) else ("uid", "resourceVersion")
        changes: dict[str, Any] = {name: value for name, value in zip(names, self, strict=True) if value}
        if isinstance(obj, Resource):
            copy = obj.__copy__()
            copy.metadata = replace(obj.metadata, **changes)
            return copy
        return Unstructured({**obj, "metadata": {**obj.metadata, **changes}})  # type: ignore[return-value]


CREATE_ONLY = Precondition(version="1")
"""No object has version 1 any more: an apply creates an object, and is refused if there is one."""


def is_stale(error: ApiError) -> bool:
    """Report whether an error means that the object is not the one that the cache has."""
    if isinstance(error, Invalid):
        return any(cause.field == "metadata.uid" for cause in error.causes)
    return isinstance(error, Conflict | AlreadyExists) and not isinstance(error, ApplyConflict)


async def check_owner(client: Client, cache: Cache, owner: AnyObject, error: ApiError) -> None:
    """Read the owner of a child from the server, after a write to the child was refused with an error.

    Raises: Conflict when it is gone, when another object has its name, or when it may not be read.
    """
    target: Target[Any] = await resolve_object_target(owner, client.discovery)
    try:
        live = await client.get(_readable(target), owner.key)
    except (NotFound, Forbidden) as cause:
        raise _stale(error, f"{owner.kind} {owner.key} cannot be read: {cause}") from error
    cache.record_live_version(target.kind, owner.key, live.resource_version)
    if live.uid != owner.uid:
        raise _stale(error, f"{owner.kind} {owner.key} was deleted and created again") from error


def _stale(error: ApiError, reason: str) -> Conflict:
    text = f"the cache is stale, nothing was written: {reason}"
    return Conflict(text, status=409, reason="Conflict", verb=error.verb, kind=error.kind, key=error.key)


def _readable(target: Target[Any]) -> type[Any] | Kind:
    return target.type if issubclass(target.type, Resource) else target.kind
