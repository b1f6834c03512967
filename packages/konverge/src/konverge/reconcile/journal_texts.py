"""The journal of a key in words, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["render"]


def render(why: Sequence[Mapping[str, Any]]) -> str:
    """Give what `Journal.why` says as text; fields that are missing are left out."""
    if not why:
        return "nothing is known of this key: it was not woken since this process started, or it is long ago\n"
    return "\n".join(line for run in why for line in _lines(run)) + "\n"


def _lines(run: Mapping[str, Any]) -> Iterator[str]:
    yield _head(run)
    if run.get("error"):
        yield _row("error", str(run["error"]))
    if run.get("remark"):
        yield _row("remark", str(run["remark"]))
    for reason in run.get("woken_by") or ():
        yield _row("woken by", _reason(reason))
    yield from _rest("woken by", run.get("more_wakes"))
    for read in run.get("read") or ():
        yield _row("read", f"{read.get('kind')} {read.get('key')}: {read.get('found') or 'not there'}")
    for write in run.get("wrote") or ():
        version = write.get("version")
        made = f", now version {version}" if version else ""
        yield _row("wrote", f"{write.get('verb')} {write.get('kind')} {write.get('key')}{made}")
    yield from _rest("", run.get("not_kept"))


def _head(run: Mapping[str, Any]) -> str:
    facts = [
        *_fact("attempt", run.get("attempt"), over=1),
        *_fact("waited", _duration(run.get("waited_seconds"))),
        *_fact("took", _duration(run.get("duration_seconds"))),
        *_fact("id", run.get("reconcile_id")),
    ]
    when = f"{run['started']}  " if run.get("started") else ""
    told = f"  ({', '.join(facts)})" if facts else ""
    return f"{when}{run.get('result', 'unknown')}{told}"


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
    listed = " (found by a list)" if reason.get("listed") else ""
    told = f"{reason.get('kind')} {reason.get('key')} {reason.get('what')}{version}{listed}"
    return f"{reason.get('trigger')}: {told}"


def _rest(name: str, count: Any) -> Iterator[str]:
    if count:
        yield _row(name, f"... and {count} more")


def _row(name: str, text: str) -> str:
    # An error may have many lines; all of them stay under its run.
    indented = text.replace("\n", "\n" + " " * 12)
    return f"  {name:<9} {indented}"
