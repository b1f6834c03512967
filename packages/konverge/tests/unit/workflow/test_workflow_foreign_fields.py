"""Fields of children that others set: reported in a condition while they exist, and only if they change behaviour."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge import Client
from konverge.k8s.apps.v1 import Deployment
from konverge.objects import find_condition
from konverge_cluster.testing import TestCluster
from shops import Shop, operator, shop

TEMPLATE = ".spec.template.spec"


@asynccontextmanager
async def running(cluster: TestCluster) -> AsyncIterator[Client]:
    client = cluster.client()
    async with cluster.operator(operator()):
        await client.create(shop())
        await cluster.settle()
        yield client


async def reported(client: Client) -> tuple[str, str]:
    found = find_condition((await client.get(Shop, "web")).status.conditions, "ForeignFields")
    assert found is not None
    assert (found.reason == "ForeignFields") is (found.status == "True")
    return found.status, found.message


def pods(**spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": spec}}}


@pytest.mark.parametrize(
    ("change", "undo", "field"),
    [
        (
            pods(containers=[{"name": "sidecar", "image": "proxy:1"}]),
            pods(containers=[{"name": "sidecar", "$patch": "delete"}]),
            f'{TEMPLATE}.containers[name="sidecar"]',
        ),
        (
            pods(containers=[{"name": "main", "env": [{"name": "DEBUG", "value": "1"}]}]),
            pods(containers=[{"name": "main", "env": [{"name": "DEBUG", "$patch": "delete"}]}]),
            f'{TEMPLATE}.containers[name="main"].env[name="DEBUG"]',
        ),
        (pods(nodeSelector={"disk": "ssd"}), pods(nodeSelector=None), f"{TEMPLATE}.nodeSelector"),
        ({"spec": {"minReadySeconds": 7}}, {"spec": {"minReadySeconds": None}}, ".spec.minReadySeconds"),
    ],
)
async def test_a_field_is_reported_until_it_is_removed(
    cluster: TestCluster, change: dict[str, Any], undo: dict[str, Any], field: str
) -> None:
    async with running(cluster) as client:
        assert await reported(client) == ("False", "")
        somebody = client.using(field_manager="somebody")
        await somebody.patch(Deployment, "web-backend", change, patch_type="strategic")
        await cluster.settle()
        assert await reported(client) == ("True", f"Deployment {field} by somebody")

        await client.patch(Deployment, "web-backend", undo, patch_type="strategic")
        await cluster.settle()
        assert await reported(client) == ("False", "")


async def test_what_others_may_set_is_not_reported(cluster: TestCluster) -> None:
    restart = {"kubectl.kubernetes.io/restartedAt": "2027-01-15T08:00:00Z"}
    async with running(cluster) as client:
        await client.scale(Deployment, "web-backend", 2)  # the component leaves replicas to others
        await client.patch(Deployment, "web-search", {"spec": {"template": {"metadata": {"annotations": restart}}}})
        await client.patch(Deployment, "web-frontend", {"metadata": {"annotations": {"team": "shop"}}})
        await cluster.settle()
        assert await reported(client) == ("False", "")


async def test_a_long_list_is_cut(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        containers = [{"name": f"sidecar-{number}", "image": "proxy:1"} for number in range(7)]
        await client.patch(Deployment, "web-backend", pods(containers=containers), patch_type="strategic")
        await cluster.settle()
        _, message = await reported(client)
        assert message.count("sidecar-") == 5
        assert message.endswith(" and 2 more")
