"""A namespace that another client deletes takes along what the operator created in it: that is created again, too."""

from __future__ import annotations

import pytest

from konverge import Context, CustomResource, ObjectMeta, Operator, Retry, Spec, controller_for
from konverge.k8s.core.v1 import ConfigMap, Namespace
from konverge.objects import Scope
from konverge_cluster.testing import Simulation, simulate
from konverge_cluster.testing.simulation.simulate import REPLAY


class TeamSpec(Spec):
    size: int = 1


class Team(CustomResource[TeamSpec], group="example.com", version="v1", scope=Scope.CLUSTER):
    """A namespace with a ConfigMap."""


@controller_for(Team).owns(Namespace).owns(ConfigMap)
async def teams(team: Team, ctx: Context) -> None:
    namespace = await ctx.apply(Namespace(metadata=ObjectMeta(name=team.name)))
    if namespace.metadata.deletion_timestamp is not None:
        raise Retry("the namespace is being deleted", after=5)
    metadata = ObjectMeta(name="team", namespace=team.name)
    await ctx.apply(ConfigMap(metadata=metadata, data={"size": str(team.spec.size)}))


@pytest.mark.parametrize("seed", range(6))  # the seed decides which of the two objects is deleted
def test_a_deleted_namespace_is_created_again_with_its_contents(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.settle()
        assert (await sim.client.get(ConfigMap, "team", namespace="red")).data == {"size": "1"}

    monkeypatch.setenv(REPLAY, f"seed={seed} foreign-delete:1")
    operator = Operator(name="teams", controllers=(teams,))
    simulate(operator, samples=[Team.new("red", TeamSpec())])(scenario)()
