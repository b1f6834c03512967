"""What to do next with the members: a pure function of the facts, one step at a time.

Each step is safe to interrupt: the next reconcile decides again from what it observes. A step that stops a member is
taken only while all others serve; the primary is stopped only after a switchover, unless it is the only member.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from konverge.k8s.core.v1 import Pod
from konverge_operators.database.api import MAX_REPLICAS
from konverge_operators.database.facts import Facts
from konverge_operators.database.names import ordinal_of, pod_name

__all__ = ["Replace", "Restart", "ScaleTo", "Step", "SwitchOver", "Wait", "best_replica", "next_step"]


@dataclass(frozen=True)
class Wait:
    """Nothing can be done before something else happens; `message` says what."""

    message: str


@dataclass(frozen=True)
class ScaleTo:
    """Run this number of members."""

    replicas: int


@dataclass(frozen=True)
class Replace:
    """Delete an outdated pod, or one whose claim is lost; the StatefulSet creates it again."""

    pod: Pod
    reason: str = "from the new template"


@dataclass(frozen=True)
class Restart:
    """Restart the engine of a member in place."""

    member: str


@dataclass(frozen=True)
class SwitchOver:
    """Let a replica become the primary, so that the primary can be stopped."""

    to: str
    reason: str


Step: TypeAlias = Wait | ScaleTo | Replace | Restart | SwitchOver | None


def next_step(facts: Facts) -> Step:
    """Return the next step, or None when the members are as the spec says."""
    if facts.database.spec.hibernate:
        return _stop(facts)
    if facts.replicas == 0:
        return ScaleTo(_initial_replicas(facts))
    if not facts.set_is_current:
        return Wait("the StatefulSet is being updated")
    if broken := [pod for pod in facts.stale if facts.is_broken(pod)]:
        return Replace(broken[-1])
    if broken := [pod for pod in facts.pods if pod.name in facts.lost_claims and pod.name != facts.primary]:
        return Replace(broken[-1], "with a new claim, as its own is lost")
    if not facts.initialized:
        return Wait(f"{pod_name(facts.database, 0)} initialises the database")
    return _shrink_unhealthy(facts) or _wait(facts) or _update(facts) or _restart(facts) or _scale(facts)


def best_replica(facts: Facts, *, limit: int = MAX_REPLICAS) -> str:
    """Return the replica that becomes the primary: one that commits wait for, else the first; "" if there is none."""
    found = [name for name in facts.healthy if name != facts.primary and ordinal_of(name) < limit]
    current = [name for name in found if name not in {pod.name for pod in facts.stale}] or found
    waited_for = [name for name in current if facts.member(name).synchronous]
    return next(iter(waited_for or current), "")


def _stop(facts: Facts) -> Step:
    if facts.replicas:
        return ScaleTo(0)
    return Wait("members are being stopped") if facts.pods else None


def _initial_replicas(facts: Facts) -> int:
    """Return how many members start: all that may have data, since the newest data may be that of any of them."""
    running = max((ordinal_of(one.name) + 1 for one in facts.pods), default=0)
    data = facts.database.status.last_replicas or max((ordinal_of(one.name) + 1 for one in facts.claims), default=0)
    return min(max(running, data, 1), MAX_REPLICAS)


def _wait(facts: Facts) -> Step:
    if not facts.primary:
        return Wait("no member accepts writes")
    if facts.observed.switchover_pending:
        return Wait("a switchover is under way")
    if missing := [name for name in facts.expected if name not in facts.healthy]:
        return Wait(f"{', '.join(missing)} not ready")
    if facts.stopping:
        return Wait(f"{', '.join(facts.stopping)} being stopped")
    return Wait("commits wait for no replica yet") if facts.without_synchronous else None


def _shrink_unhealthy(facts: Facts) -> Step:
    """Remove the last member if it is stopping and broken anyway, so that it cannot hold up scaling in."""
    if not facts.primary or facts.stopping or facts.replicas <= facts.database.spec.replicas:
        return None
    last = facts.expected[-1]
    return ScaleTo(facts.replicas - 1) if last != facts.observed.primary and not facts.is_healthy(last) else None


def _update(facts: Facts) -> Step:
    """Replace replicas from the last to the first, then the primary after a switchover."""
    if not facts.stale:
        return None
    replicas = [pod for pod in facts.stale if pod.name != facts.primary]
    if replicas:
        return Replace(replicas[-1])
    to = best_replica(facts)
    return SwitchOver(to, "the primary is updated last") if to else Replace(facts.stale[0])


def _restart(facts: Facts) -> Step:
    """Restart members whose parameters wait for it: the primary last, and in place without a switchover."""
    pending = [name for name in facts.expected if facts.member(name).pending_restart]
    replicas = [name for name in pending if name != facts.primary]
    return Restart((replicas or pending)[-1]) if pending else None


def _scale(facts: Facts) -> Step:
    wanted, replicas = facts.database.spec.replicas, facts.replicas
    if replicas < wanted:
        return ScaleTo(replicas + 1)
    if replicas == wanted:
        return None
    if ordinal_of(facts.primary) < replicas - 1:
        return ScaleTo(replicas - 1)
    return SwitchOver(best_replica(facts, limit=replicas - 1), f"{facts.primary} is removed")
