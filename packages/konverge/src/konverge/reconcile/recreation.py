"""Making an object anew when it cannot be changed: some fields are immutable, and only a new object can hold others.

Nothing is deleted on a guess. The server is asked first, by a dry run, whether it would create what is wanted: it says
that the name is taken if nothing else is wrong. Whatever is invalid in itself is refused here too, and nothing is lost.
"""

from __future__ import annotations

from typing import Any, Literal

from konverge.client import Client
from konverge.errors import AlreadyExists, Invalid, NotFound
from konverge.objects import AnyObject
from konverge.reconcile.finalizers import is_deleting

__all__ = ["clear_the_way"]


async def clear_the_way(
    client: Client,
    wanted: AnyObject,
    refusal: Invalid,
    *,
    reading: Any,
    how: Literal["Background", "Foreground", "Orphan"],
) -> None:
    """Delete the object that is in the way of what is wanted, which the server refused to make of it.

    Raises: the refusal, when a new object would be refused as well; AlreadyExists when the old one is not gone yet.
    """
    try:
        found = await client.get(reading, wanted.key)
    except NotFound:
        return
    if is_deleting(found):
        raise _still_there(wanted) from refusal
    try:
        await client.using(dry_run=True).create(wanted)
    except AlreadyExists:
        pass
    except Invalid:
        raise refusal from None
    await client.delete(found, propagation=how, missing_ok=True)
    try:
        await client.get(reading, wanted.key)
    except NotFound:
        return
    raise _still_there(wanted) from refusal


def _still_there(wanted: AnyObject) -> AlreadyExists:
    words = "the old object is being deleted, and a new one is made when it is gone"
    return AlreadyExists(words, status=409, reason="AlreadyExists", verb="apply", kind=wanted.kind, key=str(wanted.key))
