"""The journal of a key as text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["render"]


def render(why: Sequence[Mapping[str, Any]]) -> str:
    """Return the entries of `Journal.why` as text; missing fields are left out."""
    if not why:
        return "no entries: this key was not enqueued since the process started, or its entries were dropped\n"
    return "\n".join(line for run in why for line in _lines(run)) + "\n"


def _lines(run: Mapping[str, Any]) -> Iterator[str]:
    yield _head(run)
    if run.get("error"):
        yield _row("error", str(run["error"]))
    if run.get("warning"):
        yield _row("warning", str(run["warning"]))
    for reason in run.get("enqueued_by") or ():
        yield _row("enqueued", _reason(reason))
    yield from _more("enqueued", run.get("more_reasons"))
    for read in run.get("reads") or ():
        yield _row("read", f"{read.get('kind')} {read.get('key')}: {read.get('found') or 'not found'}")
    for write in run.get("writes") or ():
        version = write.get("version")
        suffix = f", now version {version}" if version else ""
        yield _row("wrote", f"{write.get('verb')} {write.get('kind')} {write.get('key')}{suffix}")
    yield from _more("", run.get("dropped"))


def _head(run: Mapping[str, Any]) -> str:
    facts = [
        *_fact("attempt", run.get("attempt"), over=1),
        *_fact("waited", _duration(run.get("wait_seconds"))),
        *_fact("took", _duration(run.get("duration_seconds"))),
        *_fact("id", run.get("reconcile_id")),
    ]
    started = f"{run['started']}  " if run.get("started") else ""
    details = f"  ({', '.join(facts)})" if facts else ""
    return f"{started}{run.get('result', 'unknown')}{details}"


def _fact(name: str, value: Any, *, over: int = 0) -> list[str]:
    if not value or (over and value <= over):
        return []
    return [f"{name} {value}"]


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _reason(reason: Mapping[str, Any]) -> str:
    if not reason.get("kind"):
        return str(reason.get("trigger"))
    version = f", version {reason['version']}" if reason.get("version") else ""
    listed = " (found by a list)" if reason.get("listed") and reason.get("what") != "resync" else ""
    return f"{reason.get('trigger')}: {reason.get('kind')} {reason.get('key')} {reason.get('what')}{version}{listed}"


def _more(name: str, count: Any) -> Iterator[str]:
    if count:
        yield _row(name, f"... and {count} more")


def _row(name: str, text: str) -> str:
    # Further lines of an error are indented, so that they stay below their run.
    indented = text.replace("\n", "\n" + " " * 12)
    return f"  {name:<9} {indented}"
