"""How a WebApp becomes a Deployment, a Service and, when asked for, an Ingress and an autoscaler.

One run applies all parts, takes away what is no longer asked for, looks at what is there and writes down where the
application stands. The order matters in two places:

1. `replicas` is handed over before it is left out, and an autoscaler goes before `replicas` is taken back: in neither
   direction is there a moment in which nobody, or two, decide on the number.
2. That an image failed is written down before the good one is applied: a crash in between is followed by the rollback,
   not by another try of the bad image.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from konverge import (
    ApiError,
    Conflict,
    Context,
    Controller,
    Key,
    KonvergeError,
    Reconciler,
    Result,
    TerminalError,
    controller_for,
)
from konverge.errors import WriteRefused
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.autoscaling.v2 import HorizontalPodAutoscaler
from konverge.k8s.networking.v1 import Ingress
from konverge_operators.webapp.api import WebApp
from konverge_operators.webapp.children import (
    KINDS,
    autoscaler_for,
    deployment_for,
    first_replicas,
    ingress_for,
    service_for,
)
from konverge_operators.webapp.lifecycle import Facts, Lifecycle
from konverge_operators.webapp.observation import facts_of, image_to_run, rollback_wanted
from konverge_operators.webapp.rules import problems_of
from konverge_operators.webapp.status import Observed, stand

__all__ = ["FINALIZER", "LOOK_AGAIN", "NotOurs", "WebAppReconciler", "controllers"]

FINALIZER = "example.com/webapp"
LOOK_AGAIN = 30.0
"""So many seconds after each reconcile comes the next one, whatever was or was not heard."""

_AUTOSCALER = "webapp-autoscaling"
_PATIENCE = 3
_GOING = 5.0


class NotOurs(KonvergeError):
    """There is an object of the name that a part of the application needs, and it belongs to somebody else."""


class WebAppReconciler(Reconciler[WebApp]):
    """Keeps the parts as the WebApp asks, and says in its status how they are."""

    finalizer = FINALIZER

    def __init__(self, lifecycle: Lifecycle | None = None) -> None:
        self.lifecycle = lifecycle or Lifecycle()

    async def reconcile(self, app: WebApp, ctx: Context) -> Result:
        try:
            if problems := problems_of(app):
                raise TerminalError("; ".join(map(str, problems)))
            deployment = await self._parts(app, ctx)
            facts = facts_of(app, deployment)
            if rollback_wanted(app, facts):
                app = await self._note_failure(app, ctx, facts)
                deployment = await self._deployment(app, ctx)
            await self._tell(app, ctx, Observed(facts_of(app, deployment), deployment))
        except (Conflict, WriteRefused, asyncio.CancelledError):
            raise  # not this application's trouble: somebody else was faster, or this process leads no more
        except Exception as error:
            if _ends_with_its_namespace(error):
                return Result.requeue(after=LOOK_AGAIN, reason="the namespace is being deleted, and the WebApp with it")
            await self._complain(app, ctx, error)
            raise
        return Result.requeue(after=LOOK_AGAIN)

    async def finalize(self, app: WebApp, ctx: Context) -> Result:
        """Take the application apart: first what sends it requests, then what serves them."""
        await self._tell(app, ctx, Observed(Facts(deleting=True)))
        for kind in KINDS:
            for child in ctx.owned(kind):
                if child.metadata.deletion_timestamp is None:
                    await ctx.delete(child, propagation="Background")
        if left := sum(len(ctx.owned(kind)) for kind in KINDS):
            return Result.requeue(after=_GOING, reason=f"{left} parts are still there")
        ctx.event("Deleted", "all parts are deleted", action="Finalize")
        return Result.done()

    def gone(self, key: Key) -> None:
        self.lifecycle.forget(key)

    # Parts

    async def _parts(self, app: WebApp, ctx: Context) -> Deployment:
        """Apply everything that is asked for, and remove everything else."""
        await self._only_ours(app, ctx)
        if app.spec.autoscaling is None:
            await ctx.prune(HorizontalPodAutoscaler)
        deployment = await self._deployment(app, ctx)
        await ctx.apply(service_for(app))
        if app.spec.ingress is not None:
            await ctx.apply(ingress_for(app, app.spec.ingress))
        if app.spec.autoscaling is not None:
            await ctx.apply(autoscaler_for(app, app.spec.autoscaling))
        await ctx.prune(*KINDS)
        return deployment

    async def _deployment(self, app: WebApp, ctx: Context) -> Deployment:
        scaling = app.spec.autoscaling
        replicas: int | None = app.spec.replicas
        if scaling is not None:
            there = await ctx.get(Deployment, app.name)
            replicas = first_replicas(app, scaling) if there is None else None
            if there is not None:
                await ctx.hand_over(there, ".spec.replicas", to=_AUTOSCALER)
        return await ctx.apply(deployment_for(app, image=image_to_run(app), replicas=replicas))

    async def _only_ours(self, app: WebApp, ctx: Context) -> None:
        """Refuse to take over what somebody else has made: it would go with the application."""
        asked = {Ingress: app.spec.ingress is not None, HorizontalPodAutoscaler: app.spec.autoscaling is not None}
        for kind in KINDS:
            found = await ctx.get(kind, app.name) if asked.get(kind, True) else None
            if found is not None and app.uid not in [one.uid for one in found.metadata.owner_references or ()]:
                raise NotOurs(f"{kind.__name__} {app.key} is there and not this WebApp's (delete or rename one)")

    async def _note_failure(self, app: WebApp, ctx: Context, facts: Facts) -> WebApp:
        good = app.status.last_good_image
        app.status.failed_image = facts.image
        app = await ctx.update_status(app)
        ctx.event("RolledBack", f"{facts.image} does not become ready, back to {good}", warning=True, action="RollBack")
        return app

    # Telling

    async def _tell(self, app: WebApp, ctx: Context, observed: Observed) -> None:
        stand(app, ctx, observed, self.lifecycle)
        app.status.last_error, app.status.retry_count = "", 0
        await ctx.update_status(app)

    async def _complain(self, app: WebApp, ctx: Context, error: Exception) -> None:
        """Write the error where its owner looks. One that may pass is no change of phase before it has stayed."""
        lasting = isinstance(error, TerminalError)
        if lasting or ctx.attempt >= _PATIENCE:
            reason = "InvalidSpec" if lasting else "ReconcileFailed"
            stand(app, ctx, Observed(Facts(trouble=(reason, str(error)))), self.lifecycle)
        app.status.last_error, app.status.retry_count = str(error), 0 if lasting else ctx.attempt
        with suppress(KonvergeError):  # the error itself is what counts, and it is raised
            await ctx.update_status(app)


def _ends_with_its_namespace(error: Exception) -> bool:
    return isinstance(error, ApiError) and any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def controllers(lifecycle: Lifecycle | None = None) -> tuple[Controller[WebApp], ...]:
    """Give the controllers of this operator."""
    builder = controller_for(WebApp)
    for kind in reversed(KINDS):
        builder = builder.owns(kind)
    return (builder.build(WebAppReconciler(lifecycle)),)
