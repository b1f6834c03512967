"""Runs as the journal holds them: a short string of bytes each.

Most of a journal is never read, and there are up to ten runs for each of a thousand keys. As objects of their own they
would be among the largest things in an operator, and the garbage collector would walk through them all. Rules that hold
here:

1. A text is cut at 500 characters before it is packed.
2. A key that is the run's own is not written again: most of what a run touches has its name.
3. Packing does not fail, whatever the texts hold; what is no Unicode is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from konverge.objects import Key

__all__ = ["Facts", "Read", "Reason", "Write", "pack", "seconds", "shorten", "tell_reasons", "unpack"]

_TEXT = 500

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

Read: TypeAlias = tuple[str, Key | str, str]
"""A kind, a key or namespace, and what was found."""

Write: TypeAlias = tuple[str, str, Key | str, str]
"""A verb, a kind, a key, and the version that it made."""


class Reason(Protocol):
    """What woke a key: a trigger, and which object at which version made it."""

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


class Facts(NamedTuple):
    """A run without what woke it and what it read and wrote."""

    result: str
    error: str
    reconcile_id: str
    attempt: int
    started: float
    waited: float | None
    duration: float | None
    more_wakes: int
    not_kept: int
    remark: str


def pack(own: Key, facts: Facts, reasons: Iterable[Reason], *, reads: Iterable[Read], writes: Iterable[Write]) -> bytes:
    """Pack the run of a key."""
    woken = [_reason(own, one) for one in reasons]
    read = [(shorten(kind), _name(own, key), shorten(found)) for kind, key, found in reads]
    wrote = [(shorten(verb), shorten(kind), _name(own, key), shorten(version)) for verb, kind, key, version in writes]
    record = (facts, woken, read, wrote)
    try:
        return _encode(record)
    except UnicodeEncodeError:
        return _encode(_as_unicode(record))


def unpack(own: Key, record: bytes) -> dict[str, Any]:
    """Give a packed run of a key as plain values."""
    values, woken, read, wrote = _decode(record)
    facts = Facts(*values)
    return {
        "result": facts.result,
        "error": facts.error,
        "reconcile_id": facts.reconcile_id,
        "attempt": facts.attempt,
        "started": _moment(facts.started),
        "waited_seconds": seconds(facts.waited),
        "duration_seconds": seconds(facts.duration),
        "woken_by": [_tell(own, *one) for one in woken],
        "more_wakes": facts.more_wakes,
        "read": [{"kind": kind, "key": _key(own, name), "found": found} for kind, name, found in read],
        "wrote": [
            {"verb": verb, "kind": kind, "key": _key(own, name), "version": version}
            for verb, kind, name, version in wrote
        ],
        "not_kept": facts.not_kept,
        "remark": facts.remark,
    }


def tell_reasons(own: Key, reasons: Iterable[Reason]) -> list[dict[str, Any]]:
    """Give what woke a key as plain values."""
    return [_tell(own, *_reason(own, one)) for one in reasons]


def shorten(text: str) -> str:
    """Cut a text that is too long to be kept."""
    return text if len(text) <= _TEXT else text[: _TEXT - 3] + "..."


def seconds(duration: float | None) -> float | None:
    """Give a duration to the microsecond."""
    return None if duration is None else round(duration, 6)


def _reason(own: Key, one: Reason) -> tuple[Any, ...]:
    trigger, what, kind = shorten(one.trigger), shorten(str(one.what)), shorten(one.kind)
    return (trigger, what, kind, _name(own, one.key), shorten(one.version), one.listed)


def _tell(own: Key, trigger: str, what: str, kind: str, name: str | None, version: str, listed: bool) -> dict[str, Any]:
    key = _key(own, name)
    return {"trigger": trigger, "what": what, "kind": kind, "key": key, "version": version, "listed": listed}


def _name(own: Key, key: Key | str) -> str | None:
    return None if key == own else shorten(str(key))


def _key(own: Key, name: str | None) -> str:
    return shorten(str(own)) if name is None else name


def _as_unicode(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    return [_as_unicode(one) for one in value] if isinstance(value, tuple | list) else value


def _moment(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
