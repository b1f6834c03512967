"""The time from a new generation of an object to the status that observes it, as an observer of reconciles."""

from __future__ import annotations

import asyncio

from konverge.client import WriteEvent
from konverge.objects import Key
from konverge.reconcile import ActiveReconcile, ReconcileObserver
from konverge.telemetry import GenerationClock

__all__ = ["GenerationObserver"]


class GenerationObserver(ReconcileObserver):
    """Add each latency to the reconcile whose status observed the generation."""

    def __init__(self, clock: GenerationClock) -> None:
        self._clock = clock

    def write(self, reconcile: ActiveReconcile, write: WriteEvent) -> None:
        """Record the generation that a written status observes."""
        if write.subresource and write.key == reconcile.key and write.kind == reconcile.kind:
            now = asyncio.get_running_loop().time()
            latency = self._clock.observed(reconcile.key, write.observed_generation, now)
            if latency is not None:
                reconcile.generation_latencies.append(latency)

    def forget(self, key: Key) -> None:
        """Drop a key whose object is gone."""
        self._clock.forget(key)
