"""What a response says about an object that is being deleted: is it gone, or does it wait for something?

A server answers a delete in one of three ways:

- with a Status that has the uid, when the object is gone;
- with the last state of the object, when it is gone and its kind returns it (Service, ServiceAccount);
- with the object and its deletionTimestamp, when it waits for finalizers or for its grace period.

The response of the write that removes the last finalizer has a deletionTimestamp and nothing left to wait for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from konverge.cache.entries import parse_version

__all__ = ["Deletion", "parse_delete_response", "was_deleted"]

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Deletion(NamedTuple):
    """A deleted object: its uid, "" when the response has none, and a version that it had, 0 when unknown."""

    uid: str
    version: int


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] | None = None


class _Details(msgspec.Struct, gc=False):
    uid: str = ""


class _Response(msgspec.Struct, gc=False):
    kind: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    details: _Details | None = None
    spec: Any = None


_decode_response = msgspec.json.Decoder(_Response).decode


def was_deleted(raw: bytes) -> bool:
    """Report whether a write deleted its object: its response has a deletionTimestamp and nothing left to wait for."""
    if b'"deletionTimestamp"' not in raw:
        return False
    try:
        response = _decode_response(raw)
    except _UNREADABLE:
        return False
    return response.metadata.deletion_timestamp is not None and not _is_waiting(response)


def parse_delete_response(raw: bytes) -> Deletion | None:
    """Parse the response of a delete; return None when the object still exists."""
    try:
        response = _decode_response(raw)
    except _UNREADABLE:
        return Deletion("", 0)
    if response.kind == "Status":
        return Deletion(response.details.uid if response.details is not None else "", 0)
    if _is_waiting(response):
        return None
    return Deletion(response.metadata.uid, parse_version(response.metadata.resource_version) or 0)


def _is_waiting(response: _Response) -> bool:
    metadata = response.metadata
    # A namespace also has finalizers in its spec.
    in_spec = isinstance(response.spec, dict) and bool(response.spec.get("finalizers"))
    return bool(metadata.finalizers or metadata.deletion_grace_period_seconds or in_spec)
