"""The RedisCluster operator killed at every write, and under seeded faults of the API; servers in memory."""

from __future__ import annotations

import pytest

from konverge.manager import Operator
from konverge_cluster.testing import Simulation, simulate
from konverge_operators.redis.cluster.api import ClusterPhase, RedisCluster
from konverge_operators.redis.cluster.reconciler import RedisClusterReconciler, new_cluster_workflow
from konverge_operators.redis.operator import new_operator
from redis_engine import PodEngine, check_owners
from redis_servers import cluster_sample

NAME = "store"
engine = PodEngine()
"""The servers of the current run: they go on when the operator is killed."""


class FixedPasswords(RedisClusterReconciler):
    """Generates the same password in every run, since a hash of it is on the pods."""

    workflow = new_cluster_workflow(lambda: "generated")


def build() -> Operator:
    return new_operator(clusters=FixedPasswords(), engine=engine.opened)


async def form(sim: Simulation) -> None:
    """Form a cluster, and delete it."""
    await live(sim, ())


async def resize(sim: Simulation) -> None:
    """Form a cluster, scale it out and in, and delete it."""
    await live(sim, (4, 3))


async def live(sim: Simulation, sizes: tuple[int, ...]) -> None:
    try:
        await until_ready(sim)
        assert engine.write(0, "key")
        for shards in sizes:
            await sim.client.patch(RedisCluster, NAME, {"spec": {"shards": shards}})
            await until_ready(sim)
        owner = engine.owner(0)
        assert owner is not None
        assert owner.keys[0] == {"key"}
        await sim.client.delete(RedisCluster, NAME)
        await sim.settle()
        assert engine.formed == 1
        assert sim.counts["create secrets default/store"] == 1
    finally:
        engine.clear()


async def until_ready(sim: Simulation) -> None:
    await sim.settle()
    assert (await sim.client.get(RedisCluster, NAME)).status.phase is ClusterPhase.READY
    check_owners(engine)


SAMPLE = cluster_sample(deletionPolicy="Delete", replicasPerShard=1, rebalance={"maxConcurrent": 1024})


@simulate(build, samples=[SAMPLE], seeds=2, each_write=True)
async def test_an_operator_killed_at_any_write_forms_one_cluster(sim: Simulation) -> None:
    await form(sim)


@pytest.mark.campaigns
@simulate(build, samples=[SAMPLE], seeds=20, each_write=True)
async def test_an_operator_killed_at_any_write_moves_all_slots(sim: Simulation) -> None:
    await resize(sim)
