"""The same pods on the same nodes: our scheduler decides what the real kube-scheduler decides, with its words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from konverge import Client
from konverge.client import load_config
from konverge.testing import ControlPlane, run_in_virtual_time
from scheduler_cases import CASES
from schedulers import Decision, embedded_decisions, real_decisions, real_scheduler, register_nodes

# A test that starts control planes of its own needs the real programs, as one that asks for the fixture does.
pytestmark = pytest.mark.usefixtures("control_plane")


@pytest.fixture(scope="module")
def scheduled_plane() -> Iterator[ControlPlane]:
    with ControlPlane() as plane, real_scheduler(plane):
        yield plane


@pytest.fixture(scope="module")
def embedded() -> dict[str, dict[str, Decision]]:
    return {title: run_in_virtual_time(embedded_decisions(pods), debug=False) for title, pods in CASES.items()}


@pytest.mark.real_time(limit=300)
async def test_our_scheduler_decides_as_kube_scheduler(
    scheduled_plane: ControlPlane, embedded: dict[str, dict[str, Decision]]
) -> None:
    async with Client.connect(load_config(kubeconfig=scheduled_plane.kubeconfig)) as client:
        await register_nodes(client)
        real = {
            title: await real_decisions(client, pods, f"case-{number}")
            for number, (title, pods) in enumerate(CASES.items())
        }

    differences = {
        (title, name): (embedded[title][name], decision)
        for title, decisions in real.items()
        for name, decision in decisions.items()
        if embedded[title][name] != decision
    }
    assert not differences
