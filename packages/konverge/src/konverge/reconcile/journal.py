"""The journal: for each key, why it was reconciled, what it read and wrote, and how it ended.

It answers the question "why was this reconciled?", and it is always on. So it is bounded in every respect, and it holds
no object and no exception (an exception would keep its whole stack alive): only names, versions and short texts, packed
into about 250 bytes when a run ends. A run costs a few microseconds. Texts that look like secrets are removed from
error messages. It is for people only: nothing that it drops changes what an operator does.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, TypeAlias

from msgspec import Struct

from konverge.objects import Key, wall_clock
from konverge.reconcile.journal_records import (
    Read,
    Reason,
    RunSummary,
    Write,
    pack,
    reasons_to_json,
    round_seconds,
    shorten,
    unpack,
)
from konverge.reconcile.journal_texts import render
from konverge.reconcile.observers import new_reconcile_id
from konverge.telemetry.secrets import without_secrets

__all__ = ["Journal", "JournalStats", "Reason", "Run", "render"]

_MAX_ENTRIES = 50
_MAX_REASONS = 10
_MAX_ERROR_LENGTH = 2000  # longer than the stored text, so that a secret at its end is recognized as a whole
_WAITING_FACTOR = 10  # keys that wait, as a multiple of the keys with runs


class Run:
    """One reconcile of one key, while it is active.

    Promises: at most 50 reads and 50 writes are stored, and the others are counted; nothing is added after `finish`.
    """

    __slots__ = (
        "_dropped",
        "_duration",
        "_error",
        "_pending",
        "_reads",
        "_result",
        "_runs",
        "_start",
        "_started",
        "_stored",
        "_writes",
        "attempt",
        "key",
        "reconcile_id",
        "warning",
    )

    def __init__(
        self, key: Key, reconcile_id: str, *, attempt: int, pending: _PendingReasons | None, runs: _Runs
    ) -> None:
        self.key = key
        self.reconcile_id = reconcile_id
        self.attempt = attempt
        self.warning = ""  # may be set until the run is finished
        self._started = wall_clock()
        self._start = _now()
        self._pending = pending
        self._reads: list[Read] = []
        self._writes: list[Write] = []
        self._dropped = 0
        self._duration: float | None = None
        self._result = "running"
        self._error = ""
        self._runs = runs  # all runs of the key
        self._stored: Run | bytes = self  # the item of `runs` that is this run
        runs.append(self)

    def record_read(self, kind: str, key: Key | str, found: str = "") -> None:
        """Record a read: of which object or namespace, and the version or number that was found; "" for nothing."""
        if len(self._reads) < _MAX_ENTRIES and self._duration is None:
            self._reads.append((kind, key, found))
        else:
            self._count_dropped()

    def record_write(self, verb: str, kind: str, key: Key | str, version: str = "") -> None:
        """Record a successful write and the version that it made."""
        if len(self._writes) < _MAX_ENTRIES and self._duration is None:
            self._writes.append((verb, kind, key, version))
        else:
            self._count_dropped()

    def finish(self, *, result: str = "done", error: str | BaseException = "") -> None:
        """Record how the run ended; only the first call counts."""
        if self._duration is not None:
            return
        self._duration = max(0.0, _now() - self._start)
        if error:
            text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
            self._result, self._error = "error", shorten(without_secrets(text[:_MAX_ERROR_LENGTH]))
        else:
            self._result = shorten(result)
        self._store()

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON values."""
        return unpack(self.key, self._packed())

    def _packed(self) -> bytes:
        pending = self._pending
        summary = RunSummary(
            self._result,
            self._error,
            self.reconcile_id,
            self.attempt,
            self._started,
            None if pending is None else self._start - pending.since,  # wait
            self._duration,
            0 if pending is None else pending.more,
            self._dropped,
            shorten(self.warning),
        )
        reasons = () if pending is None else pending.reasons
        return pack(self.key, summary, reasons, reads=self._reads, writes=self._writes)

    def _count_dropped(self) -> None:
        self._dropped += 1
        if self._duration is not None:
            self._store()

    def _store(self) -> None:
        packed, stored, runs = self._packed(), self._stored, self._runs
        if runs and runs[-1] is stored:  # as nearly always
            runs[-1] = packed
        else:
            runs[:] = [packed if one is stored else one for one in runs]
        self._stored = packed


