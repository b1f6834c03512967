"""The decoder: turns the JSON that the server sent into an entry.

Only metadata is decoded; spec and status are skipped. Rules that every change to this file keeps:

1. Of managedFields, only the fields that our own manager applied are stored. The rest is cut out of the bytes, and the
   other fields keep their order.
2. Items of lists arrive without apiVersion and kind. Both are inserted, so that every entry has them.
3. Only an object without a readable name and version is rejected. Any other malformed object is stored as it is.
4. If a transform fails, the object is stored as it arrived and the error is logged.
5. The time is dropped from the fields that our own manager applied. The rest is stored once for all objects with equal
   ones.
"""

from __future__ import annotations

import itertools
import logging
import operator
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from konverge.cache.compression import Compressor
from konverge.cache.entries import CompressedEntry, Entry, SharedFieldsEntry, parse_version
from konverge.errors import DecodeError
from konverge.objects import Key, Kind, Unstructured, decode_unstructured, encode

__all__ = ["Decoder", "Transform"]

_log = logging.getLogger("konverge.cache")

Transform = Callable[[Unstructured], Any]
"""Changes an object before it is stored. Its return value is stored, or the changed object if it returns None."""

_NOTHING = msgspec.Raw(b"")
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_POOL_SIZE = 512
"""How many distinct labels and owners a pool holds; the previous pool holds as many again. Objects that share values
mostly arrive one after the other, and so do the states of one object. The bound limits the cost if nothing is shared.
"""

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


class _UnstructuredHead(msgspec.Struct, gc=False):
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
_unstructured_head = msgspec.json.Decoder(_UnstructuredHead).decode
_labels = msgspec.json.Decoder(dict[str, str] | None).decode
_owners = msgspec.json.Decoder(list[_Owner] | None).decode
_raw_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_manager = msgspec.json.Decoder(_Manager).decode
_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode
_uid_of = operator.methodcaller("get", "uid")
_only_metadata = msgspec.json.Decoder(_OnlyMetadata).decode


