"""The Cache operator on the embedded cluster: children, password, updates, failures, deletion."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from konverge import Client, ObjectMeta, is_ready
from konverge.errors import NotFound
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Event, Pod, Secret, Service
from konverge.k8s.policy.v1 import PodDisruptionBudget
from konverge.objects import Resource, find_condition
from konverge.workflow import check_phases
from konverge_cluster.nodes import Behavior
from konverge_cluster.testing import TestCluster
from konverge_operators.redis.cache.api import Cache, CachePhase
from konverge_operators.redis.cache.reconciler import new_workflow
from konverge_operators.redis.operator import new_operator
from redis_servers import cache_sample

NAME = "sessions"


@asynccontextmanager
async def running(cluster: TestCluster) -> AsyncIterator[Client]:
    client = cluster.client()
    async with cluster.operator(new_operator()):
        await client.create(cache_sample())
        await cluster.settle()
        yield client


async def cache_of(client: Client) -> Cache:
    return await client.get(Cache, NAME)


def arguments(deployment: Deployment) -> list[str]:
    assert deployment.spec.template.spec is not None
    return deployment.spec.template.spec.containers[0].args or []


async def test_a_cache_becomes_ready_with_all_its_children(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        cache = await cache_of(client)
        secret = await client.get(Secret, NAME)
        deployment = await client.get(Deployment, NAME)
        service = await client.get(Service, NAME)
        await client.get(PodDisruptionBudget, NAME)
    status = cache.status
    assert (status.phase, status.ready_replicas, status.connection_secret) == (CachePhase.READY, 1, NAME)
    assert is_ready(cache)
    assert set(secret.data) == {"type", "host", "port", "username", "password", "database", "uri"}
    assert secret.data["uri"].decode() == f"redis://default:{secret.data['password'].decode()}@{NAME}:6379/0"
    assert (deployment.spec.replicas, deployment.spec.paused or False) == (1, False)
    assert service.spec.ports[0].port == 6379
    assert str(64 * 1024 * 1024) in arguments(deployment)
    assert secret.data["password"].decode() not in str(deployment)


async def test_the_sample_for_production_becomes_ready(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.create(cache_sample("cache-production.yaml"))
        await cluster.settle()
        assert (await client.get(Cache, "catalog")).status.phase is CachePhase.READY


@pytest.mark.parametrize("kind", [Deployment, Service, PodDisruptionBudget])
async def test_a_deleted_child_is_repaired(cluster: TestCluster, kind: type[Resource]) -> None:
    async with running(cluster) as client:
        before = await client.get(kind, NAME)
        await client.delete(kind, NAME)
        await cluster.settle()
        assert (await client.get(kind, NAME)).uid != before.uid
        assert (await cache_of(client)).status.phase is CachePhase.READY


async def test_an_edited_child_is_repaired(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.patch(Deployment, NAME, {"spec": {"replicas": 3, "paused": True}})
        await cluster.settle()
        deployment = await client.get(Deployment, NAME)
        assert (deployment.spec.replicas, deployment.spec.paused or False) == (1, False)


async def test_a_lost_password_is_reported_and_never_replaced(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        secret = await client.get(Secret, NAME)
        deployment = await client.get(Deployment, NAME)
        await client.delete(Secret, NAME)
        await cluster.settle()
        cache = await cache_of(client)
        condition = find_condition(cache.status.conditions, "Ready")
        assert cache.status.phase is CachePhase.DEGRADED
        assert condition is not None
        assert (condition.status, condition.reason) == ("False", "SecretMissing")
        with pytest.raises(NotFound):
            await client.get(Secret, NAME)
        assert (await client.get(Deployment, NAME)).metadata.generation == deployment.metadata.generation

        restored = Secret(metadata=ObjectMeta(name=NAME), data=secret.data)
        await client.create(restored)
        await cluster.settle()
        assert (await cache_of(client)).status.phase is CachePhase.READY
        assert (await client.get(Deployment, NAME)).metadata.generation == deployment.metadata.generation


async def test_a_new_password_rolls_the_server_once(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        before = (await client.get(Deployment, NAME)).metadata.generation or 0
        await client.patch(Secret, NAME, {"stringData": {"password": "changed"}})
        await cluster.settle()
        assert (await client.get(Deployment, NAME)).metadata.generation == before + 1
        assert (await cache_of(client)).status.phase is CachePhase.READY


async def test_a_secret_that_exists_is_used(cluster: TestCluster) -> None:
    client = cluster.client()
    async with cluster.operator(new_operator()):
        await client.create(Secret(metadata=ObjectMeta(name=NAME), string_data={"password": "mine"}))
        await client.create(cache_sample())
        await cluster.settle()
        assert (await cache_of(client)).status.phase is CachePhase.READY
        assert set((await client.get(Secret, NAME)).data) == {"password"}


async def test_a_server_that_fails_degrades_the_cache_until_it_is_back(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        cluster.program(Behavior(image="valkey/*", never_ready=True))
        for pod in await client.list(Pod, namespace="default"):
            await client.delete(pod)
        await cluster.settle()
        assert (await cache_of(client)).status.phase is CachePhase.DEGRADED
        cluster.nodes.clear_program()
        await cluster.settle()
        assert (await cache_of(client)).status.phase is CachePhase.READY


async def test_two_servers_never_serve_at_a_time(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.patch(Cache, NAME, {"spec": {"version": "8.2"}})
        await cluster.settle()
        deployment = await client.get(Deployment, NAME)
        assert deployment.spec.strategy is not None
        assert deployment.spec.strategy.type == "Recreate"
        events = {one.reason for one in await client.list(Event, namespace="default")}
        assert {"Updating", "Ready"} <= events
        assert (await cache_of(client)).status.phase is CachePhase.READY


async def test_suspend_changes_nothing(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        before = (await client.get(Deployment, NAME)).metadata.generation
        await client.patch(Cache, NAME, {"spec": {"suspend": True, "version": "8.2"}})
        await cluster.settle()
        assert (await client.get(Deployment, NAME)).metadata.generation == before
        assert (await cache_of(client)).status.phase is CachePhase.SUSPENDED


async def test_deletion_removes_everything(cluster: TestCluster) -> None:
    async with running(cluster) as client:
        await client.delete(Cache, NAME)
        await cluster.settle()
        for kind in (Cache, Deployment, Service, PodDisruptionBudget, Secret):
            with pytest.raises(NotFound):
                await client.get(kind, NAME)


def test_every_phase_is_reached_and_left() -> None:
    check_phases(new_workflow(), [cache_sample()])
