"""The reconciler of WebApp: it manages a Deployment, a Service and, if requested, an Ingress and an autoscaler.

One reconcile applies all children, prunes those that are no longer requested, observes the Deployment and writes the
status. The order matters in two places:

1. Ownership of `replicas` is handed over before the field is omitted, and an autoscaler is deleted before `replicas`
   is set again. So at every moment exactly one party sets the number.
2. The failed image is recorded in the status before the good one is applied. After a crash in between the rollback
   continues; the bad image is not tried again.
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
    Resource,
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
    ingress_for,
    initial_replicas,
    service_for,
)
from konverge_operators.webapp.facts import Facts, facts_of, image_to_run, needs_rollback
from konverge_operators.webapp.lifecycle import Lifecycle
from konverge_operators.webapp.rules import find_violations
from konverge_operators.webapp.status import Observed, set_status

__all__ = ["FINALIZER", "RESYNC_INTERVAL", "OwnershipConflict", "WebAppReconciler", "controllers"]

FINALIZER = "example.com/webapp"
RESYNC_INTERVAL = 30.0
"""Seconds after a reconcile until the next one, with or without an event."""

_AUTOSCALER = "webapp-autoscaling"
_DEGRADED_AFTER = 3
"""Failed attempts after which an error that may be temporary changes the phase."""
_FINALIZE_RETRY = 5.0


class OwnershipConflict(KonvergeError):
    """An object with the name of a child exists, and this WebApp does not own it."""


class WebAppReconciler(Reconciler[WebApp]):
    """Keeps the children as the spec requires, and reports their state in the status."""

    finalizer = FINALIZER

    def __init__(self, lifecycle: Lifecycle | None = None) -> None:
        self.lifecycle = lifecycle or Lifecycle()

    async def reconcile(self, app: WebApp, ctx: Context) -> Result:
        try:
            if violations := find_violations(app):
                raise TerminalError("; ".join(map(str, violations)))
            deployment = await self._apply_children(app, ctx)
            facts = facts_of(app, deployment)
            if needs_rollback(app, facts):
                app = await self._record_failed_image(app, ctx, facts)
                deployment = await self._apply_deployment(app, ctx)
            await self._update_status(app, ctx, Observed(facts_of(app, deployment), deployment))
        except (Conflict, WriteRefused, asyncio.CancelledError):
            raise  # not a failure of this application: a newer version exists, or this process is no longer the leader
        except Exception as error:
            if _is_namespace_terminating(error):
                return Result.requeue(after=RESYNC_INTERVAL, reason="the namespace is being deleted")
            await self._report_error(app, ctx, error)
            raise
        return Result.requeue(after=RESYNC_INTERVAL)

    async def finalize(self, app: WebApp, ctx: Context) -> Result:
        """Delete the children: first those that send requests, then those that serve them."""
        await self._update_status(app, ctx, Observed(Facts(terminating=True)))
        for kind in KINDS:
            for child in ctx.owned(kind):
                if child.metadata.deletion_timestamp is None:
                    await ctx.delete(child, propagation="Background")
        if remaining := sum(len(ctx.owned(kind)) for kind in KINDS):
            return Result.requeue(after=_FINALIZE_RETRY, reason=f"{remaining} children still exist")
        ctx.event("Deleted", "all children are deleted", action="Finalize")
        return Result.done()

    def gone(self, key: Key) -> None:
        self.lifecycle.forget(key)

    # Children

    async def _apply_children(self, app: WebApp, ctx: Context) -> Deployment:
        """Apply every requested child, and prune the others."""
        await self._check_ownership(app, ctx)
        if app.spec.autoscaling is None:
            await ctx.prune(HorizontalPodAutoscaler)
        deployment = await self._apply_deployment(app, ctx)
        await ctx.apply(service_for(app))
        if app.spec.ingress is not None:
            await ctx.apply(ingress_for(app, app.spec.ingress))
        if app.spec.autoscaling is not None:
            await ctx.apply(autoscaler_for(app, app.spec.autoscaling))
        await ctx.prune(*KINDS)
        return deployment

    async def _apply_deployment(self, app: WebApp, ctx: Context) -> Deployment:
        scaling = app.spec.autoscaling
        replicas: int | None = app.spec.replicas
        if scaling is not None:
            existing = await ctx.get(Deployment, app.name)
            replicas = initial_replicas(app, scaling) if existing is None else None
            if existing is not None:
                await ctx.hand_over(existing, ".spec.replicas", to=_AUTOSCALER)
        return await ctx.apply(deployment_for(app, image=image_to_run(app), replicas=replicas))

    async def _check_ownership(self, app: WebApp, ctx: Context) -> None:
        """Refuse to adopt an object that somebody else created: it would be deleted together with the WebApp."""
        requested: dict[type[Resource], bool] = {
            Ingress: app.spec.ingress is not None,
            HorizontalPodAutoscaler: app.spec.autoscaling is not None,
        }
        for kind in KINDS:
            found = await ctx.get(kind, app.name) if requested.get(kind, True) else None
            owners = found.metadata.owner_references or () if found is not None else ()
            if found is not None and app.uid not in [owner.uid for owner in owners]:
                raise OwnershipConflict(
                    f"{kind.__name__} {app.key} already exists and this WebApp does not own it (delete or rename one)"
                )

    async def _record_failed_image(self, app: WebApp, ctx: Context, facts: Facts) -> WebApp:
        good = app.status.last_good_image
        app.status.failed_image = facts.image
        app = await ctx.update_status(app)
        message = f"{facts.image} does not become ready, rolling back to {good}"
        ctx.event("RolledBack", message, warning=True, action="RollBack")
        return app

    # Status

    async def _update_status(self, app: WebApp, ctx: Context, observed: Observed) -> None:
        set_status(app, ctx, observed, self.lifecycle)
        app.status.last_error, app.status.retry_count = "", 0
        await ctx.update_status(app)

    async def _report_error(self, app: WebApp, ctx: Context, error: Exception) -> None:
        """Write the error into the status. A temporary error changes the phase only after several attempts."""
        terminal = isinstance(error, TerminalError)
        if terminal or ctx.attempt >= _DEGRADED_AFTER:
            reason = "InvalidSpec" if terminal else "ReconcileFailed"
            set_status(app, ctx, Observed(Facts(failure=(reason, str(error)))), self.lifecycle)
        app.status.last_error, app.status.retry_count = str(error), 0 if terminal else ctx.attempt
        with suppress(KonvergeError):  # the caller raises the original error, which matters more
            await ctx.update_status(app)


def _is_namespace_terminating(error: Exception) -> bool:
    return isinstance(error, ApiError) and any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def controllers(lifecycle: Lifecycle | None = None) -> tuple[Controller[WebApp], ...]:
    """Return the controllers of this operator."""
    builder = controller_for(WebApp)
    for kind in reversed(KINDS):
        builder = builder.owns(kind)
    return (builder.build(WebAppReconciler(lifecycle)),)