class Decoder:
    """Decodes JSON into entries of one kind."""

    def __init__(
        self,
        kind: Kind,
        *,
        manager: str = "",
        ordered: bool = True,
        metadata_only: bool = False,
        transform: Transform | None = None,
        compressor: Compressor | None = None,
    ) -> None:
        self._kind = kind
        self._type_prefix = b'{"apiVersion":%b,"kind":%b,' % (encode(kind.api_version), encode(kind.kind))
        self._manager = manager
        self._manager_json = encode(manager) if manager else b""
        self._ordered = ordered
        self._metadata_only = metadata_only
        self._transform = transform
        self._compressor = compressor
        # One bound method for all entries: each attribute access would create another.
        self._decompress = None if compressor is None else compressor.decompress
        self._plain = not (metadata_only or transform or compressor)
        self._pool: dict[bytes, tuple[str, ...]] = {}
        self._managed: dict[bytes, bytes] = {}
        self._previous_pool: dict[bytes, tuple[str, ...]] = {}

    def decode(
        self, raw: bytes, known: Callable[[Key], Entry | None] | None = None, document: Unstructured | None = None
    ) -> Entry:
        """Decode an entry; return the one from `known` instead if that has the same version and uid.

        An entry from `known` with another version lends its key, and its uid, labels and owners if they are equal.

        With `document`, what `raw` was decoded into, the bytes are not parsed again.

        Raises: DecodeError when the name or the version is missing or unreadable.
        """
        head = None if document is None else self._head_of(document, raw)
        if head is None:
            head, document = self._head(raw), None
        metadata = head.metadata
        key = Key(sys.intern(metadata.namespace), metadata.name)
        number = parse_version(metadata.resource_version) if self._ordered else None
        version = metadata.resource_version if number is None else number
        old = None if known is None else known(key)
        if old is not None and old.version == version and old.uid == metadata.uid:
            return old
        data, managed, offset = raw, b"", 0
        if metadata.managed_fields:
            data, managed, offset = self._split_managed(raw, bytes(metadata.managed_fields), document)
        if not head.kind:
            offset -= data.index(b"{") + 1 - len(self._type_prefix)
            data = self._type_prefix + data[data.index(b"{") + 1 :]
        if not self._plain:
            data = self._reduce(data, key)
        uid, labels, owners = metadata.uid, self._labels(metadata.labels), self._owners(metadata.owner_references)
        if old is not None:
            # Dicts and indexes keep the old key, and pools are small: without this a changed object takes more memory.
            key, uid = old.key, old.uid if uid == old.uid else uid
            labels, owners = (
                old.labels if labels == old.labels else labels,
                old.owners if owners == old.owners else owners,
            )
        terminating = metadata.deletion_timestamp is not None
        fields = (key, uid, version, metadata.generation, labels, owners, terminating, data)
        if managed:
            return SharedFieldsEntry(*fields, self._share_managed(managed, owners), offset)
        return Entry(*fields) if self._compressor is None else self.compress(Entry(*fields))

    def compress(self, entry: Entry) -> Entry:
        """Return a compressed entry if there is a dictionary, else the entry itself."""
        compressor, decompress = self._compressor, self._decompress
        if compressor is None or decompress is None or not compressor.ready or isinstance(entry, CompressedEntry):
            return entry
        fields: dict[str, Any] = {name: getattr(entry, name) for name in Entry.__struct_fields__}
        fields["data"] = compressor.compress(entry.data)
        return CompressedEntry(**fields, decompress=decompress)

    def _head(self, raw: bytes) -> _Head:
        try:
            head = _head(raw)
        except _UNREADABLE as error:
            head = self._unstructured_head(raw, error)
        if not head.metadata.name or (self._ordered and not head.metadata.resource_version):
            raise DecodeError(f"{self._kind.kind} without a name or a resourceVersion", path=".metadata")
        return head

    def _head_of(self, document: Unstructured, raw: bytes) -> _Head | None:
        """Return the head of a decoded document, None if it is unusual: spaces, other escapes, malformed metadata.

        Its labels and owners are added to the pool, so that they are not parsed either.
        """
        try:
            found: dict[str, Any] = document["metadata"]
            managed, labels = _encode(found.get("managedFields") or ()), found.get("labels") or {}
            if (_MANAGED in raw) != (managed != b"[]") or (managed != b"[]" and _MANAGED + managed not in raw):
                return None
            owners = found.get("ownerReferences") or ()
            texts = _encode(labels) if labels else b"", _encode(owners) if owners else b""
            values = itertools.chain.from_iterable(labels.items()), filter(None, map(_uid_of, owners))
            for text, parts in zip(texts, values, strict=True):
                if text not in self._pool and len(self._pool) < _POOL_SIZE:
                    self._pool[text] = tuple(map(sys.intern, parts))
            metadata = _Metadata(
                name=found["name"] + "",  # raises TypeError for anything but a text
                resource_version=found["resourceVersion"] + "",
                namespace=found.get("namespace", "") + "",
                uid=found["uid"] + "",
                generation=found.get("generation", 0) + 0,
                labels=msgspec.Raw(texts[0]),
                owner_references=msgspec.Raw(texts[1]),
                deletion_timestamp=None if found.get("deletionTimestamp") is None else "",
                managed_fields=_NOTHING if managed == b"[]" else msgspec.Raw(managed),
            )
        except (AttributeError, KeyError, TypeError):
            return None
        return _Head(metadata, document.get("kind", ""))

    def _unstructured_head(self, raw: bytes, error: Exception) -> _Head:
        """Decode metadata in which a field has a type that the API does not allow."""
        try:
            head = _unstructured_head(raw)
        except _UNREADABLE:
            text = f"{self._kind.kind} without readable metadata: {_describe(error)}"
            raise DecodeError(text, path=".metadata") from error
        found = head.metadata
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
        return _Head(metadata, _text(head.kind))

    def _reduce(self, data: bytes, key: Key) -> bytes:
        if self._metadata_only:
            data = self._type_prefix + _METADATA + bytes(_only_metadata(data).metadata) + b"}"
        if self._transform is not None:
            data = self._apply_transform(data, self._transform, key)
        if self._compressor is not None:
            self._compressor.add_sample(data)
        return data

    def _apply_transform(self, data: bytes, transform: Transform, key: Key) -> bytes:
        try:
            obj = decode_unstructured(data)
            changed = transform(obj)
            return encode(obj if changed is None else changed)
        except Exception:
            _log.exception("transform failed", extra={"kind": str(self._kind), "key": str(key)})
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
        if len(self._pool) >= _POOL_SIZE:
            self._previous_pool, self._pool = self._pool, {}
        found = self._previous_pool.get(text)
        if found is None:
            try:
                found = tuple(map(sys.intern, read(text))) if text else ()
            except _UNREADABLE:
                found = ()
        self._pool[text] = found
        return found

    def _share_managed(self, managed: bytes, owners: tuple[str, ...]) -> bytes:
        """Return the stored form of managedFields: the same bytes object for equal fields [5]."""
        if owners:
            managed = managed.replace(owners[0].encode(), b"\0")
        if len(self._managed) >= _POOL_SIZE:
            self._managed = {}
        return self._managed.setdefault(managed, managed)

    def _split_managed(self, raw: bytes, managers: bytes, document: Unstructured | None) -> tuple[bytes, bytes, int]:
        """Return the document without managedFields, the part of them to store beside it (or b""), and its offset."""
        own = self._own_managed(managers, None if document is None else document["metadata"]["managedFields"])
        # Metadata has managedFields, so a single occurrence of the field in the document is that one.
        start = raw.find(_MANAGED)
        offset = start + len(_MANAGED)
        end = offset + len(managers)
        if not raw.startswith(managers, offset) or raw.find(_MANAGED, end) >= 0:
            return _rebuild(raw, own), b"", 0
        if own and self._plain:
            return raw[:offset] + raw[end:], own, offset
        if own:
            return b"".join((raw[:offset], own, raw[end:])), b"", 0
        if raw[start - 1] == ord(","):
            return raw[: start - 1] + raw[end:], b"", 0
        return raw[:start] + raw[end:].removeprefix(b","), b"", 0

    def _own_managed(self, managers: bytes, decoded: list[dict[str, Any]] | None = None) -> bytes:
        """Return the managedFields that our own manager applied, as JSON; b"" when there are none."""
        if not self._manager_json or self._manager_json not in managers:
            return b""
        if decoded is not None:
            own = [_encode(_without_time_field(one)) for one in decoded if self._is_own_decoded(one)]
        else:
            try:
                found = [(bytes(raw), _manager(raw)) for raw in _raw_items(managers)]
            except _UNREADABLE:
                return b""
            own = [_without_time(text, manager.time) for text, manager in found if self._is_own_apply(manager)]
        return b"[" + b",".join(own) + b"]" if own else b""

    def _is_own_apply(self, entry: _Manager) -> bool:
        return entry.manager == self._manager and entry.operation == "Apply" and not entry.subresource

    def _is_own_decoded(self, entry: Any) -> bool:
        if not isinstance(entry, dict) or entry.get("manager") != self._manager:
            return False
        return entry.get("operation") == "Apply" and not entry.get("subresource")


def _label_parts(text: bytes) -> list[str]:
    return [part for label in (_labels(text) or {}).items() for part in label]


def _owner_uids(text: bytes) -> list[str]:
    return [owner.uid for owner in _owners(text) or () if owner.uid]


def _without_time(text: bytes, time: str) -> bytes:
    """Remove the time at which the fields were applied: nothing reads it, and it differs in every object."""
    field = b'"time":"%b"' % time.encode()
    return text.replace(field + b",", b"", 1) if field + b"," in text else text.replace(b"," + field, b"", 1)


def _without_time_field(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "time"}


def _rebuild(raw: bytes, managers: bytes) -> bytes:
    """Replace managedFields in a document with an unusual field order or with spaces in it."""
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


def _describe(error: Exception) -> str:
    # Only the types and paths that msgspec names: the value itself may be a secret.
    return str(error).replace("`", "") if isinstance(error, msgspec.ValidationError) else type(error).__name__
