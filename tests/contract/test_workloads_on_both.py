"""The same scenarios on our controllers and on the real ones: what is there afterwards is the same.

The embedded server has our controllers, on virtual time; the real server has the real kube-controller-manager. There
are no nodes: the scenario is the scheduler and the kubelet. Identities, times, hashes and generated ends of names are
masked, and so is what depends on how fast a kubelet is (see `workload_clusters`).
"""

from __future__ import annotations

import pytest

from disruption_scenarios import BUDGETS, CRON_JOBS
from job_scenarios import INDEXED
from scenario_pages import Pages, ScenarioComparison, fail_on_differences
from workload_clusters import WATCHED, WorkloadCluster, embedded_workload_cluster
from workload_scenarios import SCENARIOS, Notes

pytestmark = pytest.mark.control_plane

COMPARISON = ScenarioComparison(
    groups=[SCENARIOS],
    notes=Notes,
    embedded=embedded_workload_cluster,
    real=WorkloadCluster,
    watched=WATCHED,
)


@pytest.fixture(scope="module")
def pages() -> Pages:
    return COMPARISON.run()


def test_the_scenarios_include_budgets_cron_jobs_and_indexed_jobs(pages: Pages) -> None:
    found = [page for _, ours in pages.values() for page in ours.values() if isinstance(page, dict)]
    assert {BUDGETS, *CRON_JOBS} <= {kind for page in found for kind in page}
    jobs = [one for page in found for one in page.get("jobs.batch", ())]
    assert any(INDEXED.items() <= one["spec"].items() for one in jobs)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_leaves_the_same_on_both(name: str, pages: Pages) -> None:
    fail_on_differences(*pages[name])
