"""Finalizers: an object stays, marked as deleted, until each of them is taken off by whoever put it there.

Rules that hold here:

1. One entry is added or taken off, bound to the version at which the list was read: what others do to the list
   meanwhile is never undone. The server then says no, the object is read again, and the change is made anew.
2. An object that is being deleted gets no new finalizers; the server would refuse it.
3. Only the object that was given is changed, by uid: another one of the name is left alone.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

from konverge.client import Client
from konverge.client.targets import Target, target_of_object
from konverge.errors import Conflict, Invalid, NotFound
from konverge.objects import AnyObject, Resource

__all__ = ["add_finalizer", "finalizers_of", "is_deleting", "remove_finalizer"]

R = TypeVar("R", bound=AnyObject)

_TRIES = 10
_LIST = "/metadata/finalizers"


async def add_finalizer(client: Client, obj: R, name: str) -> R:
    """Put a finalizer on an object, unless it has it or is being deleted; give the object as it is now.

    Raises: NotFound when the object is gone, or the name another object's; Conflict when others kept writing to it.
    """
    return await _change(client, obj, name, present=True)


async def remove_finalizer(client: Client, obj: R, name: str) -> R | None:
    """Take a finalizer off an object; give the object as it is now, None when it is gone.

    The last one off lets an object go that is being deleted.

    Raises: Conflict when others kept writing to it.
    """
    try:
        return await _change(client, obj, name, present=False)
    except NotFound:
        return None


def finalizers_of(obj: AnyObject) -> list[str]:
    """Give the finalizers of an object, a list of its own."""
    if isinstance(obj, Resource):
        return list(obj.metadata.finalizers)
    return list(obj.metadata.get("finalizers") or [])


def is_deleting(obj: AnyObject) -> bool:
    """Tell whether an object is marked as deleted, and waits for its finalizers or its grace period."""
    if isinstance(obj, Resource):
        return obj.metadata.deletion_timestamp is not None
    return obj.metadata.get("deletionTimestamp") is not None


async def _change(client: Client, obj: R, name: str, *, present: bool) -> R:
    target: Target[R] = await target_of_object(obj, client.discovery)
    readable: Any = target.type if issubclass(target.type, Resource) else target.kind
    found = obj
    for _ in range(_TRIES):
        patch = _patch(found, name, present)
        if not patch:
            return found
        try:
            return cast(R, await client.patch(readable, found.key, patch, patch_type="json"))
        except (Conflict, Invalid) as refusal:
            found = await _read_again(client, readable, found, refusal)
    raise Conflict(
        f"the finalizer {name} could not be changed, others wrote to the object each time ({_TRIES} tries)",
        status=409,
        verb="patch",
        kind=obj.kind,
        key=str(obj.key),
    )


async def _read_again(client: Client, readable: Any, old: R, refusal: Conflict | Invalid) -> R:
    new = cast(R, await client.get(readable, old.key))
    if new.uid != old.uid:
        raise NotFound(
            "another object has the name now", status=404, verb="patch", kind=old.kind, key=str(old.key)
        ) from refusal
    if new.resource_version == old.resource_version:
        raise refusal  # nobody wrote: it is the change itself that the server refuses
    return new


def _patch(obj: AnyObject, name: str, present: bool) -> list[dict[str, Any]]:
    """Give the JSON patch that adds or removes one finalizer; empty when there is nothing to do."""
    there = finalizers_of(obj)
    if (name in there) == present or (present and is_deleting(obj)):
        return []
    unchanged = {"op": "test", "path": "/metadata/resourceVersion", "value": obj.resource_version}
    if not present:
        place = f"{_LIST}/{there.index(name)}"
        return [unchanged, {"op": "test", "path": place, "value": name}, {"op": "remove", "path": place}]
    if not there:
        return [unchanged, {"op": "add", "path": _LIST, "value": [name]}]
    return [
        unchanged,
        {"op": "test", "path": _LIST, "value": there},
        {"op": "add", "path": f"{_LIST}/-", "value": name},
    ]
