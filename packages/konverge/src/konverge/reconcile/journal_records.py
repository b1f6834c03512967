"""Runs as the journal stores them: each as a short byte string.

Most of a journal is never read, and there are up to ten runs for each of a thousand keys. As Python objects they would
be a large part of an operator's memory, and the garbage collector would traverse all of them. Rules that hold here:

1. A text is cut at 500 characters before it is packed.
2. The run's own key is not stored again: most reads and writes of a run are of objects with its name.
3. Packing does not fail, whatever the texts hold; characters that are not valid Unicode are replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from konverge.objects import Key

__all__ = ["Read", "Reason", "RunSummary", "Write", "pack", "reasons_to_json", "round_seconds", "shorten", "unpack"]

_MAX_TEXT = 500

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

Read: TypeAlias = tuple[str, Key | str, str]
"""A kind, a key or namespace, and what was found."""

Write: TypeAlias = tuple[str, str, Key | str, str]
"""A verb, a kind, a key, and the version that the write made."""


class Reason(Protocol):
    """Why a key was enqueued: the trigger, and the object and version that caused it."""

    @property
    def trigger(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> Key: ...
    @property
    def version(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def listed(self) -> bool: ...


class RunSummary(NamedTuple):
    """A run without its reasons, reads and writes."""

    result: str
    error: str
    reconcile_id: str
    attempt: int
    started: float
    wait: float | None
    duration: float | None
    more_reasons: int
    dropped: int
    warning: str


def pack(
    key: Key, summary: RunSummary, reasons: Iterable[Reason], *, reads: Iterable[Read], writes: Iterable[Write]
) -> bytes:
    """Pack a run of a key."""
    packed_reasons = [_pack_reason(key, one) for one in reasons]
    packed_reads = [(_pack_key(key, other), *_shortened(kind, found)) for kind, other, found in reads]
    packed_writes = [(_pack_key(key, other), *_shortened(verb, kind, version)) for verb, kind, other, version in writes]
    record = (summary, packed_reasons, packed_reads, packed_writes)
    try:
        return _encode(record)
    except UnicodeEncodeError:
        return _encode(_as_unicode(record))


def unpack(key: Key, record: bytes) -> dict[str, Any]:
    """Return a packed run of a key as JSON values."""
    values, reasons, reads, writes = _decode(record)
    summary = RunSummary(*values)
    return {
        "result": summary.result,
        "error": summary.error,
        "reconcile_id": summary.reconcile_id,
        "attempt": summary.attempt,
        "started": _timestamp(summary.started),
        "wait_seconds": round_seconds(summary.wait),
        "duration_seconds": round_seconds(summary.duration),
        "enqueued_by": [_reason_to_json(key, *one) for one in reasons],
        "more_reasons": summary.more_reasons,
        "reads": [{"kind": kind, "key": _unpack_key(key, other), "found": found} for other, kind, found in reads],
        "writes": [
            {"verb": verb, "kind": kind, "key": _unpack_key(key, other), "version": version}
            for other, verb, kind, version in writes
        ],
        "dropped": summary.dropped,
        "warning": summary.warning,
    }


def reasons_to_json(key: Key, reasons: Iterable[Reason]) -> list[dict[str, Any]]:
    """Return the reasons of a key as JSON values."""
    return [_reason_to_json(key, *_pack_reason(key, one)) for one in reasons]


def shorten(text: str) -> str:
    """Truncate a text that is too long to be stored."""
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "..."


def _shortened(*texts: str) -> tuple[str, ...]:
    return texts if len("".join(texts)) <= _MAX_TEXT else tuple(map(shorten, texts))


def round_seconds(duration: float | None) -> float | None:
    """Return a duration rounded to microseconds."""
    return None if duration is None else round(duration, 6)


def _pack_reason(key: Key, one: Reason) -> tuple[Any, ...]:
    trigger, what, kind, version = _shortened(one.trigger, str(one.what), one.kind, one.version)
    return (trigger, what, kind, _pack_key(key, one.key), version, one.listed)


def _reason_to_json(
    run_key: Key, trigger: str, what: str, kind: str, name: str | None, version: str, listed: bool
) -> dict[str, Any]:
    key = _unpack_key(run_key, name)
    return {"trigger": trigger, "what": what, "kind": kind, "key": key, "version": version, "listed": listed}


def _pack_key(run_key: Key, key: Key | str) -> str | None:
    return None if key == run_key else shorten(str(key))


def _unpack_key(run_key: Key, name: str | None) -> str:
    return shorten(str(run_key)) if name is None else name


def _as_unicode(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    return [_as_unicode(one) for one in value] if isinstance(value, tuple | list) else value


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
