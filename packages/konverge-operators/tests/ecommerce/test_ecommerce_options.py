"""The options of an EcommerceApp on the embedded cluster: addresses, routes, autoscaling, overrides, credentials."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge import Client
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.autoscaling.v2 import HorizontalPodAutoscaler
from konverge.k8s.core.v1 import Event, Secret
from konverge.k8s.networking.v1 import Ingress
from konverge.objects import Unstructured, find_condition
from konverge.workflow import CONFIGURATION_HASH
from konverge_cluster.testing import TestCluster
from konverge_operators.ecommerce.api import EcommerceApp, Phase
from konverge_operators.ecommerce.operator import new_operator
from konverge_operators.manifests import HTTP_ROUTE
from shop_apps import NAME, NAMESPACE, prepare, sample
from webapps import optional_crd

pytestmark = pytest.mark.plain_loop  # asyncio's debug mode takes two thirds of the time

FRONTEND, BACKEND, PROXY = f"{NAME}-frontend", f"{NAME}-backend", f"{NAME}-oauth2-proxy"


@asynccontextmanager
async def running(cluster: TestCluster, **spec: Any) -> AsyncIterator[Client]:
    """Run the operator, and the sample with some fields of its spec changed until it is settled."""
    client = cluster.client(NAMESPACE)
    await prepare(client)
    async with cluster.operator(new_operator()):
        await client.create(sample(**spec))
        await cluster.settle()
        yield client


async def app_of(client: Client) -> EcommerceApp:
    return await client.get(EcommerceApp, NAME)


async def events(client: Client) -> list[tuple[str, str, str]]:
    found = await client.list(Event, namespace=NAMESPACE)
    mine = [one for one in found if one.involved_object.kind == "EcommerceApp"]
    return [(one.type or "", one.reason or "", one.message or "") for one in mine]


async def test_an_image_of_the_frontend_wins_over_that_of_the_application_with_a_warning(cluster: TestCluster) -> None:
    async with running(cluster, image="shop:v1", frontend={"image": "shop:v2"}) as client:
        frontend = await client.get(Deployment, FRONTEND)
        assert frontend.spec.template.spec is not None
        assert frontend.spec.template.spec.containers[0].image == "shop:v2"
        message = "spec.frontend.image shop:v2 is used, not spec.image shop:v1"
        assert (await events(client)).count(("Warning", "ImageOverridden", message)) == 1


async def test_the_address_is_reported_while_the_ingress_is_ready(cluster: TestCluster) -> None:
    async with running(cluster, ingress={"host": "shop.example.com", "className": "public"}) as client:
        assert (await app_of(client)).status.url == "https://shop.example.com"
        ingress = await client.get(Ingress, NAME)
        assert (ingress.spec.ingress_class_name, ingress.spec.rules[0].host) == ("public", "shop.example.com")
        assert ingress.spec.tls[0].hosts == ["shop.example.com"]

        await client.patch(EcommerceApp, NAME, {"spec": {"security": {"tls": {"enabled": False}}}})
        await cluster.settle()
        assert (await app_of(client)).status.url == "http://shop.example.com"
        assert not (await client.get(Ingress, NAME)).spec.tls

        await client.delete(Secret, f"{NAME}-oauth2")
        await cluster.settle()
        assert (await app_of(client)).status.url == ""


async def test_the_time_of_the_last_update_changes_only_with_something_else(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        before = await app_of(client)
        assert before.status.last_updated
        await asyncio.sleep(600)  # twenty reconciles
        after = await app_of(client)
        assert after.metadata.resource_version == before.metadata.resource_version

        await client.patch(EcommerceApp, NAME, {"spec": {"frontend": {"replicas": 4}}})
        await cluster.settle()
        assert (await app_of(client)).status.last_updated > before.status.last_updated


async def test_a_route_of_the_gateway_api_replaces_the_ingress_once_its_kind_is_served(cluster: TestCluster) -> None:
    async with running(cluster, ingress={"host": "shop.example.com"}) as client:
        await client.patch(EcommerceApp, NAME, {"spec": {"ingress": {"gateway": "public"}}})
        await cluster.settle()
        (waiting,) = [one for one in (await app_of(client)).status.components if one.name == "ingress"]
        assert waiting.reason == "GatewayNotInstalled"
        assert (await client.get(Ingress, NAME)).uid  # kept: a component that waits keeps its children

        await client.create(optional_crd(HTTP_ROUTE))
        await asyncio.sleep(60)
        await cluster.settle()
        route = await client.get(HTTP_ROUTE, NAME)
        assert isinstance(route, Unstructured)
        assert (route["spec"]["parentRefs"], route["spec"]["hostnames"]) == ([{"name": "public"}], ["shop.example.com"])
        (rule,) = route["spec"]["rules"]
        assert rule["backendRefs"] == [{"name": PROXY, "port": 4180}]
        assert not await client.list(Ingress, namespace=NAMESPACE)
        assert (await app_of(client)).status.phase is Phase.RUNNING


async def test_replicas_belong_to_the_autoscaler_until_it_is_switched_off(cluster: TestCluster) -> None:
    scaling = {"minReplicas": 2, "maxReplicas": 6, "cpuPercent": 70}
    async with running(cluster, backend={"replicas": 1, "autoscaling": scaling}) as client:
        autoscaler = await client.get(HorizontalPodAutoscaler, BACKEND)
        assert (autoscaler.spec.min_replicas, autoscaler.spec.max_replicas) == (2, 6)
        assert (await client.get(Deployment, BACKEND)).spec.replicas == 2  # within the bounds
        await client.scale(Deployment, BACKEND, 5)  # as the autoscaler does
        await cluster.settle()
        assert (await client.get(Deployment, BACKEND)).spec.replicas == 5
        foreign = find_condition((await app_of(client)).status.conditions, "ForeignFields")
        assert foreign is not None
        assert foreign.status == "False"

        await client.patch(EcommerceApp, NAME, {"spec": {"backend": {"replicas": 3, "autoscaling": None}}})
        await cluster.settle()
        assert not await client.list(HorizontalPodAutoscaler, namespace=NAMESPACE)
        assert (await client.get(Deployment, BACKEND)).spec.replicas == 3


async def test_new_credentials_roll_the_proxy_once_and_nothing_else(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        before = {one.name: one for one in await client.list(Deployment, namespace=NAMESPACE)}
        await client.patch(Secret, f"{NAME}-oauth2", {"stringData": {"client-secret": "rotated"}})
        await cluster.settle()
        after = {one.name: one for one in await client.list(Deployment, namespace=NAMESPACE)}
        changed = {name for name, one in after.items() if one.metadata.generation != before[name].metadata.generation}
        assert changed == {PROXY}
        assert (after[PROXY].metadata.generation or 0) == (before[PROXY].metadata.generation or 0) + 1
        hashes = [(one.spec.template.metadata.annotations or {})[CONFIGURATION_HASH] for one in _pods(before, after)]
        assert hashes[0] != hashes[1]
        assert "rotated" not in str(after[PROXY])


def _pods(*states: dict[str, Deployment]) -> list[Any]:
    return [state[PROXY] for state in states]


async def test_fields_that_somebody_adds_to_a_child_are_reported(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        sidecar = {"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "proxy:1"}]}}}}
        somebody = client.using(field_manager="somebody")
        await somebody.patch(Deployment, BACKEND, sidecar, patch_type="strategic")
        await cluster.settle()
        found = find_condition((await app_of(client)).status.conditions, "ForeignFields")
        assert found is not None
        path = '.spec.template.spec.containers[name="sidecar"]'
        assert (found.status, found.message) == ("True", f"Deployment {path} by somebody")
