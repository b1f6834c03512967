"""Containers that are told how to behave, on two clusters: their pods say the same of themselves.

The pods are made by our controllers on the embedded cluster, on virtual time, and by the real controller manager beside
a real API server. The nodes are ours on both.
"""

from __future__ import annotations

import asyncio
import difflib
import json
from typing import Any

import pytest

from konverge import Client
from konverge.client import load_config
from konverge.errors import ControlPlaneError
from konverge.objects import Unstructured
from konverge.testing import ControlPlane, find_binaries, run_in_virtual_time
from konverge.testing.binaries import NEEDED
from konverge_cluster.nodes import SimulatedNodes
from konverge_cluster.testing.fixtures import TestCluster, virtual_clock
from namespace_scenarios import until
from scripted_pods import PLAYS, PROGRAM, Stage

pytestmark = pytest.mark.control_plane

Pages = dict[str, dict[str, Any]]

HEARTBEAT = 2.0
# A node is gone after eight heartbeats that did not come: soon, and yet not when this machine only has much to do.
IMPATIENT = ["--node-monitor-period=1s", "--node-monitor-grace-period=16s"]


@pytest.fixture(scope="module")
def pages() -> tuple[Pages, Pages]:
    """What each play notes on the real cluster and on ours."""
    try:
        find_binaries((*NEEDED, "kube-controller-manager"))
    except ControlPlaneError as missing:
        pytest.skip(str(missing))
    ours = run_in_virtual_time(_play_embedded(), debug=False)
    with ControlPlane(controller_manager=True, manager_flags=IMPATIENT) as plane:
        theirs = asyncio.run(_play_real(plane))
    return theirs, ours


async def _play_embedded() -> Pages:
    async with TestCluster(nodes=2, clock=virtual_clock, heartbeat=10.0) as cluster:
        cluster.program(*PROGRAM)
        return await _play_all(cluster.client(), cluster.nodes)


async def _play_real(plane: ControlPlane) -> Pages:
    config = load_config(kubeconfig=plane.kubeconfig)
    async with Client.connect(config) as client, Client.connect(config) as own:
        simulated = SimulatedNodes(own, nodes=2, heartbeat=HEARTBEAT)
        simulated.program(*PROGRAM)
        async with simulated.running():
            return await _play_all(client, simulated)


async def _play_all(client: Client, nodes: SimulatedNodes) -> Pages:
    """Run the plays side by side, each in a namespace of its own."""
    found: Pages = {}

    async def one(name: str) -> None:
        stage = Stage(client, nodes, f"play-{name.replace('_', '-')}")
        await client.create(
            Unstructured({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": stage.namespace}})
        )
        await until(lambda: client.list("serviceaccounts", namespace=stage.namespace), "the default account")
        try:
            await PLAYS[name](stage)
        except AssertionError as late:  # told by the test of this play, not by all
            stage.pages["never seen"] = f"{late}: {await stage.pods()}"
        found[name] = stage.pages

    async with asyncio.TaskGroup() as group:
        for name in PLAYS:
            group.create_task(one(name))
    return found


@pytest.mark.parametrize("name", PLAYS)
def test_pods_say_the_same_of_themselves(name: str, pages: tuple[Pages, Pages]) -> None:
    theirs, ours = (side[name] for side in pages)
    assert "never seen" not in theirs
    for point, page in theirs.items():
        one, other = (json.dumps(each, indent=1, sort_keys=True).splitlines() for each in (page, ours.get(point)))
        different = "\n".join(difflib.unified_diff(one, other, "real", "ours", n=4, lineterm=""))
        if different:
            pytest.fail(f"{point}:\n{different}", pytrace=False)
    assert ours.keys() == theirs.keys()
