"""Create an object once: for values that are generated and must never change, such as a password.

Rules that hold here:

1. An object that exists is never written, whatever it contains. What is stored is returned.
2. The only write is a create, which the server refuses if the object exists. So a stale cache, a restart, or a second
   replica that creates it at the same time cannot replace it.
3. The cache is trusted only if it has the object. If it has not, the server decides.
4. An object that is about to be deleted is not returned, since its value would be lost with it: one that is being
   deleted, and one of an earlier owner with the same name, which the garbage collector deletes. The reconcile is
   retried until it is gone.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

from konverge.cache import Cache
from konverge.client import Client
from konverge.client.targets import Target, resolve_object_target
from konverge.errors import AlreadyExists, AlreadyOwned, NotFound, Retry
from konverge.objects import AnyObject, FieldSelector, Key, Resource
from konverge.reconcile.applied import AppliedObjects
from konverge.reconcile.finalizers import is_terminating
from konverge.reconcile.owner_references import other_controller, references_of, with_namespace_and_owner

__all__ = ["create_once"]

R = TypeVar("R", bound=AnyObject)


async def create_once(
    client: Client, cache: Cache, desired: R, *, owner: AnyObject | None, applied: AppliedObjects | None = None
) -> R:
    """Create an object unless it exists; return the stored object.

    It becomes a child of `owner`, and is in the owner's namespace unless it has another. `applied` gets the desired
    object.

    Raises: AlreadyOwned when another object is its controller; Retry when an old object of that name is about to be
    deleted; ValueError when the owner cannot own it.
    """
    target: Target[R] = await resolve_object_target(desired, client.discovery)
    ready = with_namespace_and_owner(desired, target.kind, owner=owner, namespace=client.options.namespace)
    if applied is not None:
        applied.add(ready)
    stored = await _find(client, cache, target, ready.key)
    if stored is None:
        try:
            return await client.create(ready)
        except AlreadyExists:
            stored = await _read(client, cache, target, ready.key)
            if stored is None:
                raise
    _check(stored, owner)
    return stored


async def _find(client: Client, cache: Cache, target: Target[R], key: Key) -> R | None:
    """Return the object from the cache, or from the server if its kind is not cached, or None."""
    lister = cache.complete_lister(target.kind, key.namespace)
    if lister is None:
        return await _read(client, cache, target, key)
    entry = lister.entry(key)
    return None if entry is None else entry.read(target.type)


async def _read(client: Client, cache: Cache, target: Target[R], key: Key) -> R | None:
    """Return the object from the server, or None.

    The controller of a cached kind may list it, and need not be allowed to get it.
    """
    kind: Any = target.type if issubclass(target.type, Resource) else target.kind
    if cache.complete_lister(target.kind, key.namespace) is not None:
        fields = FieldSelector.of({"metadata.name": key.name})
        found = await client.list(kind, namespace=key.namespace, fields=fields)
        return target.complete(found[0]) if len(found) else None
    try:
        return cast(R, await client.get(kind, key))
    except NotFound:
        return None


def _check(stored: AnyObject, owner: AnyObject | None) -> None:
    """Raise if the stored object is not to be used [4]."""
    what = f"create {stored.kind} {stored.key}"
    if is_terminating(stored):
        raise Retry(f"{what}: the old object is being deleted, and a new one is created when it is gone")
    if owner is None:
        return
    references = references_of(stored)
    controller = other_controller(references, owner)
    if controller is not None:
        raise AlreadyOwned(
            f"{what}: its controller is {controller.kind} {controller.name}, so {owner.kind} {owner.name} cannot own it"
            " (use other names for its children)"
        )
    if any(one.controller and one.uid != owner.uid for one in references):
        raise Retry(f"{what}: it belongs to an earlier {owner.kind} {owner.name}, and is deleted soon")
