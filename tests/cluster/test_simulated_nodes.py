"""Containers with programmed behavior on two clusters: the status of their pods is the same.

The pods are created by our controllers on the embedded cluster, on virtual time, and by the real controller manager
of a real API server. The nodes are simulated on both.
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
from konverge_cluster.testing.clusters import TestCluster, virtual_clock
from namespace_scenarios import until
from pod_scenarios import PROGRAM, SCENARIOS, ScenarioNamespace

pytestmark = pytest.mark.control_plane

Recordings = dict[str, dict[str, Any]]

HEARTBEAT = 2.0
# A node is lost after eight missed heartbeats: soon, and yet not when this machine is only under load.
IMPATIENT = ["--node-monitor-period=1s", "--node-monitor-grace-period=16s"]


@pytest.fixture(scope="module")
def recordings() -> tuple[Recordings, Recordings]:
    """The recordings of each scenario on the real cluster and on ours."""
    try:
        find_binaries((*NEEDED, "kube-controller-manager"))
    except ControlPlaneError as missing:
        pytest.skip(str(missing))
    ours = run_in_virtual_time(_run_embedded(), debug=False)
    with ControlPlane(controller_manager=True, manager_flags=IMPATIENT) as plane:
        theirs = asyncio.run(_run_real(plane))
    return theirs, ours


async def _run_embedded() -> Recordings:
    async with TestCluster(nodes=2, clock=virtual_clock, heartbeat=10.0) as cluster:
        cluster.program(*PROGRAM)
        return await _run_all(cluster.client(), cluster.nodes)


async def _run_real(plane: ControlPlane) -> Recordings:
    config = load_config(kubeconfig=plane.kubeconfig)
    async with Client.connect(config) as client, Client.connect(config) as own:
        simulated = SimulatedNodes(own, nodes=2, heartbeat=HEARTBEAT)
        simulated.program(*PROGRAM)
        async with simulated.running():
            return await _run_all(client, simulated)


async def _run_all(client: Client, nodes: SimulatedNodes) -> Recordings:
    """Run the scenarios concurrently, each in a namespace of its own."""
    found: Recordings = {}

    async def one(name: str) -> None:
        namespace = ScenarioNamespace(client, nodes, f"scenario-{name.replace('_', '-')}")
        await client.create(
            Unstructured({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace.namespace}})
        )
        await until(lambda: client.list("serviceaccounts", namespace=namespace.namespace), "the default account")
        try:
            await SCENARIOS[name](namespace)
        except AssertionError as late:  # reported by the test of this scenario, not by all
            namespace.recordings["never seen"] = f"{late}: {await namespace.pods()}"
        found[name] = namespace.recordings

    async with asyncio.TaskGroup() as group:
        for name in SCENARIOS:
            group.create_task(one(name))
    return found


@pytest.mark.parametrize("name", SCENARIOS)
def test_pods_have_the_same_status(name: str, recordings: tuple[Recordings, Recordings]) -> None:
    theirs, ours = (side[name] for side in recordings)
    assert "never seen" not in theirs
    for point, page in theirs.items():
        one, other = (json.dumps(each, indent=1, sort_keys=True).splitlines() for each in (page, ours.get(point)))
        different = "\n".join(difflib.unified_diff(one, other, "real", "ours", n=4, lineterm=""))
        if different:
            pytest.fail(f"{point}:\n{different}", pytrace=False)
    assert ours.keys() == theirs.keys()
