"""The journal: for each key why it ran, what it read and wrote, and how it ended.

It is for people who ask "why was this reconciled?", and it is always on. So it is bounded in every direction, holds no
object and no error (an error would keep its whole stack alive), only names, versions and short texts, packed into some
250 bytes when a run ends; a run costs a few microseconds. Texts of errors are kept without what looks like a secret.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from konverge.objects import Key, wall_clock
from konverge.reconcile.journal_records import Facts, Read, Reason, Write, pack, seconds, shorten, tell_reasons, unpack
from konverge.reconcile.journal_texts import render
from konverge.telemetry.secrets import without_secrets

__all__ = ["Journal", "JournalStats", "Reason", "Run", "render"]

_ENTRIES = 50
_WAKES = 10
_LOOKED_AT = 2000  # of an error; a secret that begins in what is kept is seen whole
_WAITING = 10  # times the number of keys


class Run:
    """One reconcile of one key, as it happens.

    Promises: at most 50 reads and 50 writes are kept, the rest is counted; nothing can be added after `finish`.
    """

    __slots__ = (
        "_begin",
        "_duration",
        "_error",
        "_kept",
        "_more",
        "_ours",
        "_place",
        "_reads",
        "_result",
        "_started",
        "_woken",
        "_writes",
        "attempt",
        "key",
        "reconcile_id",
        "remark",
    )

    def __init__(self, key: Key, reconcile_id: str, *, attempt: int, woken: _Woken | None, place: _Runs) -> None:
        self.key = key
        self.reconcile_id = reconcile_id
        self.attempt = attempt
        self.remark = ""  # what somebody who watches has to say of it, before it is finished
        self._started = wall_clock()
        self._begin = _now()
        self._woken = woken
        self._reads: list[Read] = []
        self._writes: list[Write] = []
        self._ours: set[tuple[str, Key | str, str]] = set()
        self._more = 0
        self._duration: float | None = None
        self._result = "running"
        self._error = ""
        self._place = place  # the runs of the key
        self._kept: Run | bytes = self  # what stands there for this one
        place.append(self)

    def read(self, kind: str, key: Key | str, found: str = "") -> None:
        """Note a read: of which object or namespace, and the version or what else was found; "" for nothing."""
        if len(self._reads) < _ENTRIES and self._duration is None:
            self._reads.append((kind, key, found))
        else:
            self._count_more()

    def wrote(self, verb: str, kind: str, key: Key | str, version: str = "", *, ours: bool = False) -> None:
        """Note a write that succeeded, and the version that it made; `ours` when nobody else had a part in that."""
        if ours:
            self._ours.add((kind, key, version))
        if len(self._writes) < _ENTRIES and self._duration is None:
            self._writes.append((verb, kind, key, version))
        else:
            self._count_more()

    def is_echo(self, reason: Reason) -> bool:
        """Tell whether a reason is but what this run wrote, come back by the watch.

        A list may hide more behind it, and the end of an object is more than the write that allowed it.
        """
        if reason.listed or reason.what == "removed":
            return False
        return (reason.kind, reason.key, reason.version) in self._ours

    def finish(self, *, result: str = "done", error: str | BaseException = "") -> None:
        """Note how it ended; only the first end counts."""
        if self._duration is not None:
            return
        self._duration = max(0.0, _now() - self._begin)
        if error:
            text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
            self._result, self._error = "error", shorten(without_secrets(text[:_LOOKED_AT]))
        else:
            self._result = shorten(result)
        self._keep()

    @property
    def reasons(self) -> Sequence[Reason]:
        """What woke it, as far as it is kept."""
        return () if self._woken is None else self._woken.reasons

    def to_json(self) -> dict[str, Any]:
        """Give all of it as plain values."""
        return unpack(self.key, self._packed())

    def _packed(self) -> bytes:
        woken = self._woken
        facts = Facts(
            result=self._result,
            error=self._error,
            reconcile_id=self.reconcile_id,
            attempt=self.attempt,
            started=self._started,
            waited=None if woken is None else self._begin - woken.since,
            duration=self._duration,
            more_wakes=0 if woken is None else woken.more,
            not_kept=self._more,
            remark=shorten(self.remark),
        )
        return pack(self.key, facts, self.reasons, reads=self._reads, writes=self._writes)

    def _count_more(self) -> None:
        self._more += 1
        if self._duration is not None:
            self._keep()

    def _keep(self) -> None:
        packed = self._packed()
        for number, one in enumerate(self._place):
            if one is self._kept:
                self._place[number] = packed
        self._kept = packed


_Runs: TypeAlias = list[Run | bytes]
"""The runs of a key, oldest first: those under way as they are, those that ended packed."""


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
        self._runs: dict[Key, _Runs] = {}  # the key that ran longest ago in front
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
        runs = self._runs.pop(key, None)
        if runs is None:
            runs = []
            if len(self._runs) >= self._limit_keys:
                del self._runs[next(iter(self._runs))]
        elif len(runs) >= self._limit_runs:
            del runs[0]
        self._runs[key] = runs
        reconcile_id = f"{self._prefix}-{next(self._numbers):06x}"
        return Run(key, reconcile_id, attempt=attempt, woken=self._waiting.pop(key, None), place=runs)

    def drop_echoes(self, run: Run) -> int:
        """Forget what woke the key of a run that is at its end, if all of it came of the run itself; give how much.

        Other reasons may have been forgotten, where very many keys were woken: only so many wakes are known.
        """
        woken = self._waiting.get(run.key)
        if woken is None or woken.more or not all(map(run.is_echo, woken.reasons)):
            return 0
        del self._waiting[run.key]
        return len(woken.reasons)

    def forget(self, key: Key) -> None:
        """Keep nothing of a key."""
        self._runs.pop(key, None)
        self._waiting.pop(key, None)

    def known(self) -> list[Key]:
        """Give the keys that there is something to say about, the latest first."""
        return list(dict.fromkeys([*reversed(self._waiting), *reversed(self._runs)]))

    def why(self, key: Key) -> list[dict[str, Any]]:
        """Give what is known of a key as plain values, newest first; a key that waits for its run says so in front."""
        runs = reversed(self._runs.get(key, ()))
        found = [unpack(key, run) if isinstance(run, bytes) else run.to_json() for run in runs]
        woken = self._waiting.get(key)
        if woken is not None:
            waiting = {"result": "waiting", "waited_seconds": seconds(_now() - woken.since)}
            reasons = {"woken_by": tell_reasons(key, woken.reasons), "more_wakes": woken.more}
            found.insert(0, waiting | reasons)
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
