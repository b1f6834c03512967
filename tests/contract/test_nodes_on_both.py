"""The same scenarios of nodes on our controllers and on the real ones: nodes, pods and events are the same.

The embedded server has our controllers, on virtual time; the real server has the real kube-controller-manager, with
shorter grace periods. The scenario is every kubelet.
"""

from __future__ import annotations

from functools import partial

import pytest

from node_scenarios import (
    ALONE,
    SCENARIOS,
    THRESHOLD,
    WATCHED,
    NodeCluster,
    NodeNotes,
    embedded_node_cluster,
    with_living_nodes,
)
from scenario_pages import Pages, ScenarioComparison, fail_on_differences

pytestmark = pytest.mark.control_plane

IMPATIENT = [
    "--node-monitor-period=1s",
    "--node-monitor-grace-period=16s",
    "--node-startup-grace-period=16s",
    f"--terminated-pod-gc-threshold={THRESHOLD}",
]
COMPARISON = ScenarioComparison(
    groups=[ALONE, SCENARIOS],
    notes=NodeNotes,
    embedded=partial(embedded_node_cluster, "scenario"),
    real=NodeCluster,
    watched=WATCHED,
    around=with_living_nodes,
)


@pytest.fixture(scope="module")
def pages() -> Pages:
    return COMPARISON.run(manager_flags=IMPATIENT)


@pytest.mark.parametrize("name", [*ALONE, *SCENARIOS])
def test_a_scenario_of_nodes_leaves_the_same_on_both(name: str, pages: Pages) -> None:
    fail_on_differences(*pages[name])
