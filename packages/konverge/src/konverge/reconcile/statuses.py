"""Writes of the status of an object, only if it differs.

Rules that hold here:

1. Only the difference to the object that was read is sent, with its resourceVersion as a precondition. Fields that the
   class does not have are kept.
2. The transition time of a condition is that of its last change of status. A newer transition time alone is not a
   difference, and is not written.
3. An edit of any other field would be lost without a trace. It is an error.
4. An unstructured object does not hold its original state. It is compared with the cached object of the same version,
   or with the object on the server. It is never sent as a whole: managedFields that the cache leaves out would be lost.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec

from konverge.cache import Cache
from konverge.client import Client
from konverge.client.targets import Target, resolve_object_target
from konverge.objects import AnyObject, Resource, Unstructured, full_object, full_object_from, is_changed, merge_patch
from konverge.reconcile.changed_fields import changed_fields

__all__ = ["update_status"]

R = TypeVar("R", bound=AnyObject)

_MAX_PATHS = 5
_ADDED = (".apiVersion", ".kind")
"""Fields that an object from a list may lack; they cannot be changed."""

_decode = msgspec.json.Decoder().decode


async def update_status(client: Client, obj: R, *, cache: Cache | None = None) -> R:
    """Patch the status of an edited object, if it differs; return the current object.

    Raises: Conflict when the object has changed since it was read: read it again and decide again; ValueError for an
    object that was not read from the server, and when another field than the status was edited.
    """
    if not obj.resource_version or (isinstance(obj, Resource) and obj.source is None):
        raise ValueError(
            f"update status of {obj.kind} {obj.key}: it was not read from the server (edit an object that was read)"
        )
    if isinstance(obj, Resource) and not is_changed(obj):
        return obj
    target: Target[R] = await resolve_object_target(obj, client.discovery)
    original = await _original(client, obj, target, cache)
    edited = full_object_from(obj, original) if isinstance(obj, Resource) else full_object(obj)
    is_same_version = Unstructured(original).resource_version == obj.resource_version
    if is_same_version and not _shares_all_but_status(original, edited):
        _check_edits(obj, original, edited)
    before, after = original.get("status") or {}, edited.get("status") or {}
    patch = merge_patch(before, {**after, **_with_transition_times(before, after)})
    if not patch:
        return obj
    body = {"metadata": {"resourceVersion": obj.resource_version}, "status": patch}
    kind: Any = target.type if issubclass(target.type, Resource) else target.kind
    return cast(R, await client.patch(kind, obj.key, body, subresource="status"))


def _shares_all_but_status(original: dict[str, Any], edited: dict[str, Any]) -> bool:
    """Report whether nothing but the status can differ: fields without edits are the same values."""
    return original.keys() - {"status"} == edited.keys() - {"status"} and all(
        value is original[name] for name, value in edited.items() if name != "status"
    )


def _check_edits(obj: AnyObject, original: dict[str, Any], edited: dict[str, Any]) -> None:
    """Raise if another field than the status was edited [3]."""
    paths = [path for path in changed_fields(original, edited) if path not in _ADDED]
    if paths:
        raise ValueError(
            f"update status of {obj.kind} {obj.key}: {', '.join(paths[:_MAX_PATHS])} was edited too, and only the"
            " status is written (write other edits with ctx.client.update, or make them in a copy)"
        )


async def _original(client: Client, obj: AnyObject, target: Target[Any], cache: Cache | None) -> dict[str, Any]:
    """Return the object as it was read, as JSON values [4]."""
    if isinstance(obj, Resource):
        assert obj.source is not None
        return cast(dict[str, Any], _decode(obj.source))
    entry = None if cache is None else cache.entry(target.kind, obj.key)
    if entry is not None and str(entry.version) == obj.resource_version:
        return cast(dict[str, Any], _decode(entry.json))
    return await client.get(target.kind, obj.key)


def _with_transition_times(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the new conditions with the old transition times where the status is unchanged [2], or {}."""
    new = after.get("conditions")
    if not isinstance(new, list):
        return {}
    old = {one["type"]: one for one in before.get("conditions") or () if isinstance(one, dict) and "type" in one}
    return {
        "conditions": [
            _with_transition_time(old.get(one.get("type")), one) if isinstance(one, dict) else one for one in new
        ]
    }


def _with_transition_time(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    since = None if old is None or old.get("status") != new.get("status") else old.get("lastTransitionTime")
    return new if since is None else {**new, "lastTransitionTime": since}
