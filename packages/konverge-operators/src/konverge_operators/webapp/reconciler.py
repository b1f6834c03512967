"""The reconciler of WebApp: a workflow of the application itself, its route and its monitoring.

The order matters in two places:

1. Ownership of `replicas` is handed over before the field is omitted, and an autoscaler is deleted before `replicas`
   is set again. So at every moment exactly one party sets the number.
2. The failed image is recorded in the status before the good one is applied. After a crash in between the rollback
   continues; the bad image is not tried again.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from konverge import ApiError, Context, Controller, Key, KonvergeError, Result, TerminalError
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

Versions: TypeAlias = tuple[object, ...]

_AUTOSCALER = "webapp-autoscaling"
_RESTARTED = "kubectl.kubernetes.io/restartedAt"
_REPORTED_FIELDS = 5


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
    scraped = monitoring is not None and not ctx.is_served(children.POD_MONITOR)
    service = children.service_for(app, _scrape_annotations(app) if scraped else None)
    objects: list[AnyObject] = [service, children.budget_for(app)]
    if scaling is not None:
        objects.append(children.autoscaler_for(app, scaling))
    deployment = children.deployment_for(
        app, image=image_to_run(app), replicas=None, annotations=await configuration.annotations(app, ctx)
    )
    await _refuse_foreign(app, ctx, deployment, *objects)
    deployment.spec.replicas = await _replicas(app, ctx)
    return [deployment, *objects]


async def _replicas(app: WebApp, ctx: Context) -> int | None:
    """Return the replicas to apply; None when they belong to the autoscaler."""
    scaling = app.spec.autoscaling
    if scaling is None:
        return app.spec.replicas
    existing = await ctx.get(Deployment, app.name)
    if existing is None:
        return children.initial_replicas(app, scaling)
    await ctx.hand_over(existing, ".spec.replicas", to=_AUTOSCALER)
    return None


def _scrape_annotations(app: WebApp) -> dict[str, str]:
    """Return the annotations for a Prometheus without its operator."""
    path = app.spec.monitoring.path if app.spec.monitoring is not None else ""
    values = {"scrape": "true", "port": str(app.spec.port), "path": path}
    return {f"prometheus.io/{name}": value for name, value in values.items()}


async def _route(app: WebApp, ctx: Context) -> list[AnyObject]:
    """Return the Ingress or the HTTPRoute."""
    options = app.spec.ingress
    assert options is not None
    if options.gateway is None:
        route: AnyObject = children.ingress_for(app, options)
    elif ctx.is_served(children.HTTP_ROUTE):
        route = children.http_route_for(app, options)
    else:
        raise Waiting("GatewayNotInstalled", "spec.ingress.gateway needs the Gateway API: install its CRDs")
    await _refuse_foreign(app, ctx, route)
    return [route]


async def _monitoring(app: WebApp, ctx: Context) -> list[AnyObject]:
    """Return the PodMonitor, where the Prometheus operator is installed."""
    options = app.spec.monitoring
    assert options is not None
    if not ctx.is_served(children.POD_MONITOR):
        return []
    monitor = children.pod_monitor_for(app, options)
    await _refuse_foreign(app, ctx, monitor)
    return [monitor]


async def _refuse_foreign(app: WebApp, ctx: Context, *desired: AnyObject) -> None:
    """Refuse to adopt an object that somebody else created: it would be deleted together with the WebApp."""
    optional = {kind.kind: kind for kind in (children.HTTP_ROUTE, children.POD_MONITOR)}
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
            optional_kinds=(children.HTTP_ROUTE,),
            needs=("application",),
            enabled=lambda app: app.spec.ingress is not None,
            propagation="Background",
        ),
        Component(
            "monitoring",
            _monitoring,
            kinds=(),
            optional_kinds=(children.POD_MONITOR,),
            needs=("application",),
            enabled=lambda app: app.spec.monitoring is not None,
            propagation="Background",
        ),
    ),
    phases=phases,
    configuration=configuration,
)


class WebAppReconciler(WorkflowReconciler[WebApp]):
    """Reconciles WebApps by their workflow; rolls back failed images, and reports fields that others set."""

    finalizer = FINALIZER
    workflow = workflow

    def __init__(self, metrics: PhaseMetrics | None = None) -> None:
        super().__init__(metrics)
        self._compared: dict[Key, Versions] = {}

    async def reconcile(self, app: WebApp, ctx: Context, /) -> Result:
        if not app.status.conditions:
            ctx.condition(app, "Ready", False, reason="Created", message="the WebApp is not reconciled yet")
            app = await ctx.update_status(app)
        deployment = await ctx.get(Deployment, app.name)
        compared = None
        if deployment is not None:
            app = await self._roll_back(app, ctx, deployment)
            compared = await self._report_foreign_fields(app, ctx, deployment)
        try:
            result = await super().reconcile(app, ctx)
        except KonvergeError as error:
            if _is_namespace_terminating(error):
                return Result.requeue(after=workflow.ready_interval, reason="the namespace is being deleted")
            raise
        if compared is not None:
            self._compared[app.key] = compared  # only now the status is written
        return result

    async def finalize(self, app: WebApp, ctx: Context, /) -> Result:
        result = await super().finalize(app, ctx)
        if result == Result.done():
            ctx.event("Deleted", "all children are deleted", action="Finalize")
        return result

    def gone(self, key: Key) -> None:
        super().gone(key)
        self._compared.pop(key, None)

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

    async def _report_foreign_fields(self, app: WebApp, ctx: Context, deployment: Deployment) -> Versions:
        """Set the condition ForeignFields, if the children have changed since; return the versions that it is about."""
        service = await ctx.get(Service, app.name)
        version = service.metadata.resource_version if service is not None else ""
        compared = (app.metadata.generation, deployment.uid, deployment.metadata.generation, version)
        if self._compared.get(app.key) == compared:
            return compared
        names = [
            f"{child.kind} {_item_of(app, field.path)} by {field.manager}"
            for child in (deployment, service)
            if child is not None
            for field in await ctx.foreign_fields(child)
            if not field.shared and _changes_behavior(app, field.path)
        ]
        found = list(dict.fromkeys(names))
        reason = "ForeignFields" if found else "NoForeignFields"
        more = f" and {len(found) - _REPORTED_FIELDS} more" if len(found) > _REPORTED_FIELDS else ""
        message = ", ".join(found[:_REPORTED_FIELDS]) + more
        ctx.condition(app, "ForeignFields", bool(found), reason=reason, message=message)
        return compared


def _changes_behavior(app: WebApp, path: str) -> bool:
    if path == ".spec.replicas":
        return app.spec.autoscaling is None
    return path.startswith(".spec.") and _RESTARTED not in path


def _item_of(app: WebApp, path: str) -> str:
    """Return the item of a list that a field belongs to, if the item is not ours; otherwise the field."""
    item = path.partition("]")[0] + "]"
    ours = f'[name="{children.CONTAINER}"]' in item or f"[port={app.spec.port}," in item
    return path if ours or "]" not in path else item


def _is_namespace_terminating(error: BaseException) -> bool:
    found = error if isinstance(error, ApiError) else error.__cause__
    return isinstance(found, ApiError) and any(cause.reason == "NamespaceTerminating" for cause in found.causes)


def controllers(metrics: PhaseMetrics | None = None) -> tuple[Controller[WebApp], ...]:
    """Return the controllers of this operator."""
    builder = workflow.builder().needs(Deployment, "get").needs(Service, "get")
    return (builder.build(WebAppReconciler(metrics)),)
