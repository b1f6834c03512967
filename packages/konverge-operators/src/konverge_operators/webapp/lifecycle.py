"""The life of a WebApp as a checked state machine.

The phase is computed from what is observed, by a plain function: so it is right after a crash, a downtime or a restore,
whatever was written before. Which phase may follow which is declared. A transition that is not declared is no reason to
stop: the operator logs and counts it. Its tests fail.

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

__all__ = ["DECLARED", "Facts", "Lifecycle", "Standing", "standing_of"]

_log = logging.getLogger("konverge_operators.webapp")

_TOGETHER = frozenset({Phase.RECONCILING, Phase.SCALING, Phase.UPDATING, Phase.DEGRADED, Phase.DELETING})

DECLARED: Mapping[Phase, frozenset[Phase]] = MappingProxyType(
    {
        Phase.CREATED: frozenset({Phase.RECONCILING, Phase.DEGRADED, Phase.DELETING}),
        Phase.RECONCILING: (_TOGETHER | {Phase.WAITING, Phase.READY}) - {Phase.RECONCILING},
        Phase.WAITING: _TOGETHER | {Phase.READY},
        Phase.READY: _TOGETHER,
        Phase.SCALING: (_TOGETHER | {Phase.READY}) - {Phase.SCALING},
        Phase.UPDATING: (_TOGETHER | {Phase.READY, Phase.WAITING}) - {Phase.UPDATING},
        Phase.DEGRADED: (_TOGETHER | {Phase.READY, Phase.WAITING}) - {Phase.DEGRADED},
        Phase.DELETING: frozenset(),
    }
)
"""Which phases may follow each phase."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that the phase depends on.

    `wanted` to `available` are counts of the Deployment; `observed` says whether they are about its present spec;
    `rolled_out` whether its newest pods have all been there once. `good_image` and `good_replicas` are what was ready
    last, "" when nothing ever was. `trouble` is a reason and a message.
    """

    deleting: bool = False
    trouble: tuple[str, str] | None = None
    image: str = ""
    observed: bool = False
    wanted: int = 0
    replicas: int = 0
    updated: int = 0
    available: int = 0
    rolled_out: bool = False
    stuck: str = ""
    refused: str = ""
    good_image: str = ""
    good_replicas: int = 0

    @property
    def complete(self) -> bool:
        """Whether all that is wanted is there, and nothing else."""
        return self.observed and self.updated == self.replicas == self.available == self.wanted


@dataclass(frozen=True)
class Standing:
    """A phase, and why: a reason in one word for machines, a message for people."""

    phase: Phase
    reason: str
    message: str

    @property
    def progressing(self) -> bool:
        """Whether something is under way."""
        return self.phase in (Phase.RECONCILING, Phase.WAITING, Phase.SCALING, Phase.UPDATING)


def standing_of(facts: Facts) -> Standing:
    """Give the phase that follows from the facts. Total: every combination of facts has one."""
    counted = f"{facts.available} of {facts.wanted} replicas are available"
    if facts.deleting:
        return Standing(Phase.DELETING, "Deleting", "its parts are being deleted")
    if facts.trouble is not None:
        return Standing(Phase.DEGRADED, *facts.trouble)
    if not facts.observed:
        return _begun(facts)
    if facts.stuck:
        return Standing(Phase.DEGRADED, "RolloutFailed", f"{facts.image} does not become ready: {facts.stuck}")
    if facts.refused:
        return Standing(Phase.DEGRADED, "PodsRefused", facts.refused)
    if facts.complete:
        return Standing(Phase.READY, "AllReplicasAvailable", counted)
    if not facts.good_image:
        return Standing(Phase.WAITING, "WaitingForPods", counted)
    return _under_way(facts, counted)


def _begun(facts: Facts) -> Standing:
    """The Deployment is told, and has not answered."""
    if facts.good_image and facts.image != facts.good_image:
        return Standing(Phase.UPDATING, "RollingOut", f"from {facts.good_image} to {facts.image}")
    if facts.good_image and facts.wanted != facts.good_replicas:
        return _scaling(facts)
    return Standing(Phase.RECONCILING, "PartsApplied", "its parts are made as asked")


def _under_way(facts: Facts, counted: str) -> Standing:
    """It was ready once, and is not now."""
    if facts.image != facts.good_image:
        return Standing(Phase.UPDATING, "RollingOut", f"from {facts.good_image} to {facts.image}")
    if facts.updated < facts.replicas:
        return Standing(Phase.UPDATING, "RollingOut", "pods are replaced by new ones")
    if facts.wanted != facts.good_replicas:
        return _scaling(facts)
    if not facts.rolled_out:
        return Standing(Phase.WAITING, "WaitingForPods", counted)
    return Standing(Phase.DEGRADED, "PodsLost", counted)


def _scaling(facts: Facts) -> Standing:
    return Standing(Phase.SCALING, "Scaling", f"from {facts.good_replicas} to {facts.wanted} replicas")


class Lifecycle:
    """Watches over transitions, and counts: applications by phase, transitions, and those that are not declared.

    `metrics` are for the manager to export. None names an application.
    """

    def __init__(self) -> None:
        labels = ["before", "after"]
        self.applications = Gauge("webapp_applications", "WebApps by phase", ["phase"], registry=None)
        self.transitions = Counter("webapp_transitions", "Changes of phase", labels, registry=None)
        self.undeclared = Counter(
            "webapp_undeclared_transitions", "Changes of phase that are not declared", labels, registry=None
        )
        self._phases: dict[Key, Phase] = {}

    @property
    def metrics(self) -> tuple[Collector, ...]:
        return self.applications, self.transitions, self.undeclared

    def stands(self, key: Key, before: Phase, after: Phase) -> None:
        """Note the phase of an application, which was another one or the same."""
        counted = self._phases.get(key)
        if counted is not after:
            self.forget(key)
            self._phases[key] = after
            self.applications.labels(after).inc()
        if before is after:
            return
        self.transitions.labels(before, after).inc()
        if after not in DECLARED[before]:
            self.undeclared.labels(before, after).inc()
            _log.warning("Undeclared transition", extra={"key": str(key), "before": str(before), "after": str(after)})

    def forget(self, key: Key) -> None:
        """Count an application no more: it is gone."""
        counted = self._phases.pop(key, None)
        if counted is not None:
            self.applications.labels(counted).dec()
