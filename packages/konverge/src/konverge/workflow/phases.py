"""Phases: an enum with declared transitions, and a function that derives the phase from what is observed.

The phase is computed, never remembered: it is right after a crash, a downtime or a restore, whatever the status said.
A transition that is not declared is a surprise: it fails a test, and is logged and counted in production. It stops
nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from prometheus_client import Counter, Gauge
from prometheus_client.registry import Collector

from konverge.objects import Key

__all__ = ["DerivedPhase", "PhaseMetrics", "Phases"]

P = TypeVar("P", bound=StrEnum)

_log = logging.getLogger("konverge.workflow")


@dataclass(frozen=True)
class DerivedPhase(Generic[P]):
    """A phase, with a reason for programs in one word and a message for people."""

    phase: P
    reason: str
    message: str = ""
    warning: bool = False  # whether the event of a change to this phase is a warning


@dataclass(frozen=True)
class Phases(Generic[P]):
    """The phases of a kind.

    `transitions` has, for every phase, those that may follow it; a phase without any is final. `derive` returns the
    phase from the reconciled object and a `WorkflowState`.

    Raises: ValueError when a phase is missing, cannot be reached from `initial`, or cannot be left although others
    follow nothing but it.
    """

    initial: P
    transitions: Mapping[P, Collection[P]]
    derive: Callable[[Any, Any], DerivedPhase[P]]

    def __post_init__(self) -> None:
        missing = [phase for phase in type(self.initial) if phase not in self.transitions]
        if missing:
            raise ValueError(f"the transitions of {', '.join(missing)} are not declared: write () for a final phase")
        unreachable = [phase for phase in self.transitions if phase not in self._reachable()]
        if unreachable:
            raise ValueError(f"no transitions lead from {self.initial} to {', '.join(unreachable)}")

    def allows(self, before: P, after: P) -> bool:
        """Report whether a transition is declared; staying in a phase always is."""
        return before == after or after in self.transitions[before]

    def _reachable(self) -> set[P]:
        found, pending = {self.initial}, [self.initial]
        while pending:
            new = set(self.transitions[pending.pop()]) - found
            found |= new
            pending += new
        return found


class PhaseMetrics:
    """Counts objects by phase, transitions, and transitions that are not declared.

    No label names an object. `collectors` are for `Operator(metrics=...)`.
    """

    def __init__(self, prefix: str) -> None:
        labels = ["before", "after"]
        self.objects = Gauge(f"{prefix}_objects", "Objects by phase", ["phase"], registry=None)
        self.transitions = Counter(f"{prefix}_transitions", "Phase transitions", labels, registry=None)
        self.unexpected = Counter(
            f"{prefix}_unexpected_transitions", "Phase transitions that are not declared", labels, registry=None
        )
        self._phases: dict[Key, str] = {}

    @property
    def collectors(self) -> tuple[Collector, ...]:
        return self.objects, self.transitions, self.unexpected

    def record(self, key: Key, phases: Phases[Any], before: Any, after: Any) -> None:
        """Record the phase of an object, changed or not."""
        if self._phases.get(key) != after:
            self.forget(key)
            self._phases[key] = after
            self.objects.labels(after).inc()
        if before == after:
            return
        self.transitions.labels(before, after).inc()
        if not phases.allows(before, after):
            self.unexpected.labels(before, after).inc()
            extra = {"key": str(key), "before": str(before), "after": str(after)}
            _log.warning("unexpected phase transition", extra=extra)

    def forget(self, key: Key) -> None:
        """Stop counting an object that is gone."""
        phase = self._phases.pop(key, None)
        if phase is not None:
            self.objects.labels(phase).dec()
