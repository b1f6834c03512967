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
from konverge_cluster.workloads.deployments.control import Control
from konverge_cluster.workloads.deployments.rollout import Rollout
from konverge_cluster.workloads.deployments.status import next_check
from konverge_cluster.workloads.pods.orphans import wanted_by
from konverge_cluster.workloads.pods.selections import Selections

__all__ = ["DeploymentReconciler", "deployment_controller"]

_MOST_PASSES: Final = 20


class DeploymentReconciler(Reconciler[Deployment]):
    """Rolls a Deployment out, one pass after the other, until a pass has nothing to write."""

    reconcile_terminating: ClassVar[bool] = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._selections = Selections()

    def wanting(self, event: Event) -> Iterable[Key]:
        """Map a ReplicaSet without a controller to the Deployments that select it."""
        return wanted_by(self._selections, event)

    def gone(self, key: Key) -> None:
        """Forget what a Deployment selected."""
        self._selections.drop(key)

    async def reconcile(self, obj: Deployment, ctx: Context) -> Result | None:
        """Take as many steps of the rollout as the world allows now."""
        self._selections.put(obj.key, LabelSelector.from_spec(obj.spec.selector))
        current: Deployment | None = obj
        for _ in range(_MOST_PASSES):
            if current is None or current.uid != obj.uid:
                return Result.done()
            if not await self._pass(current, ctx):
                wait = next_check(current, utc_now(self._clock))
                return Result.done() if wait is None else Result.requeue(wait, reason="the deadline of progress")
            current = await ctx.get(Deployment, obj.key)
        return Result.requeue(reason="the rollout goes on")

    async def _pass(self, deployment: Deployment, ctx: Context) -> bool:
        """Look at everything once and act; tell whether anything was written."""
        control = Control(deployment, ctx, utc_now(self._clock))
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
    """Give the controller of Deployments."""
    reconciler = DeploymentReconciler(clock)
    builder = controller_for(Deployment).named("deployment-controller")
    return builder.owns(ReplicaSet).watches(ReplicaSet, reconciler.wanting).build(reconciler)
