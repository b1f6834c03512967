"""`cluster.operator` runs an Operator whole: CRDs, webhooks and conversion, under its own service account."""

from __future__ import annotations

from contextlib import suppress

import pytest

from konverge.controller import controller_for
from konverge.errors import ApiError, Forbidden
from konverge.k8s.core.v1 import ConfigMap, Secret
from konverge.manager import Operator
from konverge.objects import ObjectMeta
from konverge.reconcile import Context
from konverge_cluster.testing import TestCluster
from konverge_cluster.testing.clusters import virtual_clock
from konverge_cluster.testing.operators import MissingPermission
from konverge_operators.webapp.api import Phase, WebApp
from konverge_operators.webapp.beta import WebAppV1Beta1
from konverge_operators.webapp.operator import operator
from webapps import webapp


@pytest.mark.plain_loop
async def test_crds_webhooks_and_conversion_are_installed(cluster: TestCluster) -> None:
    client = cluster.client()
    async with cluster.operator(operator) as manager:
        await client.create(webapp(replicas=1))
        await cluster.settle()
        assert manager.name == operator.name
        assert (await client.get(WebApp, "web")).status.phase is Phase.READY
        assert (await client.get(WebAppV1Beta1, "web")).spec.size == 1
        with pytest.raises(ApiError, match="the image needs a tag"):
            await client.create(webapp("bad", image="nginx"))


async def test_an_operator_runs_alone_in_its_block(cluster: TestCluster) -> None:
    with pytest.raises(TypeError, match="run one Operator in each block"):
        async with cluster.operator(operator, operator.controllers[0]):
            pass


async def read_secrets(obj: ConfigMap, ctx: Context) -> None:
    """Read what no rule allows, and ignore the denial."""
    with suppress(Forbidden):
        await ctx.client.list(Secret)


def reading(*verbs: str) -> Operator:
    """Return an operator that lists Secrets, with these verbs declared."""
    controller = controller_for(ConfigMap).needs(Secret, *verbs).build(read_secrets)
    return Operator(name="reader", controllers=(controller,))


async def test_a_missing_rule_fails_with_the_rule_to_add(cluster: TestCluster) -> None:
    with pytest.raises(MissingPermission) as failure:
        async with cluster.operator(reading("get")):
            await cluster.client().create(ConfigMap(metadata=ObjectMeta(name="a")))
            await cluster.settle()
    assert str(failure.value) == (
        "reader may not list secrets at the cluster scope: declare .needs(<kind of secrets>, 'list'),"
        ' which generates the rule {apiGroups: [""], resources: ["secrets"], verbs: ["list"]}'
    )


async def test_declared_rules_are_enough(cluster: TestCluster) -> None:
    async with cluster.operator(reading("list")):
        await cluster.client().create(ConfigMap(metadata=ObjectMeta(name="a")))
        await cluster.settle()


async def test_a_test_that_fails_for_another_reason_has_the_missing_rules_as_notes(cluster: TestCluster) -> None:
    with pytest.raises(RuntimeError, match="another") as failure:
        async with cluster.operator(reading("get")):
            await cluster.client().create(ConfigMap(metadata=ObjectMeta(name="a")))
            await cluster.settle()
            raise RuntimeError("another reason")
    assert "reader may not list secrets" in failure.value.__notes__[0]


async def test_without_rbac_nothing_is_denied() -> None:
    async with TestCluster(clock=virtual_clock, rbac=False) as cluster, cluster.operator(reading("get")):
        await cluster.client().create(ConfigMap(metadata=ObjectMeta(name="a")))
        await cluster.settle()
