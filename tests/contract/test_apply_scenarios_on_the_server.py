"""The random scenarios of apply against a real API server; the unit tests run them on the embedded one."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from apply_rig import apply_rig
from apply_scenarios import MERGES, STRATEGIC, Gadget, Step, deployments, gadgets, install_gadgets, run_scenario, steps
from konverge.client import HttpTransport, load_config
from konverge.k8s.apiextensions.v1 import CustomResourceDefinition
from konverge.k8s.apps.v1 import Deployment
from konverge.testing import ControlPlane

EXAMPLES = 20


def drawn(strategy: st.SearchStrategy[list[Step]]) -> list[list[Step]]:
    """Return scenarios, the same ones each time."""
    scenarios: list[list[Step]] = []

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(scenario: list[Step]) -> None:
        scenarios.append(scenario)

    draw()
    return scenarios


@pytest.mark.real_time(limit=300)
async def test_applies_of_a_deployment_prevail_over_other_clients(control_plane: ControlPlane, namespace: str) -> None:
    transport = HttpTransport(load_config(kubeconfig=control_plane.kubeconfig))
    async with apply_rig(transport, namespace, [Deployment]) as rig:
        for scenario in drawn(steps(deployments(), STRATEGIC)):
            await run_scenario(rig, Deployment, scenario)


@pytest.mark.real_time(limit=300)
async def test_applies_of_a_custom_resource_prevail_over_other_clients(
    control_plane: ControlPlane, namespace: str
) -> None:
    transport = HttpTransport(load_config(kubeconfig=control_plane.kubeconfig))
    async with apply_rig(transport, namespace, []) as rig:
        await install_gadgets(rig)
        try:
            for scenario in drawn(steps(gadgets(), MERGES)):
                await run_scenario(rig, Gadget, scenario)
        finally:
            await rig.others.delete(CustomResourceDefinition, "gadgets.scenarios.example.com")
