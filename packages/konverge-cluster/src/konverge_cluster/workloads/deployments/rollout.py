"""One sync of a Deployment.

A sync does at most one step of a rollout: it scales up the new ReplicaSet or scales down the old ones. It writes the
status at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from konverge.k8s.apps.v1 import Deployment, ReplicaSet
from konverge.objects import LabelSelector
from konverge.reconcile import Context
from konverge_cluster.workloads.deployments.control import DeploymentControl
from konverge_cluster.workloads.deployments.history import cleanup_candidates
from konverge_cluster.workloads.deployments.proportional_scaling import proportional_steps
from konverge_cluster.workloads.deployments.revisions import DESIRED, count_in
from konverge_cluster.workloads.deployments.rolling import Step, by_age, new_replicas, scale_down_steps
from konverge_cluster.workloads.deployments.sizes import active, limits_of, replicas, size
from konverge_cluster.workloads.deployments.status import (
    ReplicaSets,
    is_complete,
    paused_condition,
    rollout_status,
    status_of,
)
from konverge_cluster.workloads.deployments.templates import same_template
from konverge_cluster.workloads.pods.controller_refs import claim_objects
from konverge_cluster.workloads.pods.facts import is_being_deleted

__all__ = ["Rollout", "find_replica_sets"]


class Rollout:
    """One sync. Decisions are plain functions; writes go through `DeploymentControl`."""

    def __init__(self, control: DeploymentControl, ctx: Context) -> None:
        self._control = control
        self._ctx = ctx

    @property
    def _deployment(self) -> Deployment:
        return self._control.deployment

    async def run(self) -> None:
        """Run the sync."""
        selector = LabelSelector.from_spec(self._deployment.spec.selector)
        owned = await claim_objects(self._deployment, ReplicaSet, selector=selector, ctx=self._ctx)
        sets = find_replica_sets(self._deployment, owned)
        if is_being_deleted(self._deployment):
            await self._finish_scaling(await self._control.set_revision(sets))
            return
        condition = paused_condition(self._deployment, self._control.now)
        if condition is not None:
            await self._control.record_progress("Unknown", condition.reason or "", condition.message or "")
        sets = await self._control.set_revision(sets)
        if self._deployment.spec.paused or is_scaling(self._deployment, sets):
            await self._scale(sets)
        elif limits_of(self._deployment).rolling:
            await self._roll(sets)
        else:
            await self._recreate(sets)

    # Scaling

    async def _scale(self, sets: ReplicaSets) -> None:
        """Apply a change of the number of replicas, or the part of it that is possible while paused."""
        sets = await self._apply(sets, scaling_steps(self._deployment, sets), annotate=_is_rolling_out(sets))
        if self._deployment.spec.paused:
            await self._clean_up(sets)
        await self._finish_scaling(sets)

    async def _finish_scaling(self, sets: ReplicaSets) -> None:
        await self._control.write_status(status_of(self._deployment, sets, self._control.now))

    # RollingUpdate

    async def _roll(self, sets: ReplicaSets) -> None:
        if sets.new is None:
            sets = await self._control.create(sets)
        new, limits = sets.new, limits_of(self._deployment)
        assert new is not None
        desired = new_replicas(limits, size(new), sets.all)
        if desired != size(new):
            sets = await self._apply(sets, [Step(new.name, desired)])
        elif steps := scale_down_steps(limits, new, sets.old):
            sets = await self._apply(sets, steps)
        elif is_complete(self._deployment, self._deployment.status):
            await self._clean_up(sets)
        await self._finish_rollout(sets)

    # Recreate

    async def _recreate(self, sets: ReplicaSets) -> None:
        if scaled_down := active(sets.old):
            sets = await self._apply(sets, [Step(one.name, 0) for one in scaled_down])
        elif not _has_pods(sets.old):
            if sets.new is None:
                sets = await self._control.create(sets)
            assert sets.new is not None
            sets = await self._apply(sets, [Step(sets.new.name, replicas(self._deployment))])
            if is_complete(self._deployment, self._deployment.status):
                await self._clean_up(sets)
        await self._finish_rollout(sets)

    async def _finish_rollout(self, sets: ReplicaSets) -> None:
        await self._control.write_status(rollout_status(self._deployment, sets, self._control.now))

    # Shared

    async def _clean_up(self, sets: ReplicaSets) -> None:
        for one in cleanup_candidates(self._deployment, sets.old):
            await self._control.delete(one)

    async def _apply(self, sets: ReplicaSets, steps: Iterable[Step], *, annotate: bool = False) -> ReplicaSets:
        """Apply steps in order; return the updated ReplicaSets."""
        by_name = {one.name: one for one in sets.all}
        for name, desired in steps:
            by_name[name] = await self._control.scale(by_name[name], desired, annotate=annotate)
        new = by_name[sets.new.name] if sets.new is not None else None
        return ReplicaSets(new, [by_name[one.name] for one in sets.old])


def find_replica_sets(deployment: Deployment, owned: Iterable[ReplicaSet]) -> ReplicaSets:
    """Separate the ReplicaSet of the current template from the others; of several with it, the oldest one is used."""
    ordered = by_age(owned)
    template = deployment.spec.template
    new = next((one for one in ordered if same_template(one.spec.template, template)), None)
    return ReplicaSets(new, [one for one in ordered if one is not new])


def is_scaling(deployment: Deployment, sets: ReplicaSets) -> bool:
    """Report whether the number of replicas changed since it was last written to a ReplicaSet."""
    recorded = [count_in(one, DESIRED) for one in active(sets.all)]
    return any(count is not None and count != replicas(deployment) for count in recorded)


def scaling_steps(deployment: Deployment, sets: ReplicaSets) -> list[Step]:
    """Return the ReplicaSets to scale after a change of the number of replicas.

    A single active one is scaled alone. If the new one is fully available, the others are scaled to zero. During a
    rolling update all are scaled.
    """
    limits = limits_of(deployment)
    if not _is_rolling_out(sets):
        single = _active_or_latest(sets)
        return [Step(single.name, limits.desired)] if single is not None else []
    if _is_saturated(deployment, sets.new):
        return [Step(one.name, 0) for one in active(sets.old)]
    return proportional_steps(deployment, limits, sets.all) if limits.rolling else []


def _is_rolling_out(sets: ReplicaSets) -> bool:
    return len(active(sets.all)) > 1


def _active_or_latest(sets: ReplicaSets) -> ReplicaSet | None:
    """Return the only active ReplicaSet; without one, the new one, or the latest."""
    owned = active(sets.all)
    if owned:
        return owned[0]
    return sets.new or (by_age(sets.old)[-1] if sets.old else None)


def _is_saturated(deployment: Deployment, new: ReplicaSet | None) -> bool:
    desired = replicas(deployment)
    return new is not None and size(new) == count_in(new, DESIRED) == (new.status.available_replicas or 0) == desired


def _has_pods(old: Sequence[ReplicaSet]) -> bool:
    """Report whether old ReplicaSets still have pods, terminating ones included."""
    return any(one.status.replicas or one.status.terminating_replicas for one in old)
