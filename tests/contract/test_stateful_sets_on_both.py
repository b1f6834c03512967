"""The same scenarios of StatefulSets on our controller and on the real one: objects and events are the same.

As in test_workloads_on_both.py, the scenario is the scheduler and the kubelet. Garbage collection runs on both.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest

from scenario_pages import Pages, ScenarioComparison, fail_on_differences
from stateful_set_scenarios import (
    GATED_SCENARIOS,
    SCENARIOS,
    Scenario,
    StatefulSetNotes,
    embedded_cluster_with_garbage_collection,
)
from workload_clusters import WATCHED, WorkloadCluster

pytestmark = pytest.mark.control_plane

GATES = ("MaxUnavailableStatefulSet",)


@pytest.fixture(scope="module")
def pages() -> Pages:
    return {**_compare(SCENARIOS), **_compare(GATED_SCENARIOS, *GATES)}


def _compare(scenarios: Mapping[str, Scenario], *gates: str) -> Pages:
    comparison = ScenarioComparison(
        groups=[scenarios],
        notes=StatefulSetNotes,
        embedded=partial(embedded_cluster_with_garbage_collection, gates),
        real=WorkloadCluster,
        watched=WATCHED,
    )
    return comparison.run(flags=[f"--feature-gates={gate}=true" for gate in gates])


@pytest.mark.parametrize("name", [*SCENARIOS, *GATED_SCENARIOS])
def test_a_scenario_leaves_the_same_on_both(name: str, pages: Pages) -> None:
    fail_on_differences(*pages[name])
