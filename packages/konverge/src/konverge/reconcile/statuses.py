"""Status: what a controller says of an object, written only when it says something new.

Rules that hold here:

1. Only the difference to what was read is sent, bound to the version that was read. What the class does not know stays.
2. The transition time of a condition is that of its last change of status: a newer one alone is no news, and is not
   written.
3. An untyped object does not know what it was: it is compared with what readers see at its version, else with a fresh
   read. It is never sent whole, since managedFields that a cache has left out would be lost.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec

from konverge.cache import Cache
from konverge.client import Client
from konverge.client.targets import Target, target_of_object
from konverge.objects import AnyObject, Resource, merge_patch, whole

__all__ = ["update_status"]

R = TypeVar("R", bound=AnyObject)

_plain = msgspec.json.Decoder().decode


async def update_status(client: Client, obj: R, *, cache: Cache | None = None) -> R:
    """Write the status of an edited object, if it says something new; give the object as it is now.

    Raises: Conflict when somebody else wrote meanwhile: read again and decide again; ValueError for an object that was
    not read.
    """
    if not obj.resource_version or (isinstance(obj, Resource) and obj.source is None):
        raise ValueError(f"update status of {obj.kind} {obj.key}: it was made here, not read (edit what was read)")
    target: Target[R] = await target_of_object(obj, client.discovery)
    before = (await _before(client, obj, target, cache)).get("status") or {}
    after = whole(obj).get("status") or {}
    patch = merge_patch(before, {**after, **_steady_conditions(before, after)})
    if not patch:
        return obj
    wish = {"metadata": {"resourceVersion": obj.resource_version}, "status": patch}
    kind: Any = target.type if issubclass(target.type, Resource) else target.kind
    return cast(R, await client.patch(kind, obj.key, wish, subresource="status"))


async def _before(client: Client, obj: AnyObject, target: Target[Any], cache: Cache | None) -> dict[str, Any]:
    """Give the object as it was read, in plain JSON values [3]."""
    if isinstance(obj, Resource):
        assert obj.source is not None
        return cast(dict[str, Any], _plain(obj.source))
    entry = None if cache is None else cache.entry(target.kind, obj.key)
    if entry is not None and str(entry.version) == obj.resource_version:
        return cast(dict[str, Any], _plain(entry.json))
    return await client.get(target.kind, obj.key)


def _steady_conditions(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Give the conditions with the transition times of those whose status stayed [2]; nothing when there are none."""
    new = after.get("conditions")
    if not isinstance(new, list):
        return {}
    old = {one["type"]: one for one in before.get("conditions") or () if isinstance(one, dict) and "type" in one}
    return {"conditions": [_steady(old.get(one.get("type")), one) if isinstance(one, dict) else one for one in new]}


def _steady(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    since = None if old is None or old.get("status") != new.get("status") else old.get("lastTransitionTime")
    return new if since is None else {**new, "lastTransitionTime": since}
