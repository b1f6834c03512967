"""Writing down where an application stands: phase, counts and conditions in its status, an event for each change."""

from __future__ import annotations

from dataclasses import dataclass

from konverge import Context
from konverge.k8s.apps.v1 import Deployment
from konverge_operators.webapp.api import Phase, WebApp
from konverge_operators.webapp.children import selector_of
from konverge_operators.webapp.lifecycle import Facts, Lifecycle, Standing, standing_of
from konverge_operators.webapp.observation import is_available

__all__ = ["Observed", "stand"]


@dataclass(frozen=True)
class Observed:
    """The facts, and the Deployment that they were read from; None when it was not looked at."""

    facts: Facts
    deployment: Deployment | None = None


def stand(app: WebApp, ctx: Context, observed: Observed, lifecycle: Lifecycle) -> None:
    """Set the status of an application; nothing is sent here."""
    standing = standing_of(observed.facts)
    before = app.status.phase
    app.status.phase = standing.phase
    app.status.observed_generation = app.metadata.generation or 0
    app.status.selector = ",".join(f"{name}={value}" for name, value in selector_of(app).items())
    if observed.deployment is not None:
        _count(app, ctx, observed.facts, observed.deployment)
    if standing.phase is Phase.READY:
        app.status.last_good_image = observed.facts.image
        app.status.ready_replicas = observed.facts.wanted
    if app.status.failed_image != app.spec.image or not app.spec.rollback:
        app.status.failed_image = ""
    _set_conditions(app, ctx, standing)
    lifecycle.stands(app.key, before, standing.phase)
    if standing.phase is not before:
        warning = standing.phase is Phase.DEGRADED
        ctx.event(standing.phase.value, f"{standing.reason}: {standing.message}", warning=warning, action="Reconcile")


def _count(app: WebApp, ctx: Context, facts: Facts, deployment: Deployment) -> None:
    app.status.replicas = facts.replicas
    app.status.available_replicas = facts.available
    enough = is_available(deployment)
    reason = "EnoughReplicas" if enough else "TooFewReplicas"
    words = f"{facts.available} of {facts.wanted} replicas are available"
    ctx.condition(app, "Available", enough, reason=reason, message=words)


def _set_conditions(app: WebApp, ctx: Context, standing: Standing) -> None:
    why = {"reason": standing.reason, "message": standing.message}
    ctx.condition(app, "Progressing", standing.progressing, **why)
    ctx.condition(app, "Degraded", standing.phase is Phase.DEGRADED, **why)
    if standing.phase is Phase.DELETING or all(one.type != "Available" for one in app.status.conditions):
        ctx.condition(app, "Available", False, **why)
