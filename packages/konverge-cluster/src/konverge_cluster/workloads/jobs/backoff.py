"""The backoff of a Job before it replaces a failed pod: 10 s, 20 s, 40 s and so on up to 10 min, reset by a success."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from konverge.k8s.core.v1 import Pod
from konverge_cluster.workloads.pods.facts import finished_at

__all__ = ["Failures", "remaining_backoff", "update_failures"]

_FIRST: Final = 10.0
_MOST: Final = 600.0


@dataclass(frozen=True)
class Failures:
    """The number of pods that failed since the last success, and the time of the last failure."""

    count: int = 0
    last: datetime | None = None


def update_failures(previous: Failures, succeeded: Iterable[Pod], failed: Iterable[Pod]) -> Failures:
    """Add newly terminated pods; a success resets the failures before it."""
    failures = sorted(map(finished_at, failed))
    success = max(map(finished_at, succeeded), default=None)
    if success is not None:
        later = [time for time in failures if time > success]
        return Failures(len(later), later[-1] if later else None)
    return Failures(previous.count + len(failures), failures[-1]) if failures else previous


def remaining_backoff(failures: Failures, now: datetime) -> float:
    """Return how many seconds of the backoff remain."""
    if not failures.count or failures.last is None:
        return 0.0
    wait = min(_FIRST * 2 ** min(failures.count - 1, 10), _MOST)
    return max((failures.last + timedelta(seconds=wait) - now).total_seconds(), 0.0)
