"""How long a Job waits before it replaces a failed pod: 10 s, 20 s, 40 s and so on to 10 min, until one succeeds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from konverge.k8s.core.v1 import Pod
from konverge_cluster.workloads.pods.facts import finished_at

__all__ = ["Failures", "after", "remaining"]

_FIRST: Final = 10.0
_MOST: Final = 600.0


@dataclass(frozen=True)
class Failures:
    """How many pods failed since one succeeded, and when the last did."""

    count: int = 0
    last: datetime | None = None


def after(known: Failures, succeeded: Iterable[Pod], failed: Iterable[Pod]) -> Failures:
    """Add pods that have newly ended; failures before the last success do not count any more."""
    failures = sorted(map(finished_at, failed))
    success = max(map(finished_at, succeeded), default=None)
    if success is not None:
        later = [moment for moment in failures if moment > success]
        return Failures(len(later), later[-1] if later else None)
    return Failures(known.count + len(failures), failures[-1]) if failures else known


def remaining(failures: Failures, now: datetime) -> float:
    """Say how many seconds are still to be waited."""
    if not failures.count or failures.last is None:
        return 0.0
    wait = min(_FIRST * 2 ** min(failures.count - 1, 10), _MOST)
    return max((failures.last + timedelta(seconds=wait) - now).total_seconds(), 0.0)
