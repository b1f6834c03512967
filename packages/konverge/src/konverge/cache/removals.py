"""What a response says about an object that goes: is it gone already, or does it wait for something?

A server answers a delete in one of three ways: with a Status that names the uid, when the object is gone; with the
object as it was last, when it is gone and its kind is one that is given back (Service, ServiceAccount); with the object
marked, when it waits for finalizers or for its grace period. The write that takes the last finalizer away shows the
object marked, with nothing left to wait for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from konverge.cache.entries import number_of

__all__ = ["Removal", "is_leaving", "read_removal"]

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Removal(NamedTuple):
    """An object that is gone: its uid, "" when the server did not say, and a version that it had, 0 when unknown."""

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


class _Answer(msgspec.Struct, gc=False):
    kind: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    details: _Details | None = None
    spec: Any = None


_answer = msgspec.json.Decoder(_Answer).decode


def is_leaving(raw: bytes) -> bool:
    """Tell whether the response of a write shows an object that is gone by it: marked, and with nothing to wait for."""
    if b'"deletionTimestamp"' not in raw:
        return False
    try:
        answer = _answer(raw)
    except _UNREADABLE:
        return False
    return answer.metadata.deletion_timestamp is not None and not _waits(answer)


def read_removal(raw: bytes) -> Removal | None:
    """Read the response of a delete; None when the object is still there."""
    try:
        answer = _answer(raw)
    except _UNREADABLE:
        return Removal("", 0)
    if answer.kind == "Status":
        return Removal(answer.details.uid if answer.details is not None else "", 0)
    if _waits(answer):
        return None
    return Removal(answer.metadata.uid, number_of(answer.metadata.resource_version) or 0)


def _waits(answer: _Answer) -> bool:
    metadata = answer.metadata
    # A namespace has finalizers of its own sort, in its spec.
    in_spec = isinstance(answer.spec, dict) and bool(answer.spec.get("finalizers"))
    return bool(metadata.finalizers or metadata.deletion_grace_period_seconds or in_spec)
