"""One pass over a Deployment: which of the things that may be due is done now.

A pass does at most one step of a rollout: the new ReplicaSet grows, or the old ones shrink. The status is written at
the end of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from konverge.k8s.apps.v1 import Deployment, ReplicaSet
from konverge.objects import LabelSelector
from konverge.reconcile import Context
from konverge_cluster.workloads.deployments.control import Control
from konverge_cluster.workloads.deployments.history import beyond_history
from konverge_cluster.workloads.deployments.proportions import proportional_steps
from konverge_cluster.workloads.deployments.revisions import DESIRED, count_in
from konverge_cluster.workloads.deployments.rolling import Step, by_age, new_size, old_steps
from konverge_cluster.workloads.deployments.sizes import active, limits_of, replicas, size
from konverge_cluster.workloads.deployments.status import (
    Sets,
    is_complete,
    paused_condition,
    rollout_status,
    status_of,
)
from konverge_cluster.workloads.deployments.templates import same_template
from konverge_cluster.workloads.pods.facts import is_being_deleted
from konverge_cluster.workloads.pods.holdings import hold

__all__ = ["Rollout", "sets_of"]


class Rollout:
    """One pass. What it decides by are plain functions; what it does goes through `Control`."""

    def __init__(self, control: Control, ctx: Context) -> None:
        self._control = control
        self._ctx = ctx

    @property
    def _deployment(self) -> Deployment:
        return self._control.deployment

    async def run(self) -> None:
        """Do what is due."""
        selector = LabelSelector.from_spec(self._deployment.spec.selector)
        found = await hold(self._deployment, ReplicaSet, selector=selector, ctx=self._ctx)
        sets = sets_of(self._deployment, found)
        if is_being_deleted(self._deployment):
            await self._finish_scaling(await self._control.number(sets))
            return
        condition = paused_condition(self._deployment, self._control.now)
        if condition is not None:
            await self._control.note_progress("Unknown", condition.reason or "", condition.message or "")
        sets = await self._control.number(sets)
        if self._deployment.spec.paused or is_scaling(self._deployment, sets):
            await self._scale(sets)
        elif limits_of(self._deployment).rolling:
            await self._roll(sets)
        else:
            await self._recreate(sets)

    # Without a rollout

    async def _scale(self, sets: Sets) -> None:
        """Follow a change of the number of replicas, or what there is to follow of it amid a pause."""
        sets = await self._take(sets, scaling_steps(self._deployment, sets), annotate=_is_amid(sets))
        if self._deployment.spec.paused:
            await self._forget_old(sets)
        await self._finish_scaling(sets)

    async def _finish_scaling(self, sets: Sets) -> None:
        await self._control.write_status(status_of(self._deployment, sets, self._control.now))

    # Rolling

    async def _roll(self, sets: Sets) -> None:
        if sets.new is None:
            sets = await self._control.create(sets)
        new, limits = sets.new, limits_of(self._deployment)
        assert new is not None
        wanted = new_size(limits, size(new), sets.all)
        if wanted != size(new):
            sets = await self._take(sets, [Step(new.name, wanted)])
        elif steps := old_steps(limits, new, sets.old):
            sets = await self._take(sets, steps)
        elif is_complete(self._deployment, self._deployment.status):
            await self._forget_old(sets)
        await self._finish_rollout(sets)

    # Recreating

    async def _recreate(self, sets: Sets) -> None:
        if shrinking := active(sets.old):
            sets = await self._take(sets, [Step(one.name, 0) for one in shrinking])
        elif not _has_pods(sets.old):
            if sets.new is None:
                sets = await self._control.create(sets)
            assert sets.new is not None
            sets = await self._take(sets, [Step(sets.new.name, replicas(self._deployment))])
            if is_complete(self._deployment, self._deployment.status):
                await self._forget_old(sets)
        await self._finish_rollout(sets)

    async def _finish_rollout(self, sets: Sets) -> None:
        await self._control.write_status(rollout_status(self._deployment, sets, self._control.now))

    # Both

    async def _forget_old(self, sets: Sets) -> None:
        for one in beyond_history(self._deployment, sets.old):
            await self._control.delete(one)

    async def _take(self, sets: Sets, steps: Iterable[Step], *, annotate: bool = False) -> Sets:
        """Take steps in order; give the ReplicaSets as they are then."""
        by_name = {one.name: one for one in sets.all}
        for name, wanted in steps:
            by_name[name] = await self._control.scale(by_name[name], wanted, annotate=annotate)
        new = by_name[sets.new.name] if sets.new is not None else None
        return Sets(new, [by_name[one.name] for one in sets.old])


def sets_of(deployment: Deployment, found: Iterable[ReplicaSet]) -> Sets:
    """Tell the ReplicaSet of the present template from the others; of several with it, the oldest is the one."""
    ordered = by_age(found)
    template = deployment.spec.template
    new = next((one for one in ordered if same_template(one.spec.template, template)), None)
    return Sets(new, [one for one in ordered if one is not new])


def is_scaling(deployment: Deployment, sets: Sets) -> bool:
    """Tell whether the number of replicas changed since a ReplicaSet was last told of it."""
    told = [count_in(one, DESIRED) for one in active(sets.all)]
    return any(count is not None and count != replicas(deployment) for count in told)


def scaling_steps(deployment: Deployment, sets: Sets) -> list[Step]:
    """Say which ReplicaSets follow a change of the number of replicas, and to which sizes.

    A single one follows alone. When the new one serves in full, the others are not needed. Amid a rolling update all
    take part.
    """
    limits = limits_of(deployment)
    if not _is_amid(sets):
        alone = _alone(sets)
        return [Step(alone.name, limits.desired)] if alone is not None else []
    if _serves_in_full(deployment, sets.new):
        return [Step(one.name, 0) for one in active(sets.old)]
    return proportional_steps(deployment, limits, sets.all) if limits.rolling else []


def _is_amid(sets: Sets) -> bool:
    return len(active(sets.all)) > 1


def _alone(sets: Sets) -> ReplicaSet | None:
    """Give the only ReplicaSet with pods; without one, the new one, or the latest."""
    found = active(sets.all)
    if found:
        return found[0]
    return sets.new or (by_age(sets.old)[-1] if sets.old else None)


def _serves_in_full(deployment: Deployment, new: ReplicaSet | None) -> bool:
    wanted = replicas(deployment)
    return new is not None and size(new) == count_in(new, DESIRED) == (new.status.available_replicas or 0) == wanted


def _has_pods(old: Sequence[ReplicaSet]) -> bool:
    """Tell whether pods of old ReplicaSets still run, those on their way out included."""
    return any(one.status.replicas or one.status.terminating_replicas for one in old)
