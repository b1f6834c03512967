"""`cluster.operator` runs an Operator whole: CRDs, webhooks and conversion."""

from __future__ import annotations

import pytest

from konverge.errors import ApiError
from konverge_cluster.testing import TestCluster
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
