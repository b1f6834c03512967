"""What was applied last, in a few bytes for each object.

Rules that hold here:

1. A memo is of one object, by uid: an object made anew is not remembered.
2. The desired state and the values that came of it are kept as hashes, never as themselves: a Secret is not copied.
3. Objects that are gone do not stay: each new memo looks at two old ones, and drops those whose object is gone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import msgspec

from konverge.objects import Key, Kind

__all__ = ["Memo", "Memory", "hash_of", "hash_of_rest"]

_LOOKS = 2
"""How many old memos a new one looks at: two, so that what is dropped outruns what comes."""

_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_steady = msgspec.json.Encoder(order="deterministic").encode


def hash_of(value: Any) -> bytes:
    """Give a short hash of JSON values; equal ones have equal hashes."""
    return blake2b(_steady(value), digest_size=16).digest()


def hash_of_rest(document: bytes) -> bytes:
    """Give a short hash of an object as a cache holds it, without its status and its version."""
    parts = _parts(document)
    parts.pop("status", None)
    metadata = _parts(parts.pop("metadata"))
    metadata.pop("resourceVersion", None)
    found = blake2b(digest_size=16)
    for name, value in (*metadata.items(), *parts.items()):
        found.update(name.encode())
        found.update(value)
    return found.digest()


class Memo(msgspec.Struct, frozen=True, gc=False):
    """One apply: what was wanted, what the owned fields held after it, and a version at which they still did."""

    uid: str
    desired: bytes
    values: bytes
    version: str
    rest: bytes = b""  # of all but status and version, when it was looked at: what has not changed need not be again


class Memory:
    """The memos of a process, by kind and key; shared by all who apply as one field manager.

    Promise: it holds at most about twice as many memos as there are objects.
    """

    def __init__(self) -> None:
        self._memos: OrderedDict[tuple[Kind, Key], Memo] = OrderedDict()

    def recall(self, kind: Kind, key: Key, *, uid: str) -> Memo | None:
        """Give the memo of an object; None when it is not remembered."""
        memo = self._memos.get((kind, key))
        return memo if memo is not None and memo.uid == uid else None

    def remember(self, kind: Kind, key: Key, memo: Memo, *, is_gone: Callable[[Kind, Key], bool]) -> None:
        """Keep a memo in place of the last one; `is_gone` tells of others whether their object is no longer there."""
        if (kind, key) not in self._memos:
            self._look_at_some(is_gone)
        self._memos[kind, key] = memo

    def forget(self, kind: Kind, key: Key) -> None:
        """Drop the memo of an object, if there is one."""
        self._memos.pop((kind, key), None)

    def __len__(self) -> int:
        return len(self._memos)

    def _look_at_some(self, is_gone: Callable[[Kind, Key], bool]) -> None:
        for place in [place for place, _ in zip(self._memos, range(_LOOKS), strict=False)]:
            if is_gone(*place):
                del self._memos[place]
            else:
                self._memos.move_to_end(place)
