"""The same scenarios of nodes on our controllers and on the real ones: nodes, pods and events are the same.

The embedded server has our controllers, on virtual time; the real server has the real kube-controller-manager, which
is told to lose patience sooner. The scenario is every kubelet.
"""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from konverge.client import Client, load_config
from konverge.errors import ControlPlaneError
from konverge.testing import ControlPlane, find_binaries, run_in_virtual_time
from konverge.testing.binaries import NEEDED
from node_scenarios import ALONE, SCENARIOS, THRESHOLD, WATCHED, NodeCluster, NodeNotes, embedded_node_cluster
from quiet_namespaces import QuietNamespaces
from workload_clusters import real_workload_cluster

pytestmark = pytest.mark.control_plane

EVERY = {**SCENARIOS, **ALONE}
IMPATIENT = [
    "--node-monitor-period=1s",
    "--node-monitor-grace-period=16s",
    "--node-startup-grace-period=16s",
    f"--terminated-pod-gc-threshold={THRESHOLD}",
]


@pytest.fixture(scope="module")
def pages() -> dict[str, tuple[Any, Any]]:
    """What each scenario leaves on both; on the real server they run side by side, each in a namespace of its own."""
    try:
        find_binaries((*NEEDED, "kube-controller-manager"))
    except ControlPlaneError as missing:
        pytest.skip(str(missing))
    ours = {name: run_in_virtual_time(_run_embedded(name), debug=False) for name in EVERY}
    with ControlPlane(controller_manager=True, manager_flags=IMPATIENT) as plane:
        theirs = asyncio.run(_run_real(plane, ours))
    return {name: (theirs[name], ours[name]) for name in EVERY}


async def _run_embedded(name: str) -> dict[str, Any]:
    async with embedded_node_cluster("scenario") as cluster:
        notes = NodeNotes(cluster)
        await EVERY[name](cluster, notes)
        return notes.pages


async def _run_real(plane: ControlPlane, expected: dict[str, Any]) -> dict[str, Any]:
    pages: dict[str, Any] = {}

    async def run(number: int, name: str) -> None:
        async with real_workload_cluster(plane, f"scenario-{number}x", quiet_namespaces) as base:
            cluster = NodeCluster(client, base.namespace, quiet_namespaces)
            notes = NodeNotes(cluster, expected[name])
            async with cluster.living():
                try:
                    await EVERY[name](cluster, notes)
                except Exception as error:  # reported by the test of this scenario, not by all
                    notes.pages["failed"] = repr(error)
            pages[name] = notes.pages
            for pod in await client.list("pods", namespace=base.namespace):
                await client.delete(pod, grace_period=0, missing_ok=True)

    async def side_by_side(names: Iterable[str]) -> None:
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(run(list(EVERY).index(name), name))

    async with (
        Client.connect(load_config(kubeconfig=plane.kubeconfig)) as client,
        QuietNamespaces(WATCHED).watched(client) as quiet_namespaces,
    ):
        await side_by_side(ALONE)
        await side_by_side(SCENARIOS)
    return pages


@pytest.mark.parametrize("name", EVERY)
def test_a_scenario_of_nodes_leaves_the_same_on_both(name: str, pages: dict[str, tuple[Any, Any]]) -> None:
    theirs, ours = pages[name]
    different = [line for point in theirs for line in _differences(point, theirs[point], ours.get(point))]
    if different:
        pytest.fail("\n".join(different), pytrace=False)
    assert ours.keys() == theirs.keys()


def _differences(point: str, real: Any, ours: Any) -> Iterator[str]:
    one, other = (json.dumps(page, indent=1, sort_keys=True).splitlines() for page in (real, ours))
    return difflib.unified_diff(one, other, f"{point}: real", f"{point}: ours", n=3, lineterm="")
