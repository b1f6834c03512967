"""The EcommerceApp operator under seeded faults: crashes, lost responses, lost leases, other clients.

Half of the seeds kill the operator, together before and after every single write.
"""

from __future__ import annotations

import pytest

from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import PersistentVolumeClaim
from konverge.manager import Operator
from konverge_cluster.testing import Simulation, simulate
from konverge_operators.ecommerce.api import EcommerceApp, Phase
from konverge_operators.ecommerce.operator import EcommerceReconciler, new_operator
from shop_apps import NAME, credentials, sample

SAMPLES = [credentials("default"), sample("default", replicas=1, frontend={"replicas": 1}, backend={"replicas": 1})]


reconcilers: list[EcommerceReconciler] = []
"""Those of the processes of the current run."""


def build() -> Operator:
    reconcilers.append(EcommerceReconciler())
    return new_operator(reconcilers[-1])


async def live(sim: Simulation) -> None:
    """Create, update, damage and delete an application; no process may see an unexpected transition."""
    await sim.settle()
    assert (await sim.client.get(EcommerceApp, NAME)).status.phase is Phase.RUNNING
    change = {"backend": {"image": "ecommerce-backend:v3"}, "monitoring": {"enabled": False}}
    await sim.client.patch(EcommerceApp, NAME, {"spec": change})
    await sim.client.delete(Deployment, f"{NAME}-frontend")
    await sim.settle()
    assert (await sim.client.get(EcommerceApp, NAME)).status.phase is Phase.RUNNING
    await sim.client.delete(EcommerceApp, NAME)
    await sim.settle()
    families = [family for each in reconcilers for family in each.metrics.unexpected.collect()]
    assert not [one for family in families for one in family.samples if one.name.endswith("_total")]
    reconcilers.clear()


@simulate(build, samples=SAMPLES, seeds=50, exclude=(PersistentVolumeClaim,))
async def test_an_application_under_seeded_faults(sim: Simulation) -> None:
    await live(sim)


@pytest.mark.campaigns
@simulate(build, samples=SAMPLES, seeds=1000, exclude=(PersistentVolumeClaim,))
async def test_an_application_under_a_thousand_seeds(sim: Simulation) -> None:
    await live(sim)
