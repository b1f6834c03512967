"""The random plays of apply against a real API server; the embedded one has them in the unit tests."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from apply_rig import apply_rig
from apply_scenarios import MERGES, STRATEGIC, Gadget, Step, deployments, gadgets, install_gadgets, play, steps
from konverge.client import HttpTransport, load_config
from konverge.k8s.apiextensions.v1 import CustomResourceDefinition
from konverge.k8s.apps.v1 import Deployment
from konverge.testing import ControlPlane

EXAMPLES = 20


def drawn(strategy: st.SearchStrategy[list[Step]]) -> list[list[Step]]:
    """Give plays, the same ones each time."""
    plays: list[list[Step]] = []

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(happenings: list[Step]) -> None:
        plays.append(happenings)

    draw()
    return plays


@pytest.mark.real_time(limit=300)
async def test_applies_of_a_deployment_hold_against_everybody(control_plane: ControlPlane, namespace: str) -> None:
    transport = HttpTransport(load_config(kubeconfig=control_plane.kubeconfig))
    async with apply_rig(transport, namespace, [Deployment]) as rig:
        for happenings in drawn(steps(deployments(), STRATEGIC)):
            await play(rig, Deployment, happenings)


@pytest.mark.real_time(limit=300)
async def test_applies_of_a_custom_resource_hold_against_everybody(control_plane: ControlPlane, namespace: str) -> None:
    transport = HttpTransport(load_config(kubeconfig=control_plane.kubeconfig))
    async with apply_rig(transport, namespace, []) as rig:
        await install_gadgets(rig)
        try:
            for happenings in drawn(steps(gadgets(), MERGES)):
                await play(rig, Gadget, happenings)
        finally:
            await rig.others.delete(CustomResourceDefinition, "gadgets.plays.example.com")
