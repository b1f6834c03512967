"""The reconciler of WebApp: a workflow of the application itself, its route and its monitoring.

The order matters in two places:

1. Ownership of `replicas` is handed over before the field is omitted, and an autoscaler is deleted before `replicas`
   is set again. So at every moment exactly one party sets the number.
2. The failed image is recorded in the status before the good one is applied. After a crash in between the rollback
   continues; the bad image is not tried again.
"""

from __future__ import annotations

from typing import Any

from konverge import Context, Controller, KonvergeError, Result, TerminalError
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.autoscaling.v2 import HorizontalPodAutoscaler
from konverge.k8s.core.v1 import Service
from konverge.k8s.networking.v1 import Ingress
from konverge.objects import AnyObject
from konverge.workflow import (
    Component,
    Configuration,
    PhaseMetrics,
    Waiting,
    Workflow,
    WorkflowReconciler,
    WorkflowState,
)
from konverge_operators.autoscaling import replicas_to_apply
from konverge_operators.manifests import HTTP_ROUTE, POD_MONITOR, scrape_annotations
from konverge_operators.webapp import children
from konverge_operators.webapp.api import Phase, WebApp
from konverge_operators.webapp.phases import (
    PROGRESSING,
    application_status,
    derive_phase,
    has_failed,
    image_to_run,
    phases,
    rollout_of,
)
from konverge_operators.webapp.rules import find_violations

__all__ = ["FINALIZER", "OwnershipConflict", "WebAppReconciler", "controllers", "workflow"]

FINALIZER = "example.com/webapp"

_AUTOSCALER = "webapp-autoscaling"


class OwnershipConflict(KonvergeError):
    """An object with the name of a child exists, and this WebApp does not own it."""


# Components


async def _application(app: WebApp, ctx: Context) -> list[AnyObject]:
    """Return the Deployment, the Service, the budget and the autoscaler."""
    if violations := find_violations(app):
        raise TerminalError("; ".join(map(str, violations)))
    scaling, monitoring = app.spec.autoscaling, app.spec.monitoring
    if scaling is None:
        await ctx.prune(HorizontalPodAutoscaler)
    scraped: dict[str, str] = {}
    if monitoring is not None and not ctx.is_served(POD_MONITOR):
        scraped = scrape_annotations(app.spec.port, monitoring.path)
    objects: list[AnyObject] = [children.service_for(app, scraped), children.budget_for(app)]
    if scaling is not None:
        objects.append(children.autoscaler_for(app, scaling))
    deployment = children.deployment_for(
        app, image=image_to_run(app), replicas=None, annotations=await configuration.annotations(app, ctx)
    )
    await _refuse_foreign(app, ctx, deployment, *objects)
    desired = app.spec.replicas if scaling is None else app.status.replicas or app.spec.replicas
    deployment.spec.replicas = await replicas_to_apply(ctx, app.name, desired, scaling, manager=_AUTOSCALER)
    return [deployment, *objects]


async def _route(app: WebApp, ctx: Context) -> list[AnyObject]:
    """Return the Ingress or the HTTPRoute."""
    options = app.spec.ingress
    assert options is not None
    if options.gateway is None:
        route: AnyObject = children.ingress_for(app, options)
    elif ctx.is_served(HTTP_ROUTE):
        route = children.http_route_for(app, options)
    else:
        raise Waiting("GatewayNotInstalled", "spec.ingress.gateway needs the Gateway API: install its CRDs")
    await _refuse_foreign(app, ctx, route)
    return [route]


async def _monitoring(app: WebApp, ctx: Context) -> list[AnyObject]:
    """Return the PodMonitor, where the Prometheus operator is installed."""
    options = app.spec.monitoring
    assert options is not None
    if not ctx.is_served(POD_MONITOR):
        return []
    monitor = children.pod_monitor_for(app, options)
    await _refuse_foreign(app, ctx, monitor)
    return [monitor]


async def _refuse_foreign(app: WebApp, ctx: Context, *desired: AnyObject) -> None:
    """Refuse to adopt an object that somebody else created: it would be deleted together with the WebApp."""
    optional = {kind.kind: kind for kind in (HTTP_ROUTE, POD_MONITOR)}
    for obj in desired:
        kind: Any = optional.get(obj.kind, type(obj))
        found = await ctx.get(kind, app.name)
        if found is not None and found.uid not in [one.uid for one in ctx.owned(kind)]:
            raise OwnershipConflict(
                f"{obj.kind} {app.key} already exists and this WebApp does not own it (delete or rename one)"
            )


