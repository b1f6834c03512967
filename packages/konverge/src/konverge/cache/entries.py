"""Entries: one object as the cache holds it, its JSON and the few facts that the machinery asks for.

Rules that hold here:

1. The JSON is kept as it came; reading it as a type makes a new object each time, so nobody can change the cache.
2. An entry never changes. The next state of an object is another entry.
3. What many entries share (labels, owners, namespaces, managedFields) is held once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import msgspec

from konverge.objects import Key, OwnerReference, reader_of

__all__ = ["Entry", "PackedEntry", "SharingEntry", "Version", "number_of"]

T = TypeVar("T")

_OWNER = b"\0"

Version: TypeAlias = int | str
"""A resourceVersion: a number, in the order of changes; where it is none, text that compares for equality only."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """The state of one object at one version.

    `labels` is keys and values in turn, and `owners` the uids of the owner references: tuples, which entries share.
    """

    key: Key
    uid: str
    version: Version
    generation: int
    labels: tuple[str, ...]
    owners: tuple[str, ...]
    deleting: bool
    data: bytes

    @property
    def json(self) -> bytes:
        """The JSON of the object."""
        return self.data

    @property
    def size(self) -> int:
        """How many bytes are held for the JSON."""
        return len(self.data)

    def read(self, type_: type[T]) -> T:
        """Make an object of a type from it, the caller's own.

        Raises: DecodeError when the object does not fit the type.
        """
        return reader_of(type_)(self.json)

    def label_map(self) -> dict[str, str]:
        """Give the labels as a map of its own."""
        return dict(zip(self.labels[::2], self.labels[1::2], strict=True))

    def owner_references(self) -> list[OwnerReference]:
        """Read the owner references."""
        return self.read(_Owned).metadata.ownerReferences or [] if self.owners else []


class PackedEntry(Entry, frozen=True, gc=False):
    """An entry whose JSON is held compressed."""

    unpack: Callable[[bytes], bytes]

    @property
    def json(self) -> bytes:
        """The JSON of the object, decompressed."""
        return self.unpack(self.data)


class SharingEntry(Entry, frozen=True, gc=False):
    """An entry whose managedFields are held once for all objects that have them alike.

    Children of one sort own the same fields, save for the uid of their owner: a zero byte stands for it.
    """

    managed: bytes
    place: int  # where in the data they belong

    @property
    def json(self) -> bytes:
        """The JSON of the object, put together."""
        owner = self.owners[0].encode() if self.owners else b""
        return b"".join((self.data[: self.place], self.managed.replace(_OWNER, owner), self.data[self.place :]))


class _OwnedMetadata(msgspec.Struct):
    ownerReferences: list[OwnerReference] | None = None  # noqa: N815


class _Owned(msgspec.Struct):
    metadata: _OwnedMetadata


def number_of(version: str) -> int | None:
    """Give a resourceVersion as a number; None when it is none, and versions only compare for equality."""
    return int(version) if version.isascii() and version.isdigit() else None