_Runs: TypeAlias = list[Run | bytes]
"""The runs of a key, oldest first: active ones as objects, finished ones packed."""


class _PendingReasons:
    """Why a key was enqueued since its last run began."""

    __slots__ = ("more", "reasons", "since")

    def __init__(self, reason: Reason, since: float) -> None:
        self.since = since
        self.reasons = [reason]
        self.more = 0

    def add(self, reason: Reason) -> None:
        if len(self.reasons) < _MAX_REASONS:
            self.reasons.append(reason)
        else:
            self.more += 1


class JournalStats(Struct, frozen=True):
    """The size of a journal: keys with runs, runs in all, and keys that were enqueued and have not run yet."""

    keys: int
    runs: int
    waiting: int


class Journal:
    """The last runs of each key.

    Promises: at most `limit_runs` runs per key and `limit_keys` keys are stored, and the least recently reconciled key
    is dropped first. The reasons of an enqueued key are stored until it runs, for ten times as many keys. `why` returns
    JSON values.
    """

    def __init__(self, limit_runs: int = 10, limit_keys: int = 1000) -> None:
        if limit_runs < 1 or limit_keys < 1:
            raise ValueError(f"a journal stores at least one run of one key, got {limit_runs} and {limit_keys}")
        self._limit_runs = limit_runs
        self._limit_keys = limit_keys
        self._runs: dict[Key, _Runs] = {}  # least recently reconciled first
        self._waiting: dict[Key, _PendingReasons] = {}  # first enqueued first

    def add_reason(self, key: Key, reason: Reason, *, since: float | None = None) -> None:
        """Record why a key is enqueued; the wait of a key begins with its first reason since its last run began.

        `since` is the time of the reason by the loop's clock, by default now.
        """
        pending = self._waiting.get(key)
        if pending is not None:
            pending.add(reason)
            return
        if len(self._waiting) >= self._limit_keys * _WAITING_FACTOR:
            del self._waiting[next(iter(self._waiting))]
        self._waiting[key] = _PendingReasons(reason, _now() if since is None else since)

    def begin(self, key: Key, *, attempt: int = 1, reconcile_id: str = "") -> Run:
        """Begin a run, whose reasons are all that were added for the key until now."""
        runs = self._runs.pop(key, None)
        if runs is None:
            runs = []
            if len(self._runs) >= self._limit_keys:
                del self._runs[next(iter(self._runs))]
        elif len(runs) >= self._limit_runs:
            del runs[0]
        self._runs[key] = runs
        reconcile_id = reconcile_id or new_reconcile_id()
        return Run(key, reconcile_id, attempt=attempt, pending=self._waiting.pop(key, None), runs=runs)

    def forget(self, key: Key) -> None:
        """Drop a key."""
        self._runs.pop(key, None)
        self._waiting.pop(key, None)

    def list_keys(self) -> list[Key]:
        """Return the keys that the journal has entries for, the latest first."""
        return list(dict.fromkeys([*reversed(self._waiting), *reversed(self._runs)]))

    def why(self, key: Key) -> list[dict[str, Any]]:
        """Return the runs of a key as JSON values, newest first; an entry for a waiting key comes before them."""
        runs = reversed(self._runs.get(key, ()))
        found = [unpack(key, run) if isinstance(run, bytes) else run.to_json() for run in runs]
        pending = self._waiting.get(key)
        if pending is not None:
            waiting = {"result": "waiting", "wait_seconds": round_seconds(_now() - pending.since)}
            reasons = {"enqueued_by": reasons_to_json(key, pending.reasons), "more_reasons": pending.more}
            found.insert(0, waiting | reasons)
        return found

    def stats(self) -> JournalStats:
        """Return the size of the journal."""
        runs = sum(map(len, self._runs.values()))
        return JournalStats(keys=len(self._runs), runs=runs, waiting=len(self._waiting))


def _now() -> float:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()
