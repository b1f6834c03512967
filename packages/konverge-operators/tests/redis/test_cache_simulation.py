"""The Cache operator under seeded faults, and killed at every write."""

from __future__ import annotations

import pytest

from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Secret
from konverge.manager import Operator
from konverge_cluster.testing import Simulation, simulate
from konverge_operators.redis.cache.api import Cache, CachePhase
from konverge_operators.redis.cache.reconciler import CacheReconciler, new_workflow
from konverge_operators.redis.operator import new_operator
from redis_servers import cache_sample


class FixedPasswords(CacheReconciler):
    """Generates the same password in every run, since a hash of it is on the pods."""

    workflow = new_workflow(lambda: "generated")


reconcilers: list[CacheReconciler] = []
"""Those of the processes of the current run."""


def build() -> Operator:
    reconcilers.append(FixedPasswords())
    return new_operator(reconcilers[-1])


async def live(sim: Simulation) -> None:
    """Update, damage and delete a cache; no process may see an unexpected transition."""
    assert (await sim.client.get(Cache, "sessions")).status.phase is CachePhase.READY
    await sim.client.patch(Cache, "sessions", {"spec": {"maxMemory": "128Mi"}})
    await sim.client.patch(Secret, "sessions", {"stringData": {"password": "rotated"}})
    await sim.client.delete(Deployment, "sessions")
    await sim.settle()
    assert (await sim.client.get(Cache, "sessions")).status.phase is CachePhase.READY
    await sim.client.delete(Cache, "sessions")
    await sim.settle()
    assert sim.counts["create secrets default/sessions"] == 1
    families = [family for each in reconcilers for family in each.metrics.unexpected.collect()]
    assert not [one for family in families for one in family.samples if one.name.endswith("_total")]
    reconcilers.clear()


@simulate(build, samples=[cache_sample()], seeds=50)
async def test_a_cache_under_seeded_faults(sim: Simulation) -> None:
    await live(sim)


@simulate(build, samples=[cache_sample()], seeds=0, each_write=True)
async def test_an_operator_killed_at_any_write_reaches_the_same_result(sim: Simulation) -> None:
    await live(sim)


@pytest.mark.campaigns
@simulate(build, samples=[cache_sample()], seeds=1000)
async def test_a_cache_under_a_thousand_seeds(sim: Simulation) -> None:
    await live(sim)
