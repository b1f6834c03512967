"""The operator of EcommerceApp: its workflow, its reconciler, and the value that the commands load."""

from __future__ import annotations

from pathlib import Path

from konverge import Context, Result
from konverge.k8s.apps.v1 import Deployment, StatefulSet
from konverge.k8s.core.v1 import PersistentVolumeClaim, Secret, Service
from konverge.manager import Operator
from konverge.objects import decode, now, to_wire
from konverge.workflow import Component, Workflow, WorkflowReconciler, WorkflowState
from konverge_operators.ecommerce import database, ingress, monitoring, tiers
from konverge_operators.ecommerce.api import EcommerceApp, LastRunning, Phase
from konverge_operators.ecommerce.local_images import local_images
from konverge_operators.ecommerce.names import IMAGE_UPDATED, OPERATOR
from konverge_operators.ecommerce.phases import phases, update_reason
from konverge_operators.protection import protection_of

__all__ = ["EcommerceReconciler", "new_operator", "operator", "workflow"]

workflow: Workflow[EcommerceApp] = Workflow(
    kind=EcommerceApp,
    components=(
        Component(
            "database",
            database.database_objects,
            kinds=database.KINDS,
            optional_kinds=(database.DATABASE,),
            readiness=database.database_status,
            cleanup=database.report_claims,
        ),
        Component(
            "backend",
            tiers.backend_objects,
            kinds=tiers.KINDS,
            needs=("database",),
            readiness=tiers.backend_status,
            title="Backend deployment",
        ),
        Component(
            "frontend", tiers.frontend_objects, kinds=tiers.KINDS, needs=("backend",), title="Frontend deployment"
        ),
        Component(
            "ingress",
            ingress.ingress_objects,
            kinds=ingress.KINDS,
            optional_kinds=ingress.OPTIONAL_KINDS,
            needs=("frontend",),
        ),
        Component(
            "monitoring",
            monitoring.monitoring_objects,
            kinds=monitoring.KINDS,
            optional_kinds=monitoring.OPTIONAL_KINDS,
            needs=("backend", "frontend"),
            enabled=lambda app: app.spec.monitoring.enabled,
        ),
    ),
    phases=phases,
    configuration=ingress.configuration,
    suspended=lambda app: app.spec.suspend,
    protected=protection_of,
    progress_interval=30.0,
    reports_foreign_fields_of=(StatefulSet, Deployment, Service),
)


class EcommerceReconciler(WorkflowReconciler[EcommerceApp]):
    """Reconciles EcommerceApps by their workflow; records first what must not be decided twice."""

    finalizer = "ecommerce.io/ecommerceapp"
    workflow = workflow

    async def reconcile(self, app: EcommerceApp, ctx: Context, /) -> Result:
        if not app.status.database_kind:
            served = ctx.is_served(database.DATABASE)
            app.status.database_kind = database.DATABASE.kind if served else "StatefulSet"
            app = await ctx.update_status(app)
        requested = (app.metadata.annotations or {}).get(IMAGE_UPDATED) == "true"
        if requested and not app.status.restart_pending:
            app.status.last_restart, app.status.restart_pending = to_wire(now()), True
            app = await ctx.update_status(app)  # so that a crash does not restart the pods twice
        result = await super().reconcile(app, ctx)
        if requested and not app.spec.suspend:
            await ctx.client.patch(EcommerceApp, app.key, {"metadata": {"annotations": {IMAGE_UPDATED: None}}})
        return result

    def observe(self, app: EcommerceApp, ctx: Context, state: WorkflowState, /) -> None:
        """Record why the application is updated, what ran last, and the address."""
        app.status.reason = update_reason(app) if app.status.phase is Phase.UPDATING else ""
        requested = IMAGE_UPDATED in (app.metadata.annotations or {})
        app.status.restart_pending = app.status.restart_pending and requested
        app.status.url = ingress.url_of(app) if "ingress" in state and state["ingress"].ready else ""
        if app.status.phase is Phase.RUNNING:
            app.status.last_running = LastRunning(images=tiers.images_of(app), replicas=tiers.replicas_of(app))
        before = decode(EcommerceApp, app.source or b"").status
        if app.status != before:
            app.status.last_updated = to_wire(now())
        if app.status.observed_generation != before.observed_generation:
            _warn_of_overrides(app, ctx)


def _warn_of_overrides(app: EcommerceApp, ctx: Context) -> None:
    """Warn when the frontend has other values than the defaults that the application sets for it."""
    frontend = app.spec.frontend
    if app.spec.image and frontend.image and app.spec.image != frontend.image:
        message = f"spec.frontend.image {frontend.image} is used, not spec.image {app.spec.image}"
        ctx.event("ImageOverridden", message, warning=True, action="Reconcile")


def new_operator(reconciler: EcommerceReconciler | None = None) -> Operator:
    """Return the operator of a new process."""
    reconciler = reconciler or EcommerceReconciler()
    builder = reconciler.workflow.builder().needs(EcommerceApp, "patch")
    builder.needs(Secret, "get", "create").needs(PersistentVolumeClaim, "get", "create")
    folder = Path(__file__).parent
    return Operator(
        name=OPERATOR,
        controllers=(builder.build(reconciler),),
        samples=(folder / "samples" / "ecommerce-app.yaml",),
        monitoring=(folder / "alerts" / "ecommerce-operator.yaml", folder / "dashboards" / "ecommerce-operator.json"),
        images=(local_images,),
        metrics=reconciler.metrics.collectors,
    )


operator = new_operator()
