"""The last applied state of each object, in a few bytes.

Rules that hold here:

1. A state belongs to one object, by uid: an object that was created again has none.
2. The desired state and the resulting values are stored as hashes, or as an entry of the cache if that is small and
   not a Secret: a Secret is not kept for longer than by the cache.
3. Objects that are gone are dropped: each new state checks two old ones, and drops those whose object is gone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import msgspec

from konverge.cache import Entry
from konverge.objects import Key, Kind

__all__ = ["AppliedState", "LastApplied", "hash_bytes", "hash_json", "hash_without_status"]

_CHECKS = 2
"""How many old states a new one checks: with two, states are dropped faster than new ones arrive."""

_decode_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder(order="deterministic").encode


def hash_json(value: Any) -> bytes:
    """Return a short hash of JSON values; equal values have equal hashes."""
    return hash_bytes(_encode(value))


def hash_bytes(data: bytes) -> bytes:
    """Return a short hash of bytes."""
    return blake2b(data, digest_size=16).digest()


def hash_without_status(document: bytes) -> bytes:
    """Return a short hash of an object as the cache holds it, without its status and its version."""
    parts = _decode_parts(document)
    parts.pop("status", None)
    metadata = _decode_parts(parts.pop("metadata"))
    metadata.pop("resourceVersion", None)
    digest = blake2b(digest_size=16)
    for name, value in (*metadata.items(), *parts.items()):
        digest.update(name.encode())
        digest.update(value)
    return digest.digest()


class AppliedState(msgspec.Struct, frozen=True, gc=False):
    """One apply: the desired state, the values of the owned fields after it, and a version that still has them.

    With `entry`, the object at that version, `values` are not known yet: few applied objects change before they are
    applied again, so they are computed when they are needed. The cache mostly has the same entry; after a change or a
    delete the state alone holds it, until the object is applied again or the state is dropped.
    """

    uid: str
    desired: bytes
    version: str
    values: bytes = b""
    content: bytes = b""  # hash without status and version: equal content is not compared again
    entry: Entry | None = None


class LastApplied:
    """The last applied states of a process, by kind and key; shared by all appliers of one field manager.

    Promise: it holds at most about twice as many states as there are objects, or `unchecked` if that is more: up to
    this number nothing checks which objects still exist.
    """

    def __init__(self, *, unchecked: int = 100) -> None:
        self._unchecked = unchecked
        self._states: OrderedDict[tuple[Kind, Key], AppliedState] = OrderedDict()

    def get(self, kind: Kind, key: Key, *, uid: str) -> AppliedState | None:
        """Return the state of an object, or None."""
        state = self._states.get((kind, key))
        return state if state is not None and state.uid == uid else None

    def set(self, kind: Kind, key: Key, state: AppliedState, *, is_gone: Callable[[Kind, Key], bool]) -> None:
        """Replace the state of an object; `is_gone` reports whether another object no longer exists."""
        if len(self._states) >= self._unchecked and (kind, key) not in self._states:
            self._drop_gone(is_gone)
        self._states[kind, key] = state

    def forget(self, kind: Kind, key: Key) -> None:
        """Drop the state of an object, if there is one."""
        self._states.pop((kind, key), None)

    def __len__(self) -> int:
        return len(self._states)

    def _drop_gone(self, is_gone: Callable[[Kind, Key], bool]) -> None:
        for obj in [obj for obj, _ in zip(self._states, range(_CHECKS), strict=False)]:
            if is_gone(*obj):
                del self._states[obj]
            else:
                self._states.move_to_end(obj)
