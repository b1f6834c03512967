"""The reconciler of Cache: a workflow with one component, the server.

The password is generated once. When its Secret is lost the server goes on with the password that it has, and the cache
reports that; a new password would lock out the clients that still know the old one.
"""

from __future__ import annotations

from collections.abc import Callable

from konverge import Context, Controller
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Secret
from konverge.objects import AnyObject
from konverge.workflow import (
    Component,
    Configuration,
    Workflow,
    WorkflowReconciler,
    WorkflowState,
)
from konverge_operators.protection import protection_of
from konverge_operators.redis.cache import children
from konverge_operators.redis.cache.api import Cache
from konverge_operators.redis.cache.phases import phases
from konverge_operators.redis.connections import connection_secret, generate_password

__all__ = ["CacheReconciler", "cache_controller", "new_workflow"]


configuration: Configuration[Cache] = Configuration(secrets=lambda cache: [cache.name])


def new_workflow(generate: Callable[[], str] = generate_password) -> Workflow[Cache]:
    """Return the workflow of a Cache; `generate` returns a new password."""

    async def server_objects(cache: Cache, ctx: Context) -> list[AnyObject]:
        known = cache.status.connection_secret
        await connection_secret(ctx, cache.name, known, lambda: children.secret_for(cache, generate()))
        annotations = await configuration.annotations(cache, ctx)
        return [children.deployment_for(cache, annotations), children.service_for(cache), children.budget_for(cache)]

    return Workflow(
        kind=Cache,
        components=(Component("server", server_objects, kinds=children.KINDS),),
        phases=phases,
        configuration=configuration,
        suspended=lambda cache: cache.spec.suspend,
        protected=protection_of,
    )


class CacheReconciler(WorkflowReconciler[Cache]):
    """Reconciles Caches by their workflow."""

    finalizer = "cache.example.com/cache"
    workflow = new_workflow()

    def observe(self, cache: Cache, _ctx: Context, state: WorkflowState, /) -> None:
        """Set the number of ready servers, and that the password exists."""
        objects = state["server"].objects if "server" in state else ()
        deployment = next((one for one in objects if isinstance(one, Deployment)), None)
        status = deployment.status if deployment is not None else None
        cache.status.ready_replicas = (status.ready_replicas or 0) if status is not None else 0
        if deployment is not None:
            cache.status.connection_secret = cache.name


def cache_controller(reconciler: CacheReconciler) -> Controller[Cache]:
    """Return the controller of the kind."""
    return reconciler.workflow.builder().needs(Secret, "get", "create").build(reconciler)
