"""The EcommerceApp operator on the embedded cluster: the sample, its parts, failures, updates, deletion."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from konverge import Client, is_ready
from konverge.errors import NotFound
from konverge.k8s.apps.v1 import Deployment, StatefulSet
from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import ConfigMap, Event, PersistentVolumeClaim, Secret, Service
from konverge.k8s.networking.v1 import Ingress, NetworkPolicy
from konverge.k8s.policy.v1 import PodDisruptionBudget
from konverge.objects import Resource, find_condition, now
from konverge.workflow import check_phases
from konverge_cluster.nodes import Behavior
from konverge_cluster.testing import TestCluster
from konverge_operators.ecommerce.api import EcommerceApp, Phase
from konverge_operators.ecommerce.operator import new_operator, workflow
from konverge_operators.protection import PROTECTED
from shop_apps import NAME, NAMESPACE, credentials, prepare, sample

pytestmark = pytest.mark.plain_loop  # asyncio's debug mode takes two thirds of the time

FRONTEND, BACKEND, DATABASE = f"{NAME}-frontend", f"{NAME}-backend", f"{NAME}-database"


@asynccontextmanager
async def running(cluster: TestCluster, *, configured: bool = True) -> AsyncIterator[Client]:
    client = cluster.client()
    await prepare(client, configured=configured)
    async with cluster.operator(new_operator()):
        yield client


async def app_of(client: Client) -> EcommerceApp:
    return await client.get(EcommerceApp, NAME, namespace=NAMESPACE)


async def names(client: Client, kind: type[Resource]) -> set[str]:
    return {one.name for one in await client.list(kind, namespace=NAMESPACE)}


async def messages(client: Client) -> set[str]:
    events = await client.list(Event, namespace=NAMESPACE)
    return {one.message or "" for one in events if one.involved_object.kind == "EcommerceApp"}


async def test_the_sample_reaches_running_in_the_order_of_its_dependencies(cluster: TestCluster) -> None:
    cluster.program(Behavior(image="*", ready_after=5))
    async with running(cluster) as client:
        await client.create(sample())
        await cluster.settle()
        app = await app_of(client)
        created = {
            one.name: one.metadata.creation_timestamp or now()
            for kind in (StatefulSet, Deployment, Ingress, ConfigMap)
            for one in await client.list(kind, namespace=NAMESPACE)
        }
        told = await messages(client)

    assert (app.status.phase, app.status.message) == (Phase.RUNNING, "Application is running")
    assert is_ready(app)
    assert [one.name for one in app.status.components] == ["database", "backend", "frontend", "ingress", "monitoring"]
    order = [created[name] for name in (DATABASE, BACKEND, FRONTEND, NAME)]
    assert order == sorted(set(order))
    assert created[FRONTEND] < created[f"{NAME}-dashboard"]
    assert {"Database created", "Backend deployment created", "Frontend deployment created"} <= told


async def test_the_children_of_the_sample(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(sample())
        await cluster.settle()

        assert await names(client, StatefulSet) == {DATABASE}
        assert await names(client, Deployment) == {BACKEND, FRONTEND, f"{NAME}-oauth2-proxy"}
        assert await names(client, PodDisruptionBudget) == {BACKEND, FRONTEND}
        assert await names(client, NetworkPolicy) == {BACKEND, DATABASE}
        assert await names(client, PersistentVolumeClaim) == {f"data-{DATABASE}-0", f"{DATABASE}-backup"}
        assert {f"{NAME}-tls", f"{NAME}-oauth2-cookie", DATABASE} <= await names(client, Secret)
        frontend = await client.get(Deployment, FRONTEND, namespace=NAMESPACE)
        assert frontend.spec.replicas == 3
        ingress = await client.get(Ingress, NAME, namespace=NAMESPACE)
        assert ingress.spec.rules[0].http is not None
        backend = ingress.spec.rules[0].http.paths[0].backend.service
        assert backend is not None
        assert backend.name == f"{NAME}-oauth2-proxy"
        secret = await client.get(Secret, DATABASE, namespace=NAMESPACE)
        assert set(secret.data) == {"type", "host", "port", "username", "password", "database", "uri"}
        service = await client.get(Service, FRONTEND, namespace=NAMESPACE)
        assert (service.metadata.annotations or {})["prometheus.io/scrape"] == "true"


async def test_without_credentials_nothing_is_exposed(cluster: TestCluster) -> None:
    async with running(cluster, configured=False) as client:
        await client.create(sample())
        await cluster.settle()
        await asyncio.sleep(2 * 900)  # the progress deadline does not run while configuration is missing
        app = await app_of(client)
        ingress = next(one for one in app.status.components if one.name == "ingress")

        assert (ingress.phase, ingress.reason) == ("Waiting", "AuthenticationNotConfigured")
        assert not await names(client, Ingress)
        assert f"{NAME}-oauth2-proxy" not in await names(client, Deployment)
        assert app.status.phase is Phase.CREATING

        await client.create(credentials())
        await cluster.settle()
        assert (await app_of(client)).status.phase is Phase.RUNNING


@pytest.mark.parametrize(
    ("kind", "name"),
    [(Deployment, BACKEND), (Deployment, FRONTEND), (StatefulSet, DATABASE), (Ingress, NAME), (Service, BACKEND)],
)
async def test_a_deleted_child_is_repaired(cluster: TestCluster, kind: type[Resource], name: str) -> None:
    async with running(cluster) as client:
        await client.create(sample())
        await cluster.settle()
        before = await client.get(kind, name, namespace=NAMESPACE)
        await client.delete(kind, name, namespace=NAMESPACE)
        await cluster.settle()

        assert (await client.get(kind, name, namespace=NAMESPACE)).uid != before.uid
        assert (await app_of(client)).status.phase is Phase.RUNNING


async def test_an_edited_child_is_repaired(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(sample())
        await cluster.settle()
        await client.patch(Deployment, BACKEND, {"spec": {"replicas": 7, "paused": True}}, namespace=NAMESPACE)
        await cluster.settle()
        backend = await client.get(Deployment, BACKEND, namespace=NAMESPACE)
        assert (backend.spec.replicas, backend.spec.paused or False) == (2, False)


async def test_a_failing_database_degrades_the_application_and_nothing_else_is_written(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(sample())
        await cluster.settle()
        before = {one.name: one.metadata.generation for one in await client.list(Deployment, namespace=NAMESPACE)}
        cluster.program(Behavior(image="postgres:*", never_ready=True))
        await client.delete("pods", f"{DATABASE}-0", namespace=NAMESPACE)
        await cluster.settle()
        app = await app_of(client)

        assert app.status.phase is Phase.DEGRADED
        assert app.status.message.startswith("waiting for database (StatefulSet")
        after = {one.name: one.metadata.generation for one in await client.list(Deployment, namespace=NAMESPACE)}
        assert after == before


async def test_monitoring_is_removed_when_it_is_switched_off(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(sample())
        await cluster.settle()
        await client.patch(EcommerceApp, NAME, {"spec": {"monitoring": {"enabled": False}}}, namespace=NAMESPACE)
        await cluster.settle()
        assert f"{NAME}-dashboard" not in await names(client, ConfigMap)
        app = await app_of(client)
        assert find_condition(app.status.conditions, "MonitoringReady") is None
        assert app.status.phase is Phase.RUNNING


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"backend": {"image": "ecommerce-backend:v3"}}, "ImageUpdate"),
        ({"frontend": {"replicas": 5}}, "Scaling"),
        ({"backend": {"port": 9090}}, "ConfigurationUpdate"),
    ],
)
async def test_an_update_has_a_reason(cluster: TestCluster, change: dict[str, object], reason: str) -> None:
    async with running(cluster) as client:
        await client.create(sample())
        await cluster.settle()
        cluster.program(Behavior(image="ecommerce-*", ready_after=20))
        await client.patch(EcommerceApp, NAME, {"spec": change}, namespace=NAMESPACE)
        await asyncio.sleep(10)
        status = (await app_of(client)).status
        assert (status.phase, status.reason) == (Phase.UPDATING, reason)
        await cluster.settle(quiet=120)
        status = (await app_of(client)).status
        assert (status.phase, status.reason) == (Phase.RUNNING, "")
        assert any(one.startswith(f"{reason}: ") for one in await messages(client))


async def test_a_component_that_never_becomes_ready_fails_the_application(cluster: TestCluster) -> None:
    cluster.program(Behavior(image="postgres:*", never_ready=True))
    async with running(cluster) as client:
        await client.create(sample())
        await asyncio.sleep(960)
        app = await app_of(client)
        assert app.status.phase is Phase.FAILED
        assert app.status.message.startswith("database is not ready after 900 s")


async def test_a_restart_is_requested_by_annotation(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(sample())
        await cluster.settle()
        before = (await client.get(Deployment, BACKEND, namespace=NAMESPACE)).metadata.generation or 0
        annotation = {"metadata": {"annotations": {"ecommerce.io/image-updated": "true"}}}
        await client.patch(EcommerceApp, NAME, annotation, namespace=NAMESPACE)
        await cluster.settle()
        app = await app_of(client)

        assert "ecommerce.io/image-updated" not in (app.metadata.annotations or {})
        assert (await client.get(Deployment, BACKEND, namespace=NAMESPACE)).metadata.generation == before + 1
        assert not app.status.restart_pending


async def test_failed_migrations_leave_the_old_backend_serving(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(sample(backend={"migrations": {"command": ["migrate"]}}))
        await cluster.settle()
        assert (await app_of(client)).status.phase is Phase.RUNNING
        assert len(await names(client, Job)) == 1

        cluster.program(Behavior(image="ecommerce-backend:v3", container="migrations", crashes=-1))
        change = {"spec": {"backend": {"image": "ecommerce-backend:v3"}}}
        await client.patch(EcommerceApp, NAME, change, namespace=NAMESPACE)
        await cluster.settle(quiet=120)
        backend = await client.get(Deployment, BACKEND, namespace=NAMESPACE)
        assert backend.spec.template.spec is not None
        assert backend.spec.template.spec.containers[0].image == "ecommerce-backend:v2.0.0"
        assert (await app_of(client)).status.phase is Phase.DEGRADED


async def test_deletion_in_reverse_order_keeps_the_claims(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(sample())
        await cluster.settle()
        await client.delete(EcommerceApp, NAME, namespace=NAMESPACE)
        await cluster.settle()
        with pytest.raises(NotFound):
            await app_of(client)
        assert not await names(client, Deployment) | await names(client, StatefulSet)
        assert await names(client, PersistentVolumeClaim) == {f"data-{DATABASE}-0", f"{DATABASE}-backup"}
        assert f"the data is kept in data-{DATABASE}-0, {DATABASE}-backup" in await messages(client)


async def test_a_protected_application_goes_on_until_the_annotation_is_removed(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        app = sample()
        app.metadata.annotations = {PROTECTED: "true"}
        await client.create(app)
        await cluster.settle()
        before = await names(client, Deployment)
        await client.delete(EcommerceApp, NAME, namespace=NAMESPACE)
        await cluster.settle()
        assert await names(client, Deployment) == before
        status = (await app_of(client)).status
        assert (status.phase, PROTECTED in status.message) == (Phase.DELETING, True)

        released = {"metadata": {"annotations": {PROTECTED: None}}}
        await client.patch(EcommerceApp, NAME, released, namespace=NAMESPACE)
        await cluster.settle()
        with pytest.raises(NotFound):
            await app_of(client)


async def test_suspend_changes_nothing(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(sample())
        await cluster.settle()
        change = {"spec": {"suspend": True, "backend": {"image": "ecommerce-backend:v3"}}}
        await client.patch(EcommerceApp, NAME, change, namespace=NAMESPACE)
        await cluster.settle()
        backend = await client.get(Deployment, BACKEND, namespace=NAMESPACE)
        assert backend.spec.template.spec is not None
        assert backend.spec.template.spec.containers[0].image == "ecommerce-backend:v2.0.0"
        assert (await app_of(client)).status.phase is Phase.SUSPENDED


def test_every_phase_is_reached_and_left() -> None:
    ran = sample()
    ran.status.last_running.images = {"backend": "x"}
    check_phases(workflow, [sample(), ran])
