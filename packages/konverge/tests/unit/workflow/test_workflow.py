"""A workflow on the embedded cluster: order, repair, failures, removal, deletion, status."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from konverge import Client, Context, ObjectMeta, crd_for
from konverge.errors import NotFound
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import ConfigMap, Event
from konverge.objects import AnyObject, Resource, find_condition, is_ready, now
from konverge.workflow import CONFIGURATION_HASH, Component, ComponentPhase
from konverge_cluster.nodes import Behavior
from konverge_cluster.testing import TestCluster
from shops import Phase, Shop, ShopReconciler, operator, shop
from shops import workflow as shops


@asynccontextmanager
async def running(cluster: TestCluster) -> AsyncIterator[Client]:
    async with cluster.operator(operator()):
        yield cluster.client()


async def names(client: Client, kind: type[Resource]) -> set[str]:
    return {one.name for one in await client.list(kind, namespace="default") if one.name.startswith("web")}


async def phases_of(client: Client) -> dict[str, ComponentPhase]:
    return {one.name: one.phase for one in (await client.get(Shop, "web")).status.components}


async def test_components_are_created_in_the_order_of_their_dependencies(cluster: TestCluster) -> None:
    cluster.program(Behavior(image="database-*", ready_after=10), Behavior(image="backend-*", ready_after=10))
    async with running(cluster) as client:
        await client.create(shop())
        await cluster.settle()
        deployments = await client.list(Deployment, namespace="default")
        created = {one.name: one.metadata.creation_timestamp or now() for one in deployments}
        web = await client.get(Shop, "web")

    assert created["web-database"] < created["web-backend"] < created["web-frontend"]
    assert created["web-backend"] == created["web-search"]
    assert web.status.phase is Phase.RUNNING
    assert is_ready(web)
    assert [one.ready for one in web.status.components] == [True] * 5


async def test_independent_components_proceed_concurrently(cluster: TestCluster) -> None:
    both = asyncio.Barrier(2)  # passed only when two functions run at the same time

    async def meet(shop: Shop, ctx: Context) -> list[AnyObject]:
        await both.wait()
        return []

    def component(name: str) -> Component[Shop]:
        return Component(name, meet, kinds=(), needs=("first",))

    class Pair(ShopReconciler):
        workflow = replace(shops, components=(Component("first", _none, kinds=()), component("a"), component("b")))

    client = await cluster.install(crd_for(Shop))
    async with cluster.operator(Pair.workflow.builder().build(Pair())):
        await client.create(shop())
        await asyncio.sleep(10)
        assert (await client.get(Shop, "web")).status.phase is Phase.RUNNING


async def _none(shop: Shop, ctx: Context) -> list[AnyObject]:
    return []


async def test_a_component_waits_and_says_for_what(cluster: TestCluster) -> None:
    cluster.program(Behavior(image="database-*", never_ready=True))
    async with running(cluster) as client:
        await client.create(shop())
        await cluster.settle()
        web = await client.get(Shop, "web")

        assert await names(client, Deployment) == {"web-database"}
    backend = next(one for one in web.status.components if one.name == "backend")
    assert (backend.phase, backend.reason) == (ComponentPhase.WAITING, "DependencyNotReady")
    assert backend.message.startswith("waiting for database (Deployment web-database: ")
    assert web.status.message.startswith("waiting for database (Deployment web-database: ")
    conditions = web.status.conditions
    found = {one.type: one.status for one in conditions}
    assert found["Ready"] == found["DatabaseReady"] == found["Stalled"] == "False"
    assert found["Reconciling"] == "True"


async def test_a_created_component_is_kept_in_step_while_its_dependency_is_down(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(shop())
        await cluster.settle()
        cluster.program(Behavior(image="database-app:2", never_ready=True))
        await client.patch(Shop, "web", {"spec": {"image": "app:2"}})
        await cluster.settle()
        await client.delete(ConfigMap, "web-dashboard")
        await client.delete(Deployment, "web-frontend")
        await cluster.settle()

        frontend = await client.get(Deployment, "web-frontend")
        assert frontend.spec.template.spec.containers[0].image == "frontend-app:2"
        assert "web-dashboard" in await names(client, ConfigMap)
        assert (await phases_of(client))["database"] in (ComponentPhase.UPDATING, ComponentPhase.FAILED)


async def test_a_failing_component_does_not_stop_the_others(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(shop(broken="search"))
        await cluster.settle()
        web = await client.get(Shop, "web")

        assert await names(client, Deployment) == {"web-database", "web-backend", "web-frontend"}
        assert web.status.phase is Phase.FAILED
        assert web.status.message == "search: search is broken"
        assert (web.status.last_error, web.status.retry_count > 1) == ("search is broken", True)

        await client.patch(Shop, "web", {"spec": {"broken": ""}})
        await cluster.settle()
        web = await client.get(Shop, "web")
        assert (web.status.phase, web.status.last_error, web.status.retry_count) == (Phase.RUNNING, "", 0)


async def test_a_terminal_error_stalls_the_object(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(shop(broken="search!"))
        await cluster.settle()
        web = await client.get(Shop, "web")

    stalled = find_condition(web.status.conditions, "Stalled")
    assert stalled is not None
    assert (stalled.status, stalled.message) == ("True", "search: search is broken for good")


async def test_a_waiting_component_keeps_its_children(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(shop())
        await cluster.settle()
        await client.patch(Shop, "web", {"spec": {"password": False}})
        await cluster.settle()
        web = await client.get(Shop, "web")

        assert "web-frontend" in await names(client, Deployment)
        frontend = next(one for one in web.status.components if one.name == "frontend")
        assert (frontend.phase, frontend.reason, frontend.message) == (
            "Waiting",
            "PasswordMissing",
            "set spec.password",
        )
        assert web.status.last_error == ""


async def test_only_the_objects_of_a_component_are_pruned(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(shop(notes=3))
        await cluster.settle()
        await client.patch(Shop, "web", {"spec": {"notes": 1, "password": False}})
        await cluster.settle()

        assert await names(client, ConfigMap) == {"web-note-0", "web-dashboard"}


async def test_an_disabled_component_is_removed_and_comes_back(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(shop())
        await cluster.settle()
        await client.patch(Shop, "web", {"spec": {"monitoring": False}})
        await cluster.settle()
        web = await client.get(Shop, "web")
        assert await names(client, ConfigMap) == {"web-note-0"}
        assert [one.name for one in web.status.components] == ["database", "backend", "search", "frontend"]
        assert find_condition(web.status.conditions, "MonitoringReady") is None

        await client.patch(Shop, "web", {"spec": {"monitoring": True}})
        await cluster.settle()
        assert "web-dashboard" in await names(client, ConfigMap)


async def test_deletion_runs_in_reverse_order(cluster: TestCluster) -> None:
    cluster.program(Behavior(image="*", stops_after=5))
    async with running(cluster) as client:
        await client.create(shop())
        await cluster.settle()
        seen: list[set[str]] = []
        await client.delete(Shop, "web")
        for _ in range(40):
            found = await names(client, Deployment)
            if not seen or seen[-1] != found:
                seen.append(found)
            await asyncio.sleep(1)

        with pytest.raises(NotFound):
            await client.get(Shop, "web")
    database, backend, search, frontend = "web-database", "web-backend", "web-search", "web-frontend"
    assert seen[0] == {database, backend, search, frontend}
    assert seen[-2:] == [{database}, set()]
    assert all(backend in one for one in seen if frontend in one)


async def test_suspended_objects_are_observed_and_not_changed(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(shop())
        await cluster.settle()
        await client.patch(Shop, "web", {"spec": {"suspend": True, "image": "app:2"}})
        await cluster.settle()
        await client.delete(ConfigMap, "web-dashboard")
        await cluster.settle()
        web = await client.get(Shop, "web")

        assert "web-dashboard" not in await names(client, ConfigMap)
        assert (await client.get(Deployment, "web-backend")).spec.template.spec.containers[0].image == "backend-app:1"
        assert web.status.observed_generation == web.metadata.generation

        await client.patch(Shop, "web", {"spec": {"suspend": False}})
        await cluster.settle()
        assert "web-dashboard" in await names(client, ConfigMap)


async def test_a_protected_object_that_is_deleted_loses_nothing_until_it_is_released(cluster: TestCluster) -> None:
    class Kept(ShopReconciler):
        workflow = replace(shops, protected=lambda shop: "labelled keep" if "keep" in shop.metadata.labels else "")

    client = await cluster.install(crd_for(Shop))
    async with cluster.operator(Kept.workflow.builder().build(Kept())):
        await client.create(shop())
        await client.patch(Shop, "web", {"metadata": {"labels": {"keep": "yes"}}})
        await cluster.settle()
        before = await names(client, Deployment) | await names(client, ConfigMap)

        await client.delete(Shop, "web")
        await cluster.settle()
        await client.delete(Deployment, "web-frontend")
        await cluster.settle()
        web = await client.get(Shop, "web")
        assert before - (await names(client, Deployment) | await names(client, ConfigMap)) == {"web-frontend"}
        assert (web.status.phase, web.status.message) == (Phase.DELETING, "labelled keep")
        ready = find_condition(web.status.conditions, "Ready")
        assert ready is not None
        assert ready.status == "False"
        warnings = [one.reason for one in await client.list(Event, namespace="default") if one.type == "Warning"]
        assert "DeletionProtected" in warnings

        await client.patch(Shop, "web", {"metadata": {"labels": {"keep": None}}})
        await cluster.settle()
        with pytest.raises(NotFound):
            await client.get(Shop, "web")
        assert not await names(client, Deployment) | await names(client, ConfigMap)


async def test_a_change_of_the_configuration_rolls_the_pods_once(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(ConfigMap(metadata=ObjectMeta(name="settings"), data={"colour": "red"}))
        await client.create(shop(settings="settings"))
        await cluster.settle()
        first = await client.get(Deployment, "web-backend")

        await client.patch(ConfigMap, "settings", {"metadata": {"labels": {"new": "label"}}})
        await cluster.settle()
        assert (await client.get(Deployment, "web-backend")).metadata.generation == first.metadata.generation

        await client.patch(ConfigMap, "settings", {"data": {"colour": "blue"}})
        await cluster.settle()
        second = await client.get(Deployment, "web-backend")
    assert (second.metadata.generation or 0) == (first.metadata.generation or 0) + 1
    hashes = [hash_of(one) for one in (first, second)]
    assert hashes[0] != hashes[1]


def hash_of(deployment: Deployment) -> str:
    metadata = deployment.spec.template.metadata
    return (metadata.annotations if metadata else {})[CONFIGURATION_HASH]


async def test_nothing_is_written_at_rest(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(shop())
        await cluster.settle()
        before = (await client.get(Shop, "web")).resource_version
        await asyncio.sleep(600)
        assert (await client.get(Shop, "web")).resource_version == before


async def test_events_tell_the_story(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(shop())
        await cluster.settle()
        await client.patch(Shop, "web", {"spec": {"image": "app:2"}})
        await cluster.settle()
        events = await client.list(Event, namespace="default")
        told = {one.message for one in events if one.involved_object.kind == "Shop"}

    assert {"Database created", "Frontend created", "Frontend updated"} <= told
    assert "backend is ready" in told
    assert "AllReady" in told
