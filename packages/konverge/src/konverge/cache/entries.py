"""Entries: one object as the cache stores it, its JSON and the few fields that the cache itself needs.

Rules that every change to this file keeps:

1. The JSON is stored as it arrived. Each read decodes a new object, so no reader can change the cache.
2. An entry is immutable. The next state of an object is another entry.
3. Values that many entries share (labels, owners, namespaces, managedFields) are stored once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import msgspec

from konverge.objects import Key, OwnerReference, decoder_for

__all__ = ["CompressedEntry", "Entry", "SharedFieldsEntry", "Version", "parse_version"]

T = TypeVar("T")

_OWNER = b"\0"
_MAX_DIGITS = 100
"""The most digits of a version that counts as a number; etcd has 19, and Python converts at most some thousand."""

Version: TypeAlias = int | str
"""A resourceVersion: a number in the order of changes; if it is not a number, a string that compares only for equality.
"""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """The state of one object at one version.

    `labels` alternates keys and values, and `owners` has the uids of the owner references. Both are tuples, so that
    entries can share them. `terminating` is True once the object has a deletionTimestamp.
    """

    key: Key
    uid: str
    version: Version
    generation: int
    labels: tuple[str, ...]
    owners: tuple[str, ...]
    terminating: bool
    data: bytes

    @property
    def json(self) -> bytes:
        """The JSON of the object."""
        return self.data

    @property
    def size(self) -> int:
        """The number of bytes stored for the JSON."""
        return len(self.data)

    def read(self, type_: type[T]) -> T:
        """Decode the object into a type; each call returns a new object.

        Raises: DecodeError when the object does not match the type.
        """
        return decoder_for(type_)(self.json)

    def label_map(self) -> dict[str, str]:
        """Return the labels as a new dict."""
        return dict(zip(self.labels[::2], self.labels[1::2], strict=True))

    def owner_references(self) -> list[OwnerReference]:
        """Decode the owner references."""
        return self.read(_Owned).metadata.ownerReferences or [] if self.owners else []


class CompressedEntry(Entry, frozen=True, gc=False):
    """An entry whose JSON is stored compressed."""

    decompress: Callable[[bytes], bytes]

    @property
    def json(self) -> bytes:
        """The JSON of the object, decompressed."""
        return self.decompress(self.data)


class SharedFieldsEntry(Entry, frozen=True, gc=False):
    """An entry whose managedFields are stored once for all objects with equal ones.

    Children of the same sort have the same managedFields except for the uid of their owner. A zero byte stands for it.
    """

    managed: bytes
    offset: int  # where the managedFields belong in the data

    @property
    def json(self) -> bytes:
        """The JSON of the object, with its managedFields inserted."""
        owner = self.owners[0].encode() if self.owners else b""
        return b"".join((self.data[: self.offset], self.managed.replace(_OWNER, owner), self.data[self.offset :]))


class _OwnedMetadata(msgspec.Struct):
    ownerReferences: list[OwnerReference] | None = None  # noqa: N815


class _Owned(msgspec.Struct):
    metadata: _OwnedMetadata


def parse_version(version: str) -> int | None:
    """Return a resourceVersion as a number; None when it is not one, and versions compare only for equality."""
    return int(version) if len(version) <= _MAX_DIGITS and version.isascii() and version.isdigit() else None
