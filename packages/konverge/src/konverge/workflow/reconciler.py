"""The reconciler of a workflow: one pass over the components, then the status."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from konverge.errors import ApiError, KonvergeError, TerminalError
from konverge.objects import Key, Resource
from konverge.reconcile import Context, Reconciler, Result
from konverge.workflow.components import ComponentPhase
from konverge.workflow.foreign_fields import ForeignFieldReport
from konverge.workflow.passes import Pass
from konverge.workflow.phases import DerivedPhase, PhaseMetrics
from konverge.workflow.statuses import WorkflowState, set_components, set_conditions, states_before
from konverge.workflow.workflow import Workflow

__all__ = ["ComponentsFailed", "WorkflowReconciler"]

T = TypeVar("T", bound=Resource)


class ComponentsFailed(KonvergeError):
    """Several components failed in one reconcile."""


class WorkflowReconciler(Reconciler[T]):
    """Reconciles the objects of a kind by its workflow, and derives their status.

    A subclass sets `workflow`, and `finalizer` if components are to be removed in reverse order at deletion. It may
    override `observe`, to set further fields of the status before it is written.
    """

    workflow: ClassVar[Workflow[Any]]

    def __init__(self, metrics: PhaseMetrics | None = None) -> None:
        self.metrics = metrics or PhaseMetrics(self.workflow.kind.__name__.lower())
        self._foreign_fields = ForeignFieldReport(self.workflow.reports_foreign_fields_of)

    def observe(self, obj: T, ctx: Context, state: WorkflowState, /) -> None:
        """Set fields of the status that follow from the state of the components. The default sets none."""

    async def reconcile(self, obj: T, ctx: Context, /) -> Result:
        workflow = self.workflow
        state = await self._run(obj, ctx, workflow.enabled(obj))
        versions = await self._foreign_fields.set_condition(obj, ctx, state)
        await self._update_status(obj, ctx, state)
        if any(map(_is_namespace_terminating, state.errors)):
            return Result.requeue(after=workflow.ready_interval, reason="the namespace is being deleted")
        _raise_errors(state)
        self._foreign_fields.record_written(obj.key, versions)
        return Result.requeue(after=workflow.ready_interval if state.ready else workflow.progress_interval)

    async def finalize(self, obj: T, ctx: Context, /) -> Result:
        """Remove the components in reverse order, those that need others first; of a protected object none."""
        protection = self.workflow.protected(obj)
        if protection:
            return await self._keep(obj, ctx, protection)
        state = await self._run(obj, ctx, ())
        await self._update_status(obj, ctx, state)
        _raise_errors(state)
        if state:
            names = ", ".join(state)
            return Result.requeue(after=self.workflow.progress_interval, reason=f"{names} not removed yet")
        return Result.done()

    def gone(self, key: Key) -> None:
        self.metrics.forget(key)
        self._foreign_fields.forget(key)

    async def _keep(self, obj: T, ctx: Context, protection: str) -> Result:
        """Observe a protected object that is being deleted, and change nothing."""
        state = await self._run(obj, ctx, self.workflow.enabled(obj), protected=True)
        ctx.event("DeletionProtected", protection, warning=True, action="Delete")
        await self._update_status(obj, ctx, state, protection)
        return Result.requeue(after=self.workflow.ready_interval, reason=protection)

    async def _run(self, obj: T, ctx: Context, enabled: Collection[str], *, protected: bool = False) -> WorkflowState:
        workflow, status = self.workflow, _status_of(obj)
        terminating = obj.metadata.deletion_timestamp is not None
        suspended = protected or (workflow.suspended(obj) and not terminating)
        states = await Pass(
            obj=obj,
            ctx=ctx,
            components=workflow.components,
            enabled=enabled,
            before=states_before(status.components),
            suspended=suspended,
        ).run()
        return WorkflowState(tuple(states), terminating=terminating, suspended=suspended)

    async def _update_status(self, obj: T, ctx: Context, state: WorkflowState, protection: str = "") -> None:
        status, before = _status_of(obj), _status_of(obj).phase
        derived: DerivedPhase[Any] = self.workflow.phases.derive(obj, state)
        if protection:
            derived = replace(derived, reason="DeletionProtected", message=protection, warning=True)
        _report_components(ctx, states_before(status.components), state)
        set_components(status, state)
        status.phase, status.message = derived.phase, derived.message
        status.last_error = "; ".join(map(str, state.errors))
        status.retry_count = ctx.attempt if any(not isinstance(one, TerminalError) for one in state.errors) else 0
        set_conditions(obj, ctx, self.workflow.components, state)
        self.observe(obj, ctx, state)
        self.metrics.record(obj.key, self.workflow.phases, before, derived.phase)
        if derived.phase != before:
            message = f"{derived.reason}: {derived.message}" if derived.message else derived.reason
            ctx.event(derived.phase.value, message, warning=derived.warning, action="Reconcile")
        if state.errors:
            with suppress(KonvergeError):  # the error of the component matters more
                await ctx.update_status(obj)
        else:
            await ctx.update_status(obj)


def _status_of(obj: Any) -> Any:
    return obj.status


def _report_components(ctx: Context, before: dict[str, Any], state: WorkflowState) -> None:
    """Record an event for every component that became ready, and for one that fails or lost its readiness."""
    for one in state.states:
        was = before[one.name].phase if one.name in before else None
        if one.phase is was:
            continue
        if one.ready:
            ctx.event("ComponentReady", f"{one.name} is ready", action="Reconcile")
        elif one.phase in (ComponentPhase.DEGRADED, ComponentPhase.FAILED):
            ctx.event("ComponentNotReady", f"{one.name}: {one.message or one.reason}", warning=True, action="Reconcile")


def _is_namespace_terminating(error: Exception) -> bool:
    return isinstance(error, ApiError) and any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def _raise_errors(state: WorkflowState) -> None:
    """Raise what stopped components: the error itself if there is one, and one for all if there are several."""
    errors = state.errors
    if len(errors) == 1:
        raise errors[0]
    if errors:
        names = "; ".join(f"{one.name}: {one.error}" for one in state.states if one.error is not None)
        terminal = all(isinstance(error, TerminalError) for error in errors)
        raise (TerminalError(names) if terminal else ComponentsFailed(names)) from errors[0]
