"""The controller of Deployments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from konverge.cache import Event
from konverge.controller import Controller, controller_for
from konverge.errors import AlreadyExists, KonvergeError
from konverge.k8s.apps.v1 import Deployment, ReplicaSet
from konverge.objects import Key, LabelSelector
from konverge.reconcile import Context, Reconciler, Result
from konverge_cluster.clock import Clock, utc_now
from konverge_cluster.server_messages import is_namespace_terminating
from konverge_cluster.workloads.deployments.control import DeploymentControl
from konverge_cluster.workloads.deployments.rollout import Rollout
from konverge_cluster.workloads.deployments.status import next_check
from konverge_cluster.workloads.pods.orphans import to_matching_owners
from konverge_cluster.workloads.pods.selector_index import SelectorIndex

__all__ = ["DeploymentReconciler", "deployment_controller"]

_MAX_SYNCS: Final = 20


class DeploymentReconciler(Reconciler[Deployment]):
    """Rolls out a Deployment, sync after sync until one writes nothing."""

    reconcile_terminating: ClassVar[bool] = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._selectors = SelectorIndex()

    def map_orphan(self, event: Event) -> Iterable[Key]:
        """Map a ReplicaSet without a controller to the Deployments that select it."""
        return to_matching_owners(self._selectors, event)

    def gone(self, key: Key) -> None:
        """Forget the selector of a Deployment."""
        self._selectors.drop(key)

    async def reconcile(self, obj: Deployment, ctx: Context) -> Result | None:
        """Advance the rollout as far as the current state allows."""
        self._selectors.put(obj.key, LabelSelector.from_spec(obj.spec.selector))
        current: Deployment | None = obj
        for _ in range(_MAX_SYNCS):
            if current is None or current.uid != obj.uid:
                return Result.done()
            if not await self._sync(current, ctx):
                wait = next_check(current, utc_now(self._clock))
                return Result.done() if wait is None else Result.requeue(wait, reason="the progress deadline")
            current = await ctx.get(Deployment, obj.key)
        return Result.requeue(reason="the rollout is not finished")

    async def _sync(self, deployment: Deployment, ctx: Context) -> bool:
        """Sync once; report whether anything was written."""
        control = DeploymentControl(deployment, ctx, utc_now(self._clock))
        try:
            await Rollout(control, ctx).run()
        except AlreadyExists:
            if not control.wrote:
                raise
        except KonvergeError as error:
            if not is_namespace_terminating(error):
                raise
        return control.wrote


def deployment_controller(clock: Clock) -> Controller[Deployment]:
    """Return the controller of Deployments."""
    reconciler = DeploymentReconciler(clock)
    builder = controller_for(Deployment).named("deployment-controller")
    return builder.owns(ReplicaSet).watches(ReplicaSet, reconciler.map_orphan).build(reconciler)