configuration: Configuration[WebApp] = Configuration(
    config_maps=lambda app: [one.config_map_ref.name for one in app.spec.env_from if one.config_map_ref is not None],
    secrets=lambda app: [one.secret_ref.name for one in app.spec.env_from if one.secret_ref is not None],
)

workflow: Workflow[WebApp] = Workflow(
    kind=WebApp,
    components=(
        Component(
            "application",
            _application,
            kinds=tuple(kind for kind in children.KINDS if kind is not Ingress),
            readiness=application_status,
            propagation="Background",
        ),
        Component(
            "route",
            _route,
            kinds=(Ingress,),
            optional_kinds=(HTTP_ROUTE,),
            needs=("application",),
            enabled=lambda app: app.spec.ingress is not None,
            propagation="Background",
        ),
        Component(
            "monitoring",
            _monitoring,
            kinds=(),
            optional_kinds=(POD_MONITOR,),
            needs=("application",),
            enabled=lambda app: app.spec.monitoring is not None,
            propagation="Background",
        ),
    ),
    phases=phases,
    configuration=configuration,
    suspended=lambda app: app.spec.suspend,
    reports_foreign_fields_of=(Deployment, Service),
)


class WebAppReconciler(WorkflowReconciler[WebApp]):
    """Reconciles WebApps by their workflow; rolls back failed images."""

    finalizer = FINALIZER
    workflow = workflow

    async def reconcile(self, app: WebApp, ctx: Context, /) -> Result:
        if not app.status.conditions:
            ctx.condition(app, "Ready", False, reason="Created", message="the WebApp is not reconciled yet")
            app = await ctx.update_status(app)
        deployment = await ctx.get(Deployment, app.name)
        if deployment is not None and not app.spec.suspend:
            app = await self._roll_back(app, ctx, deployment)
        return await super().reconcile(app, ctx)

    async def finalize(self, app: WebApp, ctx: Context, /) -> Result:
        result = await super().finalize(app, ctx)
        if result == Result.done():
            ctx.event("Deleted", "all children are deleted", action="Finalize")
        return result

    def observe(self, app: WebApp, ctx: Context, state: WorkflowState, /) -> None:
        """Set the counts, the conditions of a Deployment, and what is remembered of a ready application."""
        status, derived = app.status, derive_phase(app, state)
        status.selector = ",".join(f"{name}={value}" for name, value in children.selector_of(app).items())
        if "application" in state and state["application"].objects:
            rollout = rollout_of(app, state["application"])
            status.replicas, status.ready_replicas = rollout.replicas, rollout.ready
            status.available_replicas = rollout.available
            reason = "EnoughReplicas" if rollout.is_available else "TooFewReplicas"
            ctx.condition(app, "Available", rollout.is_available, reason=reason, message=rollout.message)
            if state.ready and status.phase is Phase.READY:  # after an error the phase may be an old one
                status.last_good_image, status.last_good_replicas = rollout.image, rollout.desired
        else:
            ctx.condition(app, "Available", False, reason=derived.reason, message=derived.message)
        if status.failed_image != app.spec.image or not app.spec.rollback:
            status.failed_image = ""
        ctx.condition(app, "Progressing", status.phase in PROGRESSING, reason=derived.reason, message=derived.message)
        degraded = status.phase is Phase.DEGRADED
        ctx.condition(app, "Degraded", degraded, reason=derived.reason, message=derived.message)
        status.conditions.sort(key=lambda condition: condition.type)  # whatever happened first

    async def _roll_back(self, app: WebApp, ctx: Context, deployment: Deployment) -> WebApp:
        """Record an image that failed, if there is a good one; return the application as it is stored then."""
        good, image = app.status.last_good_image, app.spec.image
        applied = app.status.observed_generation == app.metadata.generation
        if not (app.spec.rollback and applied and good and good != image and has_failed(app, deployment)):
            return app
        app.status.failed_image = image
        app = await ctx.update_status(app)
        message = f"{image} does not become ready, rolling back to {good}"
        ctx.event("RolledBack", message, warning=True, action="RollBack")
        return app


def controllers(metrics: PhaseMetrics | None = None) -> tuple[Controller[WebApp], ...]:
    """Return the controllers of this operator."""
    return (workflow.builder().build(WebAppReconciler(metrics)),)
