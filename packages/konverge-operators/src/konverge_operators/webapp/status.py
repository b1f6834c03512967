"""The status of a WebApp: phase, counts and conditions, and an event for each change of phase."""

from __future__ import annotations

from dataclasses import dataclass

from konverge import Context
from konverge.k8s.apps.v1 import Deployment
from konverge_operators.webapp.api import Phase, WebApp
from konverge_operators.webapp.children import selector_of
from konverge_operators.webapp.facts import Facts, is_available
from konverge_operators.webapp.lifecycle import DerivedStatus, Lifecycle, derive_status

__all__ = ["Observed", "set_status"]


@dataclass(frozen=True)
class Observed:
    """The facts, and the Deployment that they were read from; None if it was not read."""

    facts: Facts
    deployment: Deployment | None = None


def set_status(app: WebApp, ctx: Context, observed: Observed, lifecycle: Lifecycle) -> None:
    """Set the status of an application in memory; the caller writes it to the server."""
    derived = derive_status(observed.facts)
    before = app.status.phase
    app.status.phase = derived.phase
    app.status.observed_generation = app.metadata.generation or 0
    app.status.selector = ",".join(f"{name}={value}" for name, value in selector_of(app).items())
    if observed.deployment is not None:
        _set_counts(app, ctx, observed.facts, observed.deployment)
    if derived.phase is Phase.READY:
        app.status.last_good_image = observed.facts.image
        app.status.ready_replicas = observed.facts.desired
    if app.status.failed_image != app.spec.image or not app.spec.rollback:
        app.status.failed_image = ""
    _set_conditions(app, ctx, derived)
    lifecycle.record_phase(app.key, before, derived.phase)
    if derived.phase is not before:
        warning = derived.phase is Phase.DEGRADED
        ctx.event(derived.phase.value, f"{derived.reason}: {derived.message}", warning=warning, action="Reconcile")


def _set_counts(app: WebApp, ctx: Context, facts: Facts, deployment: Deployment) -> None:
    app.status.replicas = facts.replicas
    app.status.available_replicas = facts.available
    enough = is_available(deployment)
    reason = "EnoughReplicas" if enough else "TooFewReplicas"
    message = f"{facts.available} of {facts.desired} replicas are available"
    ctx.condition(app, "Available", enough, reason=reason, message=message)


def _set_conditions(app: WebApp, ctx: Context, derived: DerivedStatus) -> None:
    why = {"reason": derived.reason, "message": derived.message}
    ctx.condition(app, "Progressing", derived.progressing, **why)
    ctx.condition(app, "Degraded", derived.phase is Phase.DEGRADED, **why)
    if derived.phase is Phase.DELETING or all(condition.type != "Available" for condition in app.status.conditions):
        ctx.condition(app, "Available", False, **why)
