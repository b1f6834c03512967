"""The same scenarios of claims and volumes on our controllers and on the real ones: objects and events are the same.

The embedded server has our controllers, on virtual time; the real server has the real kube-controller-manager. The
provisioner is the simulated one on both, since a controller manager has none.
"""

from __future__ import annotations

import pytest

from scenario_pages import Pages, ScenarioComparison, fail_on_differences
from volume_clusters import WATCHED, VolumeCluster, embedded_volume_cluster, provisioner
from volume_scenarios import SCENARIOS, VolumeNotes

pytestmark = pytest.mark.control_plane

COMPARISON = ScenarioComparison(
    groups=[SCENARIOS],
    notes=VolumeNotes,
    embedded=embedded_volume_cluster,
    real=VolumeCluster,
    watched=WATCHED,
    beside=provisioner,
)


@pytest.fixture(scope="module")
def pages() -> Pages:
    return COMPARISON.run()


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_of_volumes_leaves_the_same_on_both(name: str, pages: Pages) -> None:
    fail_on_differences(*pages[name])
