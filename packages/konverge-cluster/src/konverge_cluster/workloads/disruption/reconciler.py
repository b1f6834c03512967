"""The controller of PodDisruptionBudgets: maintains the status that evictions are judged by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from konverge.cache import Event
from konverge.controller import Controller, controller_for
from konverge.k8s.apps.v1 import Deployment, ReplicaSet
from konverge.k8s.core.v1 import Pod
from konverge.k8s.meta.v1 import LabelSelector as SelectorSpec
from konverge.k8s.policy.v1 import PodDisruptionBudget
from konverge.objects import Key, LabelSelector
from konverge.reconcile import Context, Reconciler, Result
from konverge.triggers import anything
from konverge_cluster.clock import Clock, utc_now
from konverge_cluster.status_writes import write_status
from konverge_cluster.workloads.disruption.budgets import (
    Disruptions,
    Scale,
    disrupted_pods,
    failed_status,
    needs_scale,
    status_of,
)
from konverge_cluster.workloads.disruption.scales import ScaleError, expected_scale
from konverge_cluster.workloads.pods.selector_index import SelectorIndex

__all__ = ["DisruptionReconciler", "disruption_controller", "format_selector"]

_REPORTER: Final = "controllermanager"  # the component in the events of the real controller


class DisruptionReconciler(Reconciler[PodDisruptionBudget]):
    """Counts the pods of a budget and writes how many of them may be evicted.

    A budget whose expected pods cannot be determined allows no eviction; its condition has the reason.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._selectors = SelectorIndex()

    def map_pod(self, event: Event) -> Iterable[Key]:
        """Map a pod to the budgets that select it, before or after the change."""
        states = [state for state in (event.old, event.new) if state is not None]
        return {key for state in states for key in self._selectors.matching(state.key.namespace, state.label_map())}

    def gone(self, key: Key) -> None:
        """Forget the selector of a budget."""
        self._selectors.drop(key)

    async def reconcile(self, obj: PodDisruptionBudget, ctx: Context) -> Result | None:
        """Update the status of a budget."""
        selector = LabelSelector.from_spec(obj.spec.selector)
        self._selectors.put(obj.key, selector)
        pods = [pod for pod in await ctx.list(Pod) if selector.matches(pod.metadata.labels)]
        if not pods:
            ctx.event("NoPods", "No matching pods found", reporter=_REPORTER)
        now = utc_now(self._clock)
        try:
            scale = await self._scale(obj, pods, ctx)
        except ScaleError as error:
            message = f"Failed to calculate the number of expected pods: {error}"
            ctx.event("CalculateExpectedPodCountFailed", message, warning=True, reporter=_REPORTER)
            await write_status(ctx, obj, failed_status(obj, str(error), now))
            return Result.done()
        disruptions = disrupted_pods(obj, pods, now)
        self._record_events(obj, pods, scale, disruptions, ctx)
        await write_status(ctx, obj, status_of(obj, pods, scale, disruptions=disruptions, now=now))
        if disruptions.until_expiry is None:
            return Result.done()
        return Result.requeue(disruptions.until_expiry + 1, reason="an evicted pod may not be deleted in time")

    async def _scale(self, budget: PodDisruptionBudget, pods: Sequence[Pod], ctx: Context) -> Scale:
        return await expected_scale(pods, ctx.client) if needs_scale(budget.spec) else Scale(len(pods))

    def _record_events(
        self, budget: PodDisruptionBudget, pods: Sequence[Pod], scale: Scale, disruptions: Disruptions, ctx: Context
    ) -> None:
        if scale.unmanaged:
            ctx.event("UnmanagedPods", _unmanaged(budget.spec.selector), warning=True, reporter=_REPORTER)
        for pod in disruptions.expired:
            # The real controller has the namespace in the place of the name, too.
            message = f"Pod was expected by PDB {budget.namespace}/{budget.namespace} to be deleted but it wasn't"
            ctx.event("NotDeleted", message, warning=True, regarding=pod, reporter=_REPORTER)
        for pod in pods:
            budgets = self._selectors.matching(pod.namespace, pod.metadata.labels)
            if len(budgets) > 1 and budgets[0] == budget.key:
                message = f'Pod "{pod.namespace}"/"{pod.name}" matches multiple PodDisruptionBudgets.'
                message += f'  Chose "{budget.name}" arbitrarily.'
                ctx.event("MultiplePodDisruptionBudgets", message, warning=True, regarding=pod, reporter=_REPORTER)


def disruption_controller(clock: Clock) -> Controller[PodDisruptionBudget]:
    """Return the controller of PodDisruptionBudgets."""
    reconciler = DisruptionReconciler(clock)
    builder = controller_for(PodDisruptionBudget).named("disruption-controller").predicate(anything)
    builder.watches(Pod, reconciler.map_pod).needs(ReplicaSet, "get").needs(Deployment, "get")
    return builder.build(reconciler)


def format_selector(selector: SelectorSpec | None) -> str:
    """Return a selector as Go prints it, which is part of an event's message."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    requirements = "".join(
        f"LabelSelectorRequirement{{Key:{one.key},Operator:{one.operator},Values:[{' '.join(one.values)}],}},"
        for one in selector.match_expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )


def _unmanaged(selector: SelectorSpec | None) -> str:
    return (
        f"Pods selected by this PodDisruptionBudget (selector: {format_selector(selector)}) were found to be"
        " unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined"
        ' behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
    )
