"""Apply against the embedded server in random scenarios; `apply_scenarios` states what must hold."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings

from apply_rig import apply_rig
from apply_scenarios import MERGES, STRATEGIC, Gadget, Step, deployments, gadgets, install_gadgets, run_scenario, steps
from konverge.client import InProcessTransport
from konverge.k8s.apps.v1 import Deployment
from konverge.objects import Resource
from konverge.testing.virtual_time import VirtualTimeLoop
from konverge_cluster.embedded_server import EmbeddedServer


async def on_embedded(kind: type[Resource], changes: list[Step]) -> None:
    transport = InProcessTransport(EmbeddedServer(seed=1).handle)
    async with apply_rig(transport, "default", [Deployment]) as rig:
        if kind is Gadget:
            await install_gadgets(rig)
        await run_scenario(rig, kind, changes)


def run(kind: type[Resource], changes: list[Step]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(on_embedded(kind, changes))


@given(changes=steps(deployments(), STRATEGIC))
@settings(max_examples=30)
def test_applies_of_a_deployment_prevail_over_other_clients(changes: list[Step]) -> None:
    run(Deployment, changes)


@given(changes=steps(gadgets(), MERGES))
@settings(max_examples=30)
def test_applies_of_a_custom_resource_prevail_over_other_clients(changes: list[Step]) -> None:
    run(Gadget, changes)
