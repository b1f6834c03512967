"""The journal: for each key why it ran, what it read and wrote, and how it ended.

It is for people who ask "why was this reconciled?", and it is always on. So it is bounded in every direction, holds no
object and no error (an error would keep its whole stack alive), only names, versions and short texts, and a run costs a
few microseconds. Texts of errors are kept without what looks like a secret.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from konverge.objects import Key
from konverge.reconcile.journaltexts import render
from konverge.telemetry.secrets import without_secrets

__all__ = ["Journal", "JournalStats", "Reason", "Run", "render"]

_ENTRIES = 50
_WAKES = 10
_TEXT = 500
_LOOKED_AT = 4 * _TEXT  # of an error; a secret that begins in what is kept is seen whole
_WAITING = 10  # times the number of keys


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


class Run:
    """One reconcile of one key, as it happens.

    Promises: at most 50 reads and 50 writes are kept, the rest is counted; nothing can be added after `finish`.
    """

    __slots__ = (
        "_begin",
        "_duration",
        "_error",
        "_more",
        "_reads",
        "_result",
        "_started",
        "_waited",
        "_wakes",
        "_writes",
        "attempt",
        "key",
        "reconcile_id",
    )

    def __init__(self, key: Key, reconcile_id: str, attempt: int, woken: _Woken | None) -> None:
        self.key = key
        self.reconcile_id = reconcile_id
        self.attempt = attempt
        self._started = time.time()
        self._begin = _now()
        self._wakes = woken
        self._waited = None if woken is None else self._begin - woken.since
        self._reads: list[tuple[str, Key | str, str]] = []
        self._writes: list[tuple[str, str, Key | str, str]] = []
        self._more = 0
        self._duration: float | None = None
        self._result = "running"
        self._error = ""

    def read(self, kind: str, key: Key | str, found: str = "") -> None:
        """Note a read: of which object or namespace, and the version or what else was found; "" for nothing."""
        if len(self._reads) < _ENTRIES and self._duration is None:
            self._reads.append((kind, key, found))
        else:
            self._more += 1

    def wrote(self, verb: str, kind: str, key: Key | str, version: str = "") -> None:
        """Note a write that succeeded, and the version that it made."""
        if len(self._writes) < _ENTRIES and self._duration is None:
            self._writes.append((verb, kind, key, version))
        else:
            self._more += 1

    def finish(self, *, result: str = "done", error: str | BaseException = "") -> None:
        """Note how it ended; only the first end counts."""
        if self._duration is not None:
            return
        self._duration = max(0.0, _now() - self._begin)
        if error:
            text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
            self._result, self._error = "error", _short(without_secrets(text[:_LOOKED_AT]))
        else:
            self._result = _short(result)

    def to_json(self) -> dict[str, Any]:
        """Give all of it as plain values."""
        return {
            "result": self._result,
            "error": self._error,
            "reconcile_id": self.reconcile_id,
            "attempt": self.attempt,
            "started": _moment(self._started),
            "waited_seconds": _seconds(self._waited),
            "duration_seconds": _seconds(self._duration),
            **_woken_by(self._wakes),
            "read": [
                {"kind": _short(kind), "key": _short(str(key)), "found": _short(found)}
                for kind, key, found in self._reads
            ],
            "wrote": [
                {"verb": _short(verb), "kind": _short(kind), "key": _short(str(key)), "version": _short(version)}
                for verb, kind, key, version in self._writes
            ],
            "not_kept": self._more,
        }


class _Woken:
    """What woke a key since its last run began."""

    __slots__ = ("more", "reasons", "since")

    def __init__(self, reason: Reason) -> None:
        self.since = _now()
        self.reasons = [reason]
        self.more = 0

    def add(self, reason: Reason) -> None:
        if len(self.reasons) < _WAKES:
            self.reasons.append(reason)
        else:
            self.more += 1


@dataclass(frozen=True, slots=True)
class JournalStats:
    """How much is kept: keys with runs, runs in all, and keys that were woken and did not run yet."""

    keys: int
    runs: int
    waiting: int


class Journal:
    """The last runs of each key.

    Promises: at most `limit_runs` of a key and `limit_keys` keys are kept, the keys that ran longest ago are forgotten
    first; what woke a key is kept until it runs, for ten times as many keys; what `why` gives is plain JSON.
    """

    def __init__(self, limit_runs: int = 10, limit_keys: int = 1000) -> None:
        if limit_runs < 1 or limit_keys < 1:
            raise ValueError(f"a journal keeps at least one run of one key, got {limit_runs} and {limit_keys}")
        self._limit_runs = limit_runs
        self._limit_keys = limit_keys
        self._runs: dict[Key, deque[Run]] = {}  # the key that ran longest ago in front
        self._waiting: dict[Key, _Woken] = {}  # the key that was woken first in front
        self._prefix = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    def woken(self, key: Key, reason: Reason) -> None:
        """Note what wakes a key; the first time since its last run began is when it began to wait."""
        woken = self._waiting.get(key)
        if woken is not None:
            woken.add(reason)
            return
        if len(self._waiting) >= self._limit_keys * _WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._waiting[key] = _Woken(reason)

    def begin(self, key: Key, *, attempt: int = 1) -> Run:
        """Note that a run begins; all that woke the key until now is why."""
        run = Run(key, f"{self._prefix}-{next(self._numbers):06x}", attempt, self._waiting.pop(key, None))
        runs = self._runs.pop(key, None)
        if runs is None:
            runs = deque(maxlen=self._limit_runs)
            if len(self._runs) >= self._limit_keys:
                del self._runs[next(iter(self._runs))]
        self._runs[key] = runs
        runs.append(run)
        return run

    def forget(self, key: Key) -> None:
        """Keep nothing of a key."""
        self._runs.pop(key, None)
        self._waiting.pop(key, None)

    def known(self) -> list[Key]:
        """Give the keys that there is something to say about, the latest first."""
        return list(dict.fromkeys([*reversed(self._waiting), *reversed(self._runs)]))

    def why(self, key: Key) -> list[dict[str, Any]]:
        """Give what is known of a key as plain values, newest first; a key that waits for its run says so in front."""
        found = [run.to_json() for run in reversed(self._runs.get(key, ()))]
        woken = self._waiting.get(key)
        if woken is not None:
            waited = _seconds(_now() - woken.since)
            found.insert(0, {"result": "waiting", "waited_seconds": waited, **_woken_by(woken)})
        return found

    def stats(self) -> JournalStats:
        """Give the journal in numbers."""
        runs = sum(map(len, self._runs.values()))
        return JournalStats(keys=len(self._runs), runs=runs, waiting=len(self._waiting))


def _now() -> float:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


def _short(text: str) -> str:
    return text if len(text) <= _TEXT else text[: _TEXT - 3] + "..."


def _seconds(duration: float | None) -> float | None:
    return None if duration is None else round(duration, 6)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _woken_by(woken: _Woken | None) -> dict[str, Any]:
    if woken is None:
        return {"woken_by": [], "more_wakes": 0}
    return {"woken_by": [_reason(reason) for reason in woken.reasons], "more_wakes": woken.more}


def _reason(reason: Reason) -> dict[str, Any]:
    return {
        "trigger": _short(reason.trigger),
        "what": _short(str(reason.what)),
        "kind": _short(reason.kind),
        "key": _short(str(reason.key)),
        "version": _short(reason.version),
        "listed": reason.listed,
    }
