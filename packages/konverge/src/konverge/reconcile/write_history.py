"""The writes of one key to one object: in how many reconciles, and which fields they changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from konverge.cache import Cache
from konverge.client import WriteEvent
from konverge.objects import Key, Kind
from konverge.reconcile.changed_fields import changed_fields, hash_content_and_status

__all__ = ["ObjectKey", "WriteHistory"]

ObjectKey: TypeAlias = tuple[Kind, Key]

_COMPARE_FROM: Final = 6  # fields are compared from this number of reconciles on
_MAX_IDLE: Final = 3600.0  # a key that has not written for this long is stable, whatever comes then
_MAX_FIELDS: Final = 5
_OBJECT: Final = frozenset({""})  # the path of the object itself: it did not exist, or it was deleted
_NO_FIELDS: Final[frozenset[str]] = frozenset()


@dataclass(slots=True)
class WriteHistory:
    """The writes of one key to one object.

    A reconcile that does not write the object resets the count, unless the next write produces the same content as the
    last one: then another client has changed the object in between. Promise: only hashes are stored, and the object
    itself only when the count is close to that of a hot loop.
    """

    last_write: float  # by the event loop's clock
    reconciles: int = 0
    version: str = ""  # the version that the last write made
    written: bool = False  # by the active reconcile
    stable: bool = False  # a reconcile has succeeded since the last write, and did not write
    progress: bool = False  # the active reconcile writes other content than the last, and the status has changed
    counts: bool = False  # whether the last reconcile counts
    content: bytes = b""  # hash of the content that the last write made, without status
    status: bytes = b""  # hash of the status after the last write
    before: bytes = b""  # the object before the active reconcile, or after the last write
    cached: bool = False
    changed: frozenset[str] = _NO_FIELDS  # by the active reconcile
    fields: frozenset[str] = _NO_FIELDS  # changed by every reconcile that was compared

    def begin_reconcile(self, obj: ObjectKey, cache: Cache) -> None:
        """Store the object as it is before a reconcile, whose own writes are in the cache before they are recorded."""
        if self.reconciles < _COMPARE_FROM:
            return
        kind, key = obj
        lister = cache.complete_lister(kind, key.namespace)
        self.cached = lister is not None
        if lister is not None:
            entry = lister.entry(key)
            self.before = b"" if entry is None else entry.json

    def record_write(self, write: WriteEvent, version: str, *, cache: Cache, now: float) -> None:
        """Record one more write."""
        if version and version == self.version:
            return
        if write.verb == "delete":
            self.changed |= _OBJECT
        else:
            self._compare(write, cache, now)
        self.version, self.written, self.stable, self.last_write = version, True, False, now

    def end_reconcile(self, *, succeeded: bool, spec_changed: bool, new_input: bool) -> None:
        """Count a reconcile. `spec_changed` is a change of its own object, `new_input` one of another object."""
        if not self.written:
            self.stable = self.stable or succeeded
            self.counts = False
            return
        self.counts = not (spec_changed or new_input or self.progress)
        if spec_changed:
            self.reconciles = 0
        elif self.counts:
            self.reconciles += 1
            if self.changed:
                self.fields = self.fields & self.changed or self.changed
        self.written, self.progress, self.changed = False, False, _NO_FIELDS

    def is_expired(self, now: float) -> bool:
        """Report whether the count can be dropped: the object is stable, and was not written for a long time."""
        return self.stable and now - self.last_write > _MAX_IDLE

    def describe(self) -> str:
        """Return a text about what changes."""
        if self.fields == _OBJECT:
            return "it is deleted by another client, or created again each time"
        if not self.fields:
            return "another client changes it back (in which fields is not known, since it is not cached)"
        fields = sorted(self.fields)
        names = ", ".join(fields[:_MAX_FIELDS])
        more = f" and {len(fields) - _MAX_FIELDS} more" if len(fields) > _MAX_FIELDS else ""
        verb = "keeps" if len(fields) == 1 else "keep"
        return f"{names}{more} {verb} changing (another client sets the same field, or the desired value is not stable)"

    def _compare(self, write: WriteEvent, cache: Cache, now: float) -> None:
        assert write.document is not None  # only a delete has none
        content, status = hash_content_and_status(write.document)
        if content != self.content:
            if self.stable:
                self.reconciles = 0
            self.progress = self.progress or self._status_changed(write, cache)
        elif self.is_expired(now):
            self.reconciles = 0
        if self.reconciles >= _COMPARE_FROM:
            self.changed |= self._changed_fields(write.response)
        self.content, self.status = content, status

    def _status_changed(self, write: WriteEvent, cache: Cache) -> bool:
        """Report whether the status differs from that after the last write, which shows progress."""
        lister = cache.complete_lister(write.kind, write.key.namespace)
        entry = None if lister is None or not self.status else lister.entry(write.key)
        return entry is not None and hash_content_and_status(entry.json)[1] != self.status

    def _changed_fields(self, response: bytes) -> frozenset[str]:
        before = self.before
        if not self.cached:
            self.before = response
        if before:
            return frozenset(changed_fields(before, response))
        return _OBJECT if self.cached else _NO_FIELDS
