"""The same scenarios of StatefulSets on our controller and on the real one: objects and events are the same.

As in test_workloads_on_both.py, the scenario is the scheduler and the kubelet. Garbage collection runs on both.
"""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from konverge.client import Client, load_config
from konverge.errors import ControlPlaneError
from konverge.testing import ControlPlane, find_binaries, run_in_virtual_time
from konverge.testing.binaries import NEEDED
from quiet_namespaces import QuietNamespaces
from stateful_set_scenarios import (
    GATED_SCENARIOS,
    SCENARIOS,
    Scenario,
    StatefulSetNotes,
    embedded_cluster_with_garbage_collection,
)
from workload_clusters import WATCHED, real_workload_cluster

pytestmark = pytest.mark.control_plane


@pytest.fixture(scope="module")
def pages() -> dict[str, tuple[Any, Any]]:
    """What each scenario leaves on both; on the real server they run side by side, each in a namespace of its own."""
    try:
        find_binaries((*NEEDED, "kube-controller-manager"))
    except ControlPlaneError as missing:
        pytest.skip(str(missing))
    return {**_compare(SCENARIOS), **_compare(GATED_SCENARIOS, "MaxUnavailableStatefulSet")}


def _compare(scenarios: Mapping[str, Scenario], *gates: str) -> dict[str, tuple[Any, Any]]:
    ours = {name: run_in_virtual_time(_run_embedded(scenarios[name], gates), debug=False) for name in scenarios}
    flags = [f"--feature-gates={gate}=true" for gate in gates]
    manager_flags = ["--node-monitor-grace-period=1h", *flags]
    with ControlPlane(controller_manager=True, extra_flags=flags, manager_flags=manager_flags) as plane:
        theirs = asyncio.run(_run_all(scenarios, plane, ours))
    return {name: (theirs[name], ours[name]) for name in scenarios}


async def _run_embedded(scenario: Scenario, gates: Iterable[str]) -> dict[str, Any]:
    async with embedded_cluster_with_garbage_collection(gates) as cluster:
        notes = StatefulSetNotes(cluster)
        await scenario(cluster, notes)
        return notes.pages


async def _run_all(scenarios: Mapping[str, Scenario], plane: ControlPlane, expected: dict[str, Any]) -> dict[str, Any]:
    pages: dict[str, Any] = {}

    async def run(number: int, name: str) -> None:
        async with real_workload_cluster(plane, f"scenario-{number}", quiet_namespaces) as cluster:
            notes = StatefulSetNotes(cluster, expected[name])
            try:
                await scenarios[name](cluster, notes)
            except Exception as error:  # reported by the test of this scenario, not by all
                notes.pages["failed"] = repr(error)
            pages[name] = notes.pages

    async with (
        Client.connect(load_config(kubeconfig=plane.kubeconfig)) as client,
        QuietNamespaces(WATCHED).watched(client) as quiet_namespaces,
        asyncio.TaskGroup() as group,
    ):
        for number, name in enumerate(scenarios):
            group.create_task(run(number, name))
    return pages


@pytest.mark.parametrize("name", [*SCENARIOS, *GATED_SCENARIOS])
def test_a_scenario_leaves_the_same_on_both(name: str, pages: dict[str, tuple[Any, Any]]) -> None:
    theirs, ours = pages[name]
    different = [line for point in theirs for line in _differences(point, theirs[point], ours.get(point))]
    if different:
        pytest.fail("\n".join(different), pytrace=False)
    assert ours.keys() == theirs.keys()


def _differences(point: str, real: Any, ours: Any) -> Iterator[str]:
    one, other = (json.dumps(page, indent=1, sort_keys=True).splitlines() for page in (real, ours))
    return difflib.unified_diff(one, other, f"{point}: real", f"{point}: ours", n=3, lineterm="")
