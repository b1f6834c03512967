"""What comes in: JSON as the server sent it becomes an entry.

Of the document only metadata is decoded; spec and status are skipped over. Rules that hold here:

1. Of managedFields only what our own manager applied stays; all else is cut out of the bytes, and nothing moves.
2. Items of lists come without apiVersion and kind: they are put in, so that every entry says what it is.
3. Only an object without a readable name and version is refused. Whatever else is odd about one is kept, and odd.
4. A transform that fails leaves the object as it came, and says so in the log.
5. Of what our own manager applied the time is left out, and the rest is held once for all objects that have it alike.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from konverge.cache.compression import Packer
from konverge.cache.entries import Entry, PackedEntry, SharingEntry, number_of
from konverge.errors import DecodeError
from konverge.objects import Key, Kind, Unstructured, decode_unstructured, encode

__all__ = ["Decoder", "Transform"]

_log = logging.getLogger("konverge.cache")

Transform = Callable[[Unstructured], Any]
"""Changes an object before it is kept; what it gives is kept, or, when it gives None, the object that it changed."""

_NOTHING = msgspec.Raw(b"")
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_POOLED = 512
"""So many distinct labels and owners are known at once, and as many that were met before them. Objects that share some
mostly come one after the other, and so do the states of one; where nothing is shared, these are held for nothing."""

_MANAGED = b'"managedFields":'
_METADATA = b'"metadata":'


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    name: str
    resource_version: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    labels: msgspec.Raw = _NOTHING
    owner_references: msgspec.Raw = _NOTHING
    deletion_timestamp: str | None = None
    managed_fields: msgspec.Raw = _NOTHING


class _Head(msgspec.Struct, gc=False):
    metadata: _Metadata
    kind: str = ""


class _OddHead(msgspec.Struct, gc=False):
    metadata: dict[str, Any]
    kind: Any = None


class _Owner(msgspec.Struct, gc=False):
    uid: str = ""


class _Manager(msgspec.Struct, gc=False):
    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: str = ""


class _OnlyMetadata(msgspec.Struct, gc=False):
    metadata: msgspec.Raw


_head = msgspec.json.Decoder(_Head).decode
_odd_head = msgspec.json.Decoder(_OddHead).decode
_labels = msgspec.json.Decoder(dict[str, str] | None).decode
_owners = msgspec.json.Decoder(list[_Owner] | None).decode
_raw_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_manager = msgspec.json.Decoder(_Manager).decode
_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_only_metadata = msgspec.json.Decoder(_OnlyMetadata).decode


class Decoder:
    """Makes entries of one kind."""

    def __init__(
        self,
        kind: Kind,
        *,
        manager: str = "",
        ordered: bool = True,
        metadata_only: bool = False,
        transform: Transform | None = None,
        packer: Packer | None = None,
    ) -> None:
        self._kind = kind
        self._title = b'{"apiVersion":%b,"kind":%b,' % (encode(kind.api_version), encode(kind.kind))
        self._manager = manager
        self._manager_mark = encode(manager) if manager else b""
        self._ordered = ordered
        self._metadata_only = metadata_only
        self._transform = transform
        self._packer = packer
        self._unpack = None if packer is None else packer.unpack  # one for all entries: each look-up makes another
        self._plain = not (metadata_only or transform or packer)
        self._pool: dict[bytes, tuple[str, ...]] = {}
        self._managed: dict[bytes, bytes] = {}
        self._older: dict[bytes, tuple[str, ...]] = {}  # the pool before it was full the last time

    def take(self, raw: bytes, known: Callable[[Key], Entry | None] | None = None) -> Entry:
        """Make an entry; where `known` has one of this version and uid already, give that one.

        Raises: DecodeError when there is no name or version to be read.
        """
        head = self._head(raw)
        metadata = head.metadata
        key = Key(sys.intern(metadata.namespace), metadata.name)
        number = number_of(metadata.resource_version) if self._ordered else None
        version = metadata.resource_version if number is None else number
        if known is not None:
            old = known(key)
            if old is not None and old.version == version and old.uid == metadata.uid:
                return old
        data, managed, place = raw, b"", 0
        if metadata.managed_fields:
            data, managed, place = self._cut(raw, bytes(metadata.managed_fields))
        if not head.kind:
            place -= data.index(b"{") + 1 - len(self._title)
            data = self._title + data[data.index(b"{") + 1 :]
        if not self._plain:
            data = self._shape(data, key)
        labels, owners = self._labels(metadata.labels), self._owners(metadata.owner_references)
        deleting = metadata.deletion_timestamp is not None
        facts = (key, metadata.uid, version, metadata.generation, labels, owners, deleting, data)
        if managed:
            return SharingEntry(*facts, self._shared_managed(managed, owners), place)
        return Entry(*facts) if self._packer is None else self.pack(Entry(*facts))

    def pack(self, entry: Entry) -> Entry:
        """Give an entry compressed, once there is a dictionary; else as it is."""
        packer, unpack = self._packer, self._unpack
        if packer is None or unpack is None or not packer.ready or isinstance(entry, PackedEntry):
            return entry
        facts = {name: getattr(entry, name) for name in Entry.__struct_fields__}
        return PackedEntry(**facts | {"data": packer.pack(entry.data)}, unpack=unpack)

    def _head(self, raw: bytes) -> _Head:
        try:
            head = _head(raw)
        except _UNREADABLE as error:
            head = self._odd_head(raw, error)
        if not head.metadata.name or (self._ordered and not head.metadata.resource_version):
            raise DecodeError(f"{self._kind.kind} without a name or a resourceVersion", path=".metadata")
        return head

    def _odd_head(self, raw: bytes, error: Exception) -> _Head:
        """Read metadata in which something has a type that the API does not know."""
        try:
            odd = _odd_head(raw)
        except _UNREADABLE:
            words = f"{self._kind.kind} without metadata that can be read: {_words(error)}"
            raise DecodeError(words, path=".metadata") from error
        found = odd.metadata
        metadata = _Metadata(
            name=_text(found.get("name")),
            resource_version=_text(found.get("resourceVersion")),
            namespace=_text(found.get("namespace")),
            uid=_text(found.get("uid")),
            labels=_raw(found.get("labels")),
            owner_references=_raw(found.get("ownerReferences")),
            deletion_timestamp=None if found.get("deletionTimestamp") is None else "",
            managed_fields=_raw(found.get("managedFields")),
        )
        return _Head(metadata, _text(odd.kind))

    def _shape(self, data: bytes, key: Key) -> bytes:
        if self._metadata_only:
            data = self._title + _METADATA + bytes(_only_metadata(data).metadata) + b"}"
        if self._transform is not None:
            data = self._transformed(data, self._transform, key)
        if self._packer is not None:
            self._packer.learn(data)
        return data

    def _transformed(self, data: bytes, transform: Transform, key: Key) -> bytes:
        try:
            obj = decode_unstructured(data)
            given = transform(obj)
            return encode(obj if given is None else given)
        except Exception:
            _log.exception("A transform failed", extra={"kind": str(self._kind), "key": str(key)})
            return data

    def _labels(self, raw: msgspec.Raw) -> tuple[str, ...]:
        text = bytes(raw)
        found = self._pool.get(text)
        return self._share(text, _label_parts) if found is None else found

    def _owners(self, raw: msgspec.Raw) -> tuple[str, ...]:
        text = bytes(raw)
        found = self._pool.get(text)
        return self._share(text, _owner_uids) if found is None else found

    def _share(self, text: bytes, read: Callable[[bytes], list[str]]) -> tuple[str, ...]:
        if len(self._pool) >= _POOLED:
            self._older, self._pool = self._pool, {}
        found = self._older.get(text)
        if found is None:
            try:
                found = tuple(map(sys.intern, read(text))) if text else ()
            except _UNREADABLE:
                found = ()
        self._pool[text] = found
        return found

    def _shared_managed(self, managed: bytes, owners: tuple[str, ...]) -> bytes:
        """Give managedFields as they are held, the same bytes for the same fields [5]."""
        if owners:
            managed = managed.replace(owners[0].encode(), b"\0")
        if len(self._managed) >= _POOLED:
            self._managed = {}
        return self._managed.setdefault(managed, managed)

    def _cut(self, raw: bytes, managers: bytes) -> tuple[bytes, bytes, int]:
        """Give the document without managedFields, and what of them is to be held beside it, and its place; or b""."""
        ours = self._ours(managers)
        # Metadata has them, so where the document holds such a field once, that is the place.
        start = raw.find(_MANAGED)
        place = start + len(_MANAGED)
        end = place + len(managers)
        if not raw.startswith(managers, place) or raw.find(_MANAGED, end) >= 0:
            return _rebuilt(raw, ours), b"", 0
        if ours and self._plain:
            return raw[:place] + raw[end:], ours, place
        if ours:
            return b"".join((raw[:place], ours, raw[end:])), b"", 0
        if raw[start - 1] == ord(","):
            return raw[: start - 1] + raw[end:], b"", 0
        return raw[:start] + raw[end:].removeprefix(b","), b"", 0

    def _ours(self, managers: bytes) -> bytes:
        """Give what our own manager applied as JSON; b"" when that is nothing."""
        if not self._manager_mark or self._manager_mark not in managers:
            return b""
        try:
            found = [(bytes(one), _manager(one)) for one in _raw_items(managers)]
        except _UNREADABLE:
            return b""
        kept = [_without_time(text, one.time) for text, one in found if self._is_applied(one)]
        return b"[" + b",".join(kept) + b"]" if kept else b""

    def _is_applied(self, one: _Manager) -> bool:
        return one.manager == self._manager and one.operation == "Apply" and not one.subresource


def _label_parts(text: bytes) -> list[str]:
    return [part for label in (_labels(text) or {}).items() for part in label]


def _owner_uids(text: bytes) -> list[str]:
    return [owner.uid for owner in _owners(text) or () if owner.uid]


def _without_time(text: bytes, time: str) -> bytes:
    """Leave out when the fields were applied, which nobody asks for and which no two objects have in common."""
    field = b'"time":"%b"' % time.encode()
    return text.replace(field + b",", b"", 1) if field + b"," in text else text.replace(b"," + field, b"", 1)


def _rebuilt(raw: bytes, managers: bytes) -> bytes:
    """Do the same to a document in an unusual order or with spaces in it."""
    document = _raw_fields(raw)
    metadata = _raw_fields(document["metadata"])
    if managers:
        metadata["managedFields"] = msgspec.Raw(managers)
    else:
        del metadata["managedFields"]
    document["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
    return msgspec.json.encode(document)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value)) if value else _NOTHING


def _words(error: Exception) -> str:
    # Only what msgspec says of types and paths: the text itself may be a secret.
    return str(error).replace("`", "") if isinstance(error, msgspec.ValidationError) else type(error).__name__
