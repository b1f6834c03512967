"""Random workflows: graphs of up to 30 components, failures, edits, restarts; order, convergence, removal, rest."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Any

import pytest

from konverge import Client, Context, CustomResource, ObjectMeta, Spec, crd_for, field
from konverge.controller import Controller
from konverge.errors import NotFound
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import AnyObject, ObjectStatus
from konverge.workflow import (
    COMPONENT_LABEL,
    Component,
    DerivedPhase,
    Phases,
    Workflow,
    WorkflowReconciler,
    WorkflowState,
    WorkflowStatus,
)
from konverge_cluster.testing import TestCluster

pytestmark = pytest.mark.plain_loop  # asyncio in debug mode takes most of the time

SEEDS = range(8)
STEPS = 6


class Phase(StrEnum):
    CREATED = "Created"
    BUSY = "Busy"
    RUNNING = "Running"


class PlanSpec(Spec):
    content: int = 0
    disabled: list[str] = field(default_factory=list)
    failing: list[str] = field(default_factory=list)
    unready: list[str] = field(default_factory=list)


class PlanStatus(WorkflowStatus):
    phase: Phase = Phase.CREATED


class Plan(CustomResource[PlanSpec, PlanStatus], group="example.com", version="v1"):
    """Random components."""


def _derive(_plan: Plan, state: WorkflowState) -> DerivedPhase[Phase]:
    ready = state.ready and not state.terminating
    return DerivedPhase(Phase.RUNNING if ready else Phase.BUSY, "Derived", state.message)


PHASES = Phases(
    Phase.CREATED,
    {Phase.CREATED: {Phase.BUSY, Phase.RUNNING}, Phase.BUSY: {Phase.RUNNING}, Phase.RUNNING: {Phase.BUSY}},
    _derive,
)


def _component(name: str, needs: Sequence[str], copies: int) -> Component[Plan]:
    async def objects(plan: Plan, _ctx: Context) -> list[AnyObject]:
        if name in plan.spec.failing:
            raise RuntimeError(f"{name} fails")
        data = {"content": str(plan.spec.content)}
        return [ConfigMap(metadata=ObjectMeta(name=f"{name}-{one}"), data=data) for one in range(copies)]

    def readiness(plan: Plan, _live: Sequence[AnyObject]) -> ObjectStatus:
        return ObjectStatus("InProgress", "not yet") if name in plan.spec.unready else ObjectStatus("Current")

    return Component(
        name,
        objects,
        kinds=(ConfigMap,),
        needs=tuple(needs),
        enabled=lambda plan: name not in plan.spec.disabled,
        readiness=readiness,
    )


def random_workflow(draw: random.Random) -> Workflow[Plan]:
    names = [f"c{number}" for number in range(draw.randint(1, 30))]
    components = []
    for position, name in enumerate(names):
        earlier = names[:position]
        needs = draw.sample(earlier, min(len(earlier), draw.choice((0, 0, 1, 1, 2, 3))))
        components.append(_component(name, needs, draw.choice((1, 1, 2))))
    draw.shuffle(components)
    return Workflow(kind=Plan, components=tuple(components), phases=PHASES)


def controller_of(workflow: Workflow[Plan]) -> Controller[Plan]:
    class PlanReconciler(WorkflowReconciler[Plan]):
        finalizer = "example.com/plan"

    PlanReconciler.workflow = workflow
    return workflow.builder().build(PlanReconciler())


@asynccontextmanager
async def recorded(client: Client) -> AsyncIterator[list[tuple[str, str]]]:
    """Record which component's objects are added and deleted, in order."""
    seen: list[tuple[str, str]] = []

    async def watch() -> None:
        while True:
            async for event in client.watch(ConfigMap, namespace="default", labels=COMPONENT_LABEL):
                if event.type in ("ADDED", "DELETED"):
                    seen.append((event.type, (event.object.metadata.labels or {})[COMPONENT_LABEL]))

    task = asyncio.create_task(watch())
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.wait([task])


def random_edit(draw: random.Random, names: list[str]) -> dict[str, Any]:
    """Return an edit of the spec: some components are disabled, some fail, some are not ready."""

    def few() -> list[str]:
        return draw.sample(names, draw.choice((0, 0, 1, min(3, len(names)))))

    return {"content": draw.randint(0, 5), "disabled": few(), "failing": few(), "unready": few()}


