"""The same scenarios on our controllers and on the real ones: what is there afterwards is the same.

The embedded server has our controllers, on virtual time; the real server has the real kube-controller-manager. There
are no nodes: the scenario is the scheduler and the kubelet. Identities, times, hashes and generated ends of names are
masked, and so is what depends on how fast a kubelet is (see `workloadscene`).
"""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from disruption_scenarios import BUDGETS, CRON_JOBS
from job_scenarios import INDEXED
from konverge.client import Client, load_config
from konverge.errors import ControlPlaneError
from konverge.testing import ControlPlane, find_binaries, run_in_virtual_time
from konverge.testing.binaries import NEEDED
from quiet_namespaces import QuietNamespaces
from workload_clusters import WATCHED, embedded_workload_cluster, real_workload_cluster
from workload_scenarios import SCENARIOS, Notes

pytestmark = pytest.mark.control_plane


@pytest.fixture(scope="module")
def pages() -> dict[str, tuple[Any, Any]]:
    """What each scenario leaves on both; on the real server they run side by side, each in a namespace of its own."""
    try:
        find_binaries((*NEEDED, "kube-controller-manager"))
    except ControlPlaneError as missing:
        pytest.skip(str(missing))
    ours = {name: run_in_virtual_time(_run_embedded(name), debug=False) for name in SCENARIOS}
    # The node of the scenarios sends no sign of life: a slow scenario must not see it declared dead.
    with ControlPlane(controller_manager=True, manager_flags=["--node-monitor-grace-period=1h"]) as plane:
        theirs = asyncio.run(_play_all(plane, ours))
    return {name: (theirs[name], ours[name]) for name in SCENARIOS}


async def _run_embedded(name: str) -> dict[str, Any]:
    async with embedded_workload_cluster() as cluster:
        notes = Notes(cluster)
        await SCENARIOS[name](cluster, notes)
        return notes.pages


async def _play_all(plane: ControlPlane, expected: dict[str, Any]) -> dict[str, Any]:
    pages: dict[str, Any] = {}

    async def one(number: int, name: str) -> None:
        async with real_workload_cluster(plane, f"scenario-{number}", quiet_namespaces) as cluster:
            notes = Notes(cluster, expected[name])
            try:
                await SCENARIOS[name](cluster, notes)
            except Exception as error:  # event_messages by the test of this scenario, not by all
                notes.pages["failed"] = repr(error)
            pages[name] = notes.pages

    async with (
        Client.connect(load_config(kubeconfig=plane.kubeconfig)) as client,
        QuietNamespaces(WATCHED).watched(client) as quiet_namespaces,
        asyncio.TaskGroup() as group,
    ):
        for number, name in enumerate(SCENARIOS):
            group.create_task(one(number, name))
    return pages


def test_the_scenarios_include_budgets_cron_jobs_and_indexed_jobs(pages: dict[str, tuple[Any, Any]]) -> None:
    found = [page for _, ours in pages.values() for page in ours.values() if isinstance(page, dict)]
    assert {BUDGETS, *CRON_JOBS} <= {kind for page in found for kind in page}
    jobs = [one for page in found for one in page.get("jobs.batch", ())]
    assert any(INDEXED.items() <= one["spec"].items() for one in jobs)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_play_leaves_the_same_on_both(name: str, pages: dict[str, tuple[Any, Any]]) -> None:
    theirs, ours = pages[name]
    for point, page in theirs.items():
        different = "\n".join(_differences(page, ours.get(point)))
        if different:
            pytest.fail(f"{point}:\n{different}", pytrace=False)
    assert ours.keys() == theirs.keys()


def _differences(real: Any, ours: Any) -> Iterator[str]:
    """Give the lines in which two pages differ, so that a red test says what is wrong in few words."""
    one, other = (json.dumps(page, indent=1, sort_keys=True).splitlines() for page in (real, ours))
    return difflib.unified_diff(one, other, "real", "ours", n=3, lineterm="")
