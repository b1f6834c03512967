"""How a WebApp becomes a Deployment and a Service."""

from __future__ import annotations

from operators.webapp.api import WebApp
from operators.webapp.children import deployment_for, service_for

from konverge import Context, Controller, Reconciler, Result, controller_for
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Service


class WebAppReconciler(Reconciler[WebApp]):
    """Keeps the children as the WebApp asks, and says in its status how they are."""

    async def reconcile(self, app: WebApp, ctx: Context) -> Result:
        deployment = await ctx.apply(deployment_for(app))
        await ctx.apply(service_for(app))
        available = (deployment.status.available_replicas if deployment.status else None) or 0
        app.status.available_replicas = available
        app.status.observed_generation = app.metadata.generation or 0
        ready = available >= app.spec.replicas
        reason = "AllReplicasAvailable" if ready else "WaitingForReplicas"
        ctx.condition(app, "Available", ready, reason=reason, message=f"{available} of {app.spec.replicas} available")
        await ctx.update_status(app)
        return Result.again(after=30)


def controllers() -> tuple[Controller[WebApp], ...]:
    """Give the controllers of this operator."""
    return (controller_for(WebApp).owns(Deployment).owns(Service).build(WebAppReconciler()),)
