"""Finalizers: an object that is being deleted exists until each controller has removed its finalizer.

Rules that hold here:

1. One entry is added or removed, with the resourceVersion at which the list was read as a precondition: changes of
   other clients are never reverted. After a conflict the object is read again, and the change is retried.
2. An object that is being deleted gets no new finalizers; the server would reject it.
3. Only the object that was passed is changed, by uid: another object of the same name is left alone.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

from konverge.client import Client
from konverge.client.targets import Target, resolve_object_target
from konverge.errors import Conflict, Invalid, NotFound
from konverge.objects import AnyObject, Resource

__all__ = ["add_finalizer", "finalizers_of", "is_terminating", "remove_finalizer"]

R = TypeVar("R", bound=AnyObject)

_ATTEMPTS = 10
_LIST = "/metadata/finalizers"


async def add_finalizer(client: Client, obj: R, name: str) -> R:
    """Add a finalizer to an object, unless it has it or is being deleted; return the current object.

    Raises: NotFound when the object is gone, or another object has its name; Conflict when every attempt met one.
    """
    return await _change(client, obj, name, present=True)


async def remove_finalizer(client: Client, obj: R, name: str) -> R | None:
    """Remove a finalizer from an object; return the current object, or None if it is gone.

    The server removes an object that is being deleted with its last finalizer.

    Raises: Conflict when every attempt met one.
    """
    try:
        return await _change(client, obj, name, present=False)
    except NotFound:
        return None


def finalizers_of(obj: AnyObject) -> list[str]:
    """Return a copy of the finalizers of an object."""
    if isinstance(obj, Resource):
        return list(obj.metadata.finalizers)
    return list(obj.metadata.get("finalizers") or [])


def is_terminating(obj: AnyObject) -> bool:
    """Report whether an object is being deleted, and waits for its finalizers or its grace period."""
    if isinstance(obj, Resource):
        return obj.metadata.deletion_timestamp is not None
    return obj.metadata.get("deletionTimestamp") is not None


async def _change(client: Client, obj: R, name: str, *, present: bool) -> R:
    target: Target[R] = await resolve_object_target(obj, client.discovery)
    readable: Any = target.type if issubclass(target.type, Resource) else target.kind
    found = obj
    for _ in range(_ATTEMPTS):
        patch = _patch(found, name, present)
        if not patch:
            return found
        try:
            return cast(R, await client.patch(readable, found.key, patch, patch_type="json"))
        except (Conflict, Invalid) as error:
            found = await _read_again(client, readable, found, error)
    raise Conflict(
        f"the finalizer {name} could not be changed: the object changed during each of {_ATTEMPTS} attempts",
        status=409,
        verb="patch",
        kind=obj.kind,
        key=str(obj.key),
    )


async def _read_again(client: Client, readable: Any, old: R, error: Conflict | Invalid) -> R:
    new = cast(R, await client.get(readable, old.key))
    if new.uid != old.uid:
        raise NotFound(
            "another object has the name now", status=404, verb="patch", kind=old.kind, key=str(old.key)
        ) from error
    if new.resource_version == old.resource_version:
        raise error  # the object did not change: the server rejects the patch itself
    return new


def _patch(obj: AnyObject, name: str, present: bool) -> list[dict[str, Any]]:
    """Return the JSON patch that adds or removes one finalizer; empty if there is nothing to do."""
    current = finalizers_of(obj)
    if (name in current) == present or (present and is_terminating(obj)):
        return []
    unchanged = {"op": "test", "path": "/metadata/resourceVersion", "value": obj.resource_version}
    if not present:
        path = f"{_LIST}/{current.index(name)}"
        return [unchanged, {"op": "test", "path": path, "value": name}, {"op": "remove", "path": path}]
    if not current:
        return [unchanged, {"op": "add", "path": _LIST, "value": [name]}]
    return [
        unchanged,
        {"op": "test", "path": _LIST, "value": current},
        {"op": "add", "path": f"{_LIST}/-", "value": name},
    ]
