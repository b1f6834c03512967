"""The phases of a WebApp as a state machine with declared transitions.

`derive_status` computes the phase from what is observed. It is a plain function, so the phase is correct after a crash,
a downtime or a restore, whatever the status said before. The allowed transitions are declared. A transition that is not
allowed does not stop the operator: it is logged and counted. The tests fail on it.

    Created -> Reconciling -> WaitingForPods -> Ready <-> Scaling, Updating, Degraded
    any -> Deleting -> gone
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from prometheus_client import Counter, Gauge
from prometheus_client.registry import Collector

from konverge import Key
from konverge_operators.webapp.api import Phase
from konverge_operators.webapp.facts import Facts

__all__ = ["ALLOWED_TRANSITIONS", "DerivedStatus", "Lifecycle", "derive_status"]

_log = logging.getLogger("konverge_operators.webapp")

_COMMON = frozenset({Phase.RECONCILING, Phase.SCALING, Phase.UPDATING, Phase.DEGRADED, Phase.DELETING})

ALLOWED_TRANSITIONS: Mapping[Phase, frozenset[Phase]] = MappingProxyType(
    {
        Phase.CREATED: frozenset({Phase.RECONCILING, Phase.DEGRADED, Phase.DELETING}),
        Phase.RECONCILING: (_COMMON | {Phase.WAITING, Phase.READY}) - {Phase.RECONCILING},
        Phase.WAITING: _COMMON | {Phase.READY},
        Phase.READY: _COMMON,
        Phase.SCALING: (_COMMON | {Phase.READY}) - {Phase.SCALING},
        Phase.UPDATING: (_COMMON | {Phase.READY, Phase.WAITING}) - {Phase.UPDATING},
        Phase.DEGRADED: (_COMMON | {Phase.READY, Phase.WAITING}) - {Phase.DEGRADED},
        Phase.DELETING: frozenset(),
    }
)
"""The phases that may follow each phase."""


@dataclass(frozen=True)
class DerivedStatus:
    """A phase with a reason for programs, in one word, and a message for people."""

    phase: Phase
    reason: str
    message: str

    @property
    def progressing(self) -> bool:
        """Whether a change is in progress."""
        return self.phase in (Phase.RECONCILING, Phase.WAITING, Phase.SCALING, Phase.UPDATING)


def derive_status(facts: Facts) -> DerivedStatus:
    """Return the phase that follows from the facts. Every combination of facts has one."""
    available = f"{facts.available} of {facts.desired} replicas are available"
    if facts.terminating:
        return DerivedStatus(Phase.DELETING, "Deleting", "children are being deleted")
    if facts.failure is not None:
        return DerivedStatus(Phase.DEGRADED, *facts.failure)
    if not facts.observed:
        return _not_observed(facts)
    if facts.progress_failure:
        message = f"{facts.image} does not become ready: {facts.progress_failure}"
        return DerivedStatus(Phase.DEGRADED, "RolloutFailed", message)
    if facts.replica_failure:
        return DerivedStatus(Phase.DEGRADED, "PodsRefused", facts.replica_failure)
    if facts.complete:
        return DerivedStatus(Phase.READY, "AllReplicasAvailable", available)
    if not facts.good_image:
        return DerivedStatus(Phase.WAITING, "WaitingForPods", available)
    return _no_longer_ready(facts, available)


def _not_observed(facts: Facts) -> DerivedStatus:
    """Return the status while the Deployment controller has not observed the current spec."""
    if facts.good_image and facts.image != facts.good_image:
        return DerivedStatus(Phase.UPDATING, "RollingOut", f"from {facts.good_image} to {facts.image}")
    if facts.good_image and facts.desired != facts.good_replicas:
        return _scaling(facts)
    return DerivedStatus(Phase.RECONCILING, "ChildrenApplied", "all children are applied")


def _no_longer_ready(facts: Facts, available: str) -> DerivedStatus:
    """Return the status of an application that was ready before and is not now."""
    if facts.image != facts.good_image:
        return DerivedStatus(Phase.UPDATING, "RollingOut", f"from {facts.good_image} to {facts.image}")
    if facts.updated < facts.replicas:
        return DerivedStatus(Phase.UPDATING, "RollingOut", "pods are being replaced")
    if facts.desired != facts.good_replicas:
        return _scaling(facts)
    if not facts.new_replica_set_available:
        return DerivedStatus(Phase.WAITING, "WaitingForPods", available)
    return DerivedStatus(Phase.DEGRADED, "PodsLost", available)


def _scaling(facts: Facts) -> DerivedStatus:
    return DerivedStatus(Phase.SCALING, "Scaling", f"from {facts.good_replicas} to {facts.desired} replicas")


class Lifecycle:
    """Records phases and counts applications by phase, transitions, and transitions that are not allowed.

    `metrics` are the collectors that the manager exports. No label names an application.
    """

    def __init__(self) -> None:
        labels = ["before", "after"]
        self.applications = Gauge("webapp_applications", "WebApps by phase", ["phase"], registry=None)
        self.transitions = Counter("webapp_transitions", "Phase transitions", labels, registry=None)
        self.unexpected = Counter(
            "webapp_unexpected_transitions", "Phase transitions that are not allowed", labels, registry=None
        )
        self._phases: dict[Key, Phase] = {}

    @property
    def metrics(self) -> tuple[Collector, ...]:
        return self.applications, self.transitions, self.unexpected

    def record_phase(self, key: Key, before: Phase, after: Phase) -> None:
        """Record the phase of an application, changed or not."""
        counted = self._phases.get(key)
        if counted is not after:
            self.forget(key)
            self._phases[key] = after
            self.applications.labels(after).inc()
        if before is after:
            return
        self.transitions.labels(before, after).inc()
        if after not in ALLOWED_TRANSITIONS[before]:
            self.unexpected.labels(before, after).inc()
            _log.warning(
                "unexpected phase transition", extra={"key": str(key), "before": str(before), "after": str(after)}
            )

    def forget(self, key: Key) -> None:
        """Stop counting an application that is gone."""
        counted = self._phases.pop(key, None)
        if counted is not None:
            self.applications.labels(counted).dec()
