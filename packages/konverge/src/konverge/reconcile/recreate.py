"""Recreation of an object that cannot be changed: some fields are immutable, and only a new object can have others.

Nothing is deleted before the server has accepted the new object in a dry run of its creation: the only error may be
that the name exists. An object that is invalid in itself is rejected by the dry run, and nothing is lost. Only the
object whose change was rejected is deleted: another one of its name, or one that has changed since, is kept.
"""

from __future__ import annotations

from typing import Any, Literal

from konverge.client import Client
from konverge.errors import AlreadyExists, Conflict, Invalid, NotFound
from konverge.objects import AnyObject
from konverge.reconcile.finalizers import is_terminating

__all__ = ["delete_for_recreate"]


async def delete_for_recreate(
    client: Client,
    desired: AnyObject,
    error: Invalid,
    *,
    kind: Any,
    uid: str,
    propagation: Literal["Background", "Foreground", "Orphan"],
) -> None:
    """Delete the live object that could not be changed to the desired one, because of `error`.

    `kind` is the class or kind that it is read as, and `uid` the one that it must have.

    Raises: `error`, when a new object would be rejected as well; AlreadyExists when the old one is not gone yet;
    Conflict when another object has its name.
    """
    try:
        live = await client.get(kind, desired.key)
    except NotFound:
        return
    if live.uid != uid:
        text = "another object has the name now, nothing was deleted"
        raise Conflict(text, status=409, verb="apply", kind=desired.kind, key=str(desired.key)) from error
    if is_terminating(live):
        raise _still_exists(desired) from error
    try:
        await client.using(dry_run=True).create(desired)
    except AlreadyExists:
        pass
    except Invalid:
        raise error from None
    await client.delete(live, propagation=propagation, missing_ok=True, unchanged=True)
    try:
        await client.get(kind, desired.key)
    except NotFound:
        return
    raise _still_exists(desired) from error


def _still_exists(desired: AnyObject) -> AlreadyExists:
    message = "the old object is being deleted, and a new one is created when it is gone"
    return AlreadyExists(
        message, status=409, reason="AlreadyExists", verb="apply", kind=desired.kind, key=str(desired.key)
    )
