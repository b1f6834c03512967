"""The MyApp operator under seeded faults, and killed at every write.

In `make test` the tests play the operators of the database and the cache; in `make campaigns` they run too, in the same
process, with an engine in memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from konverge import Context, Controller, ObjectMeta, controller_for
from konverge.client import is_deleted
from konverge.k8s.apps.v1 import Deployment, DeploymentCondition
from konverge.k8s.core.v1 import PersistentVolumeClaim, Secret
from konverge.manager import Operator
from konverge_cluster.testing import Simulation, TestCluster, simulate
from konverge_operators.database.api import Database
from konverge_operators.database.memory import InMemoryEngine
from konverge_operators.myapp.api import MyApp, Phase
from konverge_operators.myapp.operator import MyAppReconciler, new_operator
from konverge_operators.redis.cache.api import Cache
from konverge_operators.redis.cache.reconciler import CacheReconciler, new_workflow
from konverge_operators.redis.operator import new_operator as redis_operator
from my_apps import NAME, my_app, operators

reconcilers: list[MyAppReconciler] = []
"""Those of the processes of the current run."""


def build() -> Operator:
    reconcilers.append(MyAppReconciler())
    return replace(new_operator(reconcilers[-1]), kinds=(MyApp, Database, Cache))


class FixedPasswords(CacheReconciler):
    """Generates the same password in every run, since a hash of it is on the pods."""

    workflow = new_workflow(lambda: "generated")


def build_all(engine: InMemoryEngine) -> Operator:
    parts = operators(engine) | {"redis": redis_operator(FixedPasswords())}
    return Operator.combine("all-operators", *parts.values())


def played(kind: type[Any], suffix: str) -> Controller[Any]:
    """Return a controller that does what another operator does, as far as a MyApp can see it."""

    async def play(obj: Any, ctx: Context) -> None:
        name = f"{obj.name}{suffix}"
        await ctx.create_once(
            Secret(metadata=ObjectMeta(name=name), string_data={"uri": f"first://{name}"}), owned=False
        )
        obj.status.connection_secret = name
        ctx.set_ready(obj, True, reason="Played")
        await ctx.update_status(obj)

    return controller_for(kind).named(f"played-{kind.__name__.lower()}")(play)


@controller_for(Deployment).named("played-deployment")
async def roll_out(obj: Deployment, ctx: Context) -> None:
    """Report that every replica runs, without any pod."""
    assert obj.status is not None
    wanted = obj.spec.replicas
    obj.status.observed_generation = obj.metadata.generation
    obj.status.replicas = obj.status.ready_replicas = wanted
    obj.status.updated_replicas = obj.status.available_replicas = wanted
    progress = DeploymentCondition(type="Progressing", status="True", reason="NewReplicaSetAvailable")
    obj.status.conditions = [progress, DeploymentCondition(type="Available", status="True")]
    await ctx.update_status(obj)


class PlayedCluster(TestCluster):
    """A cluster without pods, on which everything becomes ready at once; what MyApp sees of it is the same."""

    def builtin_controllers(self) -> tuple[Controller[Any], ...]:
        needed = [one for one in super().builtin_controllers() if one.name == "namespace-controller"]
        return (*needed, roll_out, played(Database, "-app"), played(Cache, ""))


async def check_running(sim: Simulation[Any]) -> None:
    found = await sim.client.get(MyApp, NAME)
    assert found.status.phase is Phase.RUNNING, found.status.message


async def delete(sim: Simulation[Any]) -> None:
    """Delete the application: its database stays and belongs to nobody, until the user deletes it."""
    await sim.client.delete(MyApp, NAME)
    await sim.client.wait_for(MyApp, NAME, is_deleted(), timeout=900)
    kept = await sim.client.get(Database, f"{NAME}-database")
    assert (kept.metadata.owner_references, kept.metadata.deletion_timestamp) == ([], None)
    await sim.client.delete(kept)
    await sim.settle()


async def live(sim: Simulation[Any]) -> None:
    """Create, rotate, update, damage and delete; no process may see an unexpected transition."""
    await check_running(sim)
    await sim.client.patch(Secret, f"{NAME}-database-app", {"stringData": {"uri": "second://"}})
    await sim.client.patch(MyApp, NAME, {"spec": {"image": "shop:2", "cache": None}})
    await sim.client.delete(Deployment, NAME)
    await sim.settle()
    await check_running(sim)
    await delete(sim)
    families = [family for each in reconcilers for family in each.metrics.unexpected.collect()]
    assert not [one for family in families for one in family.samples if one.name.endswith("_total")]
    reconcilers.clear()


@simulate(build, samples=[my_app()], seeds=50, quiet=40, nodes=0, cluster=PlayedCluster)
async def test_an_application_under_seeded_faults(sim: Simulation) -> None:
    await live(sim)


@pytest.mark.campaigns
@simulate(build, samples=[my_app()], seeds=1000, each_write=True, nodes=0, cluster=PlayedCluster)
async def test_an_application_under_a_thousand_seeds(sim: Simulation) -> None:
    await live(sim)


@pytest.mark.campaigns
@simulate(build_all, external=InMemoryEngine, seeds=100, counts=False, exclude=(Secret, PersistentVolumeClaim))
async def test_all_operators_in_one_process_under_a_hundred_seeds(sim: Simulation[InMemoryEngine]) -> None:
    sim.external.server = sim.cluster.client()
    hosts = {"database": {"DATABASE_HOST": "host"}, "cache": {"CACHE_HOST": "host"}}  # a password differs in each run
    await sim.client.create(my_app(bindings=hosts))
    await sim.settle()
    await check_running(sim)
    await sim.client.patch(MyApp, NAME, {"spec": {"image": "shop:2", "replicas": 2}})
    await sim.settle()
    await check_running(sim)
    await delete(sim)
    assert not sim.external.violations
