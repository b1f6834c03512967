"""Tests of an operator fail when it applies a kind that its controller does not declare: RBAC would forbid it."""

from __future__ import annotations

from typing import Any

import pytest

from gadgets import Gadget, gadget
from konverge import Context, Controller, controller_for, crd_for
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager import Operator
from konverge_cluster.testing import Simulation, SimulationFailure, simulate
from konverge_cluster.testing.clusters import TestCluster, virtual_clock


async def reconcile(obj: Gadget, ctx: Context) -> None:
    child = ConfigMap(data={"size": str(obj.spec.size)})
    child.metadata.name = obj.name
    await ctx.apply(child)


UNDECLARED = controller_for(Gadget).build(reconcile)
DECLARED = controller_for(Gadget).owns(ConfigMap).build(reconcile)
TEXT = r"controller gadget applies ConfigMap, which it does not declare: add \.owns\(ConfigMap\)"


async def operate(cluster: TestCluster, controller: Controller[Any], *, fails: bool = False) -> None:
    await cluster.install(crd_for(Gadget))
    async with cluster.operator(controller):
        await cluster.client().create(gadget("one"))
        await cluster.settle()
        if fails:
            raise RuntimeError("the test itself fails")


async def test_the_block_of_an_operator_ends_with_the_undeclared_kind() -> None:
    async with TestCluster(clock=virtual_clock) as cluster:
        with pytest.raises(AssertionError, match=TEXT):
            await operate(cluster, UNDECLARED)


async def test_the_error_of_the_test_itself_is_kept() -> None:
    async with TestCluster(clock=virtual_clock) as cluster:
        with pytest.raises(RuntimeError, match="the test itself fails"):
            await operate(cluster, UNDECLARED, fails=True)


async def test_a_declared_kind_passes() -> None:
    async with TestCluster(clock=virtual_clock) as cluster:
        await operate(cluster, DECLARED)


def test_a_simulation_fails() -> None:
    @simulate(lambda: Operator(name="gadgets", controllers=(UNDECLARED,)), seeds=1)
    async def scenario(sim: Simulation[None]) -> None:
        await sim.client.create(gadget("one"))
        await sim.settle()

    with pytest.raises(SimulationFailure, match=TEXT):
        scenario()
