"""One pass over the components of an object: create, keep in step and remove them in the order of their dependencies.

Rules that hold here:

1. A component is created when everything that it needs is ready. Once created it is kept in step, whatever state its
   dependencies are in.
2. Independent components proceed concurrently; an error of one stops neither the others nor the status.
3. A component that is not enabled is removed after those that need it are gone. One that only came after it (`after`)
   and stays must be ready without it.
4. Only the complete, applied set of a component's objects is pruned. A component that waits or fails keeps its objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Generic, TypeVar

from konverge.errors import WriteRefused
from konverge.objects import AnyObject, Kind, ObjectStatus, Resource, Unstructured, encode, kind_of, labels_of
from konverge.reconcile import Context
from konverge.reconcile.finalizers import is_terminating
from konverge.workflow.components import COMPONENT_LABEL, Component, ComponentPhase, ComponentState, Waiting
from konverge.workflow.graphs import reversed_graph

__all__ = ["Pass", "children_of"]

T = TypeVar("T", bound=Resource)

_FAILED = "ReconcileFailed"


def children_of(component: Component[Any], ctx: Context) -> list[Any]:
    """Return the live objects of a component: children of its kinds that have its label."""
    found = (child for kind in _served_kinds(component, ctx) for child in _owned(ctx, kind))
    return [child for child in found if labels_of(child).get(COMPONENT_LABEL) == component.name]


def _served_kinds(component: Component[Any], ctx: Context) -> list[type[Resource] | Kind]:
    return [*component.kinds, *(kind for kind in component.optional_kinds if ctx.is_served(kind))]


def _owned(ctx: Context, kind: Any) -> Sequence[Any]:
    return ctx.owned(kind)


@dataclass(frozen=True, kw_only=True)
class Pass(Generic[T]):
    """The inputs of a pass: `before` are the states that the status reports, by component.

    With `suspended` nothing is written.
    """

    obj: T
    ctx: Context
    components: Sequence[Component[T]]
    enabled: Collection[str]
    before: Mapping[str, ComponentState]
    suspended: bool = False

    async def run(self) -> list[ComponentState]:
        """Visit every component; return the states of those that are enabled or still exist.

        Raises: WriteRefused when this process may not write any more.
        """
        order = {one.name: (*one.needs, *one.after) for one in self.components}
        wanted = {name: [one for one in order[name] if one in self.enabled] for name in self.enabled}
        after = {**reversed_graph(order), **wanted}
        tasks: dict[str, asyncio.Task[ComponentState | None]] = {}

        async def visit(component: Component[T]) -> ComponentState | None:
            found = [await asyncio.shield(tasks[name]) for name in after[component.name]]
            return await self._visit(component, [one for one in found if one is not None])

        try:
            async with asyncio.TaskGroup() as group:
                for component in self.components:
                    tasks[component.name] = group.create_task(visit(component))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        states = [task.result() for task in tasks.values()]
        return [state for state in states if state is not None]

    async def _visit(self, component: Component[T], others: list[ComponentState]) -> ComponentState | None:
        """Visit one component after those that come before it: what it needs, or what needs it when it is removed."""
        children = children_of(component, self.ctx)
        before = self.before.get(component.name)
        try:
            if component.name not in self.enabled:
                return await self._remove(component, children, others)
            missing = [one for one in others if not one.ready]
            created = bool(children) or (before is not None and before.phase is not ComponentPhase.WAITING)
            if missing and not created:
                return _state(component, ComponentPhase.WAITING, "DependencyNotReady", _waiting_for(missing))
            if self.suspended:
                return self._observe(component, children, before)
            return await self._keep_in_step(component, before)
        except (WriteRefused, asyncio.CancelledError):
            raise
        except Waiting as waiting:
            return self._keep(component, before, ComponentPhase.WAITING, waiting.reason, str(waiting))
        except Exception as error:
            state = self._keep(component, before, ComponentPhase.FAILED, _FAILED, str(error) or type(error).__name__)
            return replace(state, error=error)

    # Wanted components

    async def _keep_in_step(self, component: Component[T], before: ComponentState | None) -> ComponentState:
        desired = [_labelled(component, obj) for obj in await component.objects(self.obj, self.ctx)]
        live = [await self.ctx.apply(obj) for obj in desired]
        await self.ctx.prune(*_served_kinds(component, self.ctx), labels=f"{COMPONENT_LABEL}={component.name}")
        self._report_writes(component, desired)
        return self._judged(component, live, before, revision=_revision_of(desired))

    def _observe(
        self, component: Component[T], children: list[AnyObject], before: ComponentState | None
    ) -> ComponentState:
        """Judge a component without writing."""
        if not children:
            message = "nothing is created while the object is suspended"
            return self._keep(component, before, ComponentPhase.WAITING, "Suspended", message)
        revision = before.revision if before is not None else ""
        return self._judged(component, children, before, revision=revision)

    def _judged(
        self, component: Component[T], live: Sequence[AnyObject], before: ComponentState | None, *, revision: str
    ) -> ComponentState:
        found = component.readiness(self.obj, live)
        last_ready = before.revision if before is not None else ""
        phase, reason = _phase_of(found, changed=revision != last_ready, was_ready=bool(last_ready))
        kept = revision if phase is ComponentPhase.READY else last_ready
        return _state(component, phase, reason, found.message, revision=kept, objects=live)

    def _report_writes(self, component: Component[T], desired: list[AnyObject]) -> None:
        actions = [self.ctx.applied(obj).action for obj in desired]
        if actions[:1] == ["created"]:
            self.ctx.event("Created", f"{component.title} created", action="Create")
        elif set(actions) - {"unchanged"}:
            self.ctx.event("Updated", f"{component.title} updated", action="Apply")

    def _keep(
        self, component: Component[T], before: ComponentState | None, phase: ComponentPhase, reason: str, message: str
    ) -> ComponentState:
        revision = before.revision if before is not None else ""
        children = children_of(component, self.ctx)
        return _state(component, phase, reason, message, revision=revision, objects=children)

    # Components that are not enabled

    async def _remove(
        self, component: Component[T], children: list[AnyObject], dependents: list[ComponentState]
    ) -> ComponentState | None:
        """Remove a component; return None when it is gone."""
        if not children:
            return None
        left = [one.name for one in dependents if one.name not in self.enabled]
        rolling = [one.name for one in dependents if one.name in self.enabled and not one.ready]
        if left or rolling:
            message = f"{', '.join(left or rolling)} must be {'gone' if left else 'ready without it'} first"
            return _state(component, ComponentPhase.REMOVING, "Waiting", message, objects=children)
        if not self.suspended:
            await component.cleanup(self.obj, self.ctx)
            for child in children_of(component, self.ctx):
                if not is_terminating(child):
                    await self.ctx.delete(child, propagation=component.propagation)
            children = children_of(component, self.ctx)
        if not children:
            return None
        message = f"{len(children)} objects still exist"
        return _state(component, ComponentPhase.REMOVING, "Removing", message, objects=children)


def _state(
    component: Component[Any],
    phase: ComponentPhase,
    reason: str,
    message: str = "",
    *,
    revision: str = "",
    objects: Sequence[AnyObject] = (),
) -> ComponentState:
    return ComponentState(
        name=component.name, phase=phase, reason=reason, message=message, revision=revision, objects=tuple(objects)
    )


def _phase_of(found: ObjectStatus, *, changed: bool, was_ready: bool) -> tuple[ComponentPhase, str]:
    """Return the phase of a component and the reason, in one word."""
    if found.status == "Current":
        return ComponentPhase.READY, "Ready"
    if found.status == "Failed":
        return ComponentPhase.FAILED, "ObjectFailed"
    if not was_ready:
        return ComponentPhase.CREATING, "NotReadyYet"
    if changed:
        return ComponentPhase.UPDATING, "RollingOut"
    return ComponentPhase.DEGRADED, "ReadinessLost"


def _waiting_for(missing: list[ComponentState]) -> str:
    return "waiting for " + ", ".join(f"{one.name} ({one.message})" if one.message else one.name for one in missing)


def _labelled(component: Component[Any], obj: AnyObject) -> AnyObject:
    """Set the label of the component on a desired object.

    Raises: ValueError when its kind is not declared, or it has the label of another component.
    """
    declared = [kind_of(kind) for kind in (*component.kinds, *component.optional_kinds)]
    if (obj.api_version, obj.kind) not in [(kind.api_version, kind.kind) for kind in declared]:
        raise ValueError(f"component {component.name} has a {obj.kind}, which is not declared: add it to its kinds")
    labels = labels_of(obj)
    if labels.setdefault(COMPONENT_LABEL, component.name) != component.name:
        raise ValueError(f"{obj.kind} {obj.name} of component {component.name} has the label of another component")
    if isinstance(obj, Unstructured):
        obj.metadata["labels"] = labels
    else:
        obj.metadata.labels = labels
    return obj


def _revision_of(desired: list[AnyObject]) -> str:
    return sha256(b"\0".join(map(encode, desired))).hexdigest()[:10]