async def random_damage(draw: random.Random, client: Client) -> None:
    """Delete or edit some of the objects by hand."""
    objects = await client.list(ConfigMap, namespace="default", labels=COMPONENT_LABEL)
    for obj in draw.sample(objects, min(len(objects), draw.choice((0, 0, 1, 3)))):
        if draw.random() < 0.5:
            await client.delete(obj)
        else:
            await client.patch(ConfigMap, obj.name, {"data": {"content": "by hand"}})


def check_order(workflow: Workflow[Plan], seen: list[tuple[str, str]]) -> None:
    """Check that nothing was added before what it needs existed, nor deleted before what needs it was gone."""
    alive: dict[str, int] = dict.fromkeys(workflow.needs, 0)
    for action, name in seen:
        if action == "ADDED":
            missing = [need for need in workflow.needs[name] if not alive[need]]
            assert not missing, f"{name} was created before {missing}"
            alive[name] += 1
        else:
            alive[name] -= 1


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_random_workflow_converges_in_order(seed: int, cluster: TestCluster) -> None:
    draw = random.Random(seed)
    workflow = random_workflow(draw)
    names = sorted(workflow.needs)
    client = await cluster.install(crd_for(Plan))
    async with recorded(client) as seen:
        async with cluster.operator(controller_of(workflow)):
            await client.create(Plan.new("plan", PlanSpec(unready=draw.sample(names, min(2, len(names))))))
            for _ in range(STEPS):
                await cluster.settle()
                await client.patch(Plan, "plan", {"spec": random_edit(draw, names)})
                await random_damage(draw, client)
        quiet = {"content": 9, "disabled": draw.sample(names, len(names) // 4), "failing": [], "unready": []}
        await client.patch(Plan, "plan", {"spec": quiet})
        async with cluster.operator(controller_of(workflow)):  # a new process
            await cluster.settle()
            await check_converged(workflow, client)
            await check_at_rest(client)
            before_deletion = len(seen)
            await client.delete(Plan, "plan")
            await cluster.settle()
        with pytest.raises(NotFound):
            await client.get(Plan, "plan")
        assert not await client.list(ConfigMap, namespace="default", labels=COMPONENT_LABEL)
    check_removal_order(workflow, seen[before_deletion:])


async def check_converged(workflow: Workflow[Plan], client: Client) -> None:
    plan = await client.get(Plan, "plan")
    enabled = workflow.enabled(plan)
    assert {one.name for one in plan.status.components} == enabled
    assert all(one.ready for one in plan.status.components)
    assert plan.status.phase is Phase.RUNNING
    objects = await client.list(ConfigMap, namespace="default", labels=COMPONENT_LABEL)
    assert {(one.metadata.labels or {})[COMPONENT_LABEL] for one in objects} == enabled
    assert all(one.data == {"content": "9"} for one in objects)


async def check_at_rest(client: Client) -> None:
    before = await versions(client)
    await asyncio.sleep(600)
    assert await versions(client) == before


async def versions(client: Client) -> dict[str, str]:
    objects = [await client.get(Plan, "plan"), *await client.list(ConfigMap, namespace="default")]
    return {f"{one.kind} {one.key}": one.resource_version for one in objects}


def check_removal_order(workflow: Workflow[Plan], seen: list[tuple[str, str]]) -> None:
    """Check that every component is gone before anything that it needs is deleted."""
    removed = [name for action, name in seen if action == "DELETED"]
    assert len(removed) == len(seen)
    for name, needs in workflow.needs.items():
        for need in needs:
            if name in removed and need in removed:
                last = max(position for position, one in enumerate(removed) if one == name)
                assert last < removed.index(need), f"{need} was deleted before {name} was gone"


async def test_components_are_created_after_what_they_need(cluster: TestCluster) -> None:
    for seed in range(5):
        workflow = random_workflow(random.Random(seed))
        name = f"plan-{seed}"
        client = await cluster.install(crd_for(Plan)) if seed == 0 else cluster.client()
        async with recorded(client) as seen, cluster.operator(controller_of(workflow)):
            await client.create(Plan.new(name, PlanSpec()))
            await cluster.settle()
            check_order(workflow, seen)
            await client.delete(Plan, name)
            await cluster.settle()
