"""What a process says about itself: health, metrics, and the numbers behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from konverge.controller import Outcome
from konverge.manager.health import Check, Health
from konverge.manager.heartbeat import LoopWatch
from konverge.telemetry import ExchangeMetrics

if TYPE_CHECKING:
    from konverge.manager.process import Process

__all__ = ["Measures"]

_TROUBLE_AFTER = 10.0
"""So many seconds a watch may fail before readiness says so: a server that restarts is no reason to worry anybody."""


class Measures:
    """The health and the metrics of one process; asked from the side thread, so everything here only looks."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.registry = CollectorRegistry()
        self.exchanges = ExchangeMetrics(self.registry)
        self.watch: LoopWatch | None = None
        self.health = Health(
            Check("start", self._start),
            Check("caches", self._caches),
            Check("lease", self._lease),
            Check("loop", self._loop, live=True),
        )

    def told(self, controller: str, outcome: Outcome, seconds: float) -> None:
        """Count a reconcile."""

    def waited(self, controller: str, seconds: float) -> None:
        """Count how long a key was in line."""

    def _start(self) -> str:
        return f"starting: {self._process.stage}" if self._process.stage else ""

    def _caches(self) -> str:
        """Name each collection that is not synced, or that has not been followed for a while."""
        cache = self._process.cache
        if cache is None:
            return "not started"
        reasons = []
        for mirror in cache.stats().mirrors:
            reflector = mirror.reflector
            where = f"{mirror.kind.kind} in {mirror.namespace}" if mirror.namespace else mirror.kind.kind
            if mirror.waits_for:
                reasons.append(f"{where}: {mirror.waits_for}")
            elif reflector.error is not None and (reflector.trouble_age or 0.0) > _TROUBLE_AFTER:
                reasons.append(f"{where}: {reflector.error}")
        return "; ".join(reasons)

    def _lease(self) -> str:
        leadership = self._process.leadership
        return leadership.trouble() if leadership is not None else ""

    def _loop(self) -> str:
        return self.watch.blocked() if self.watch is not None else ""
