"""The Database operator on the embedded cluster with an engine in memory: creation, scaling, updates, failures."""

from __future__ import annotations

import asyncio

import pytest

from databases import NAME, World, check_rules, running
from konverge import is_ready
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import ConfigMap, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount
from konverge.k8s.networking.v1 import NetworkPolicy
from konverge.k8s.policy.v1 import PodDisruptionBudget
from konverge.k8s.rbac.v1 import Role, RoleBinding
from konverge.objects import Resource, find_condition
from konverge_cluster.nodes import Behavior
from konverge_cluster.testing import TestCluster
from konverge_operators.database.api import Database, Phase

pytestmark = pytest.mark.plain_loop  # asyncio's debug mode takes two thirds of the time


async def names(world: World, kind: type[Resource]) -> set[str]:
    return {one.name for one in await world.client.list(kind, namespace="default")}


async def images(world: World) -> set[str]:
    pods = await world.client.list(Pod, namespace="default")
    return {pod.spec.containers[0].image or "" for pod in pods}


async def test_a_database_becomes_ready_member_by_member(cluster: TestCluster) -> None:
    cluster.program(Behavior(image="*", ready_after=5))
    async with running(cluster) as world:
        await world.create(replicas=3)
        status = await world.status()
        assert status.phase is Phase.READY
        assert (status.primary, status.ready_replicas, status.version) == (f"{NAME}-0", 3, "18.6")
        assert [(one.name, one.role) for one in status.members] == [
            (f"{NAME}-0", "primary"),
            (f"{NAME}-1", "replica"),
            (f"{NAME}-2", "replica"),
        ]
        assert is_ready(await world.get())
        pods = await world.client.list(Pod, namespace="default")
        starts = [pod.metadata.creation_timestamp for pod in sorted(pods, key=lambda pod: pod.name)]
        assert len(set(starts)) == 3
        assert await world.write()


async def test_the_children(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create()
        assert await names(world, StatefulSet) == {NAME}
        assert await names(world, Service) >= {NAME, f"{NAME}-rw", f"{NAME}-ro"}
        assert await names(world, Secret) == {f"{NAME}-superuser", f"{NAME}-replication", f"{NAME}-app"}
        assert await names(world, PersistentVolumeClaim) == {f"data-{NAME}-0"}
        assert f"{NAME}-engine" in await names(world, ConfigMap)
        single: tuple[type[Resource], ...] = (ServiceAccount, Role, RoleBinding, PodDisruptionBudget, NetworkPolicy)
        for kind in single:
            assert NAME in await names(world, kind)
        secret = await world.client.get(Secret, f"{NAME}-app", namespace="default")
        assert set(secret.data) == {"type", "host", "port", "username", "password", "database", "uri"}
        assert secret.data["host"] == f"{NAME}-rw".encode()
        live = await world.stateful_set()
        assert (live.spec.pod_management_policy, live.spec.replicas) == ("Parallel", 1)


async def test_scaling_out_and_in_moves_the_primary_first(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create()
        assert (await world.change(replicas=3)).ready_replicas == 3
        status = await world.change({"example.com/switchover": f"{NAME}-2"})
        assert status.primary == f"{NAME}-2"
        status = await world.change(replicas=1)
        assert (status.phase, status.primary, status.ready_replicas) == (Phase.READY, f"{NAME}-0", 1)
        assert await names(world, Pod) == {f"{NAME}-0"}
        assert f"SwitchingOver: to {NAME}-0: {NAME}-2 is removed" in await world.events()


async def test_a_minor_update_replaces_the_primary_last(cluster: TestCluster) -> None:
    cluster.program(Behavior(image="*", ready_after=5))
    async with running(cluster) as world:
        await world.create(replicas=3, version="18.4")
        assert await images(world) == {"memory:18.4"}
        before = {pod.name: pod.uid for pod in await world.client.list(Pod, namespace="default")}
        await world.edit(version="18.6")
        await asyncio.sleep(4)
        assert (await world.status()).phase is Phase.UPDATING
        await world.settle()
        status = await world.status()
        assert (status.phase, status.version, status.primary) == (Phase.READY, "18.6", f"{NAME}-1")
        pods = sorted(
            await world.client.list(Pod, namespace="default"), key=lambda pod: pod.metadata.creation_timestamp or 0
        )
        assert [pod.name for pod in pods] == [f"{NAME}-2", f"{NAME}-1", f"{NAME}-0"]
        assert not {pod.uid for pod in pods} & set(before.values())


async def test_an_update_that_fails_stops_and_can_be_taken_back(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=3, version="18.4")
        cluster.program(Behavior(image="memory:18.5", never_ready=True))
        await world.edit(version="18.5")
        await asyncio.sleep(300)
        status = await world.status()
        assert (status.phase, status.ready_replicas, status.primary) == (Phase.UPDATING, 2, f"{NAME}-0")
        await asyncio.sleep(400)
        assert (await world.status()).message == f"{NAME}-2 is not ready in the new version"
        assert (await world.status()).phase is Phase.DEGRADED
        assert await world.write()
        status = await world.change(version="18.6")
        assert (status.phase, status.ready_replicas, status.version) == (Phase.READY, 3, "18.6")


async def test_a_restart_replaces_every_pod_once(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=2)
        before = {pod.uid for pod in await world.client.list(Pod, namespace="default")}
        status = await world.change({"example.com/restart": "2026-11-16"})
        after = {pod.uid for pod in await world.client.list(Pod, namespace="default")}
        assert status.phase is Phase.READY
        assert len(after) == 2
        assert not before & after


async def test_parameters_change_in_place_or_with_a_restart(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=2)
        before = {pod.uid for pod in await world.client.list(Pod, namespace="default")}
        status = await world.change(parameters={"work_mem": "8MB", "max_connections": "50"})
        assert status.phase is Phase.READY
        assert {pod.uid for pod in await world.client.list(Pod, namespace="default")} == before
        restarted = [one for one in await world.events() if one.startswith("MemberRestarted")]
        assert len(restarted) == 2


async def test_the_primary_is_lost(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=3)
        assert await world.write()
        cluster.program(Behavior(image="*", ready_after=30))
        await world.client.delete(Pod, f"{NAME}-0", namespace="default")
        await asyncio.sleep(5)
        assert (await world.status()).phase is Phase.FAILING_OVER
        await world.settle()
        status = await world.status()
        assert (status.phase, status.primary) == (Phase.READY, f"{NAME}-1")
        assert f"FailedOver: {NAME}-1 accepts writes" in await world.events()
        assert await world.write()


async def lose_claim(world: World, member: str) -> None:
    """Delete the claim of a member at once, while its pod uses it."""
    claim = f"data-{member}"
    await world.client.delete(PersistentVolumeClaim, claim, namespace="default")
    change = {"metadata": {"finalizers": None}}
    await world.client.patch(PersistentVolumeClaim, claim, change, namespace="default")


async def test_a_replica_whose_claim_is_lost_is_created_again_with_a_new_one(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=3)
        assert await world.write()
        before = await world.client.get(Pod, f"{NAME}-1", namespace="default")
        await lose_claim(world, f"{NAME}-1")
        await world.settle()
        assert (await world.status()).phase is Phase.READY
        after = await world.client.get(Pod, f"{NAME}-1", namespace="default")
        assert after.uid != before.uid
        assert f"data-{NAME}-1" in await names(world, PersistentVolumeClaim)
        assert f"MemberReplaced: {NAME}-1 is created again with a new claim, as its own is lost" in await world.events()
        assert await world.write()


async def test_after_the_claim_of_the_primary_is_lost_another_member_leads(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=2)
        assert await world.write()
        await lose_claim(world, f"{NAME}-0")
        await world.settle()
        status = await world.status()
        assert (status.phase, status.primary) == (Phase.READY, f"{NAME}-1")
        assert sum(world.engine.initializations.values()) == 1
        assert await world.write()


async def test_the_lost_claim_of_an_only_member_is_never_initialised_again(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create()
        await lose_claim(world, f"{NAME}-0")
        await asyncio.sleep(300)
        status = await world.status()
        assert (status.phase, status.primary) == (Phase.DEGRADED, "")
        assert sum(world.engine.initializations.values()) == 1


async def test_hibernation_and_resumption_start_all_members_together(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=3)
        assert await world.write()
        status = await world.change(hibernate=True)
        assert (status.phase, await names(world, Pod)) == (Phase.HIBERNATED, set())
        assert len(await names(world, PersistentVolumeClaim)) == 3
        status = await world.change(hibernate=False, replicas=1)
        assert "Scaled: from 0 to 3 members" in await world.events()  # any of the three may have the newest data
        assert (status.phase, status.ready_replicas) == (Phase.READY, 1)
        assert await world.write()
        assert sum(world.engine.initializations.values()) == 1


@pytest.mark.parametrize("name", ["app", "superuser", "replication"])
async def test_a_deleted_secret_is_reported_and_never_replaced(cluster: TestCluster, name: str) -> None:
    async with running(cluster) as world:
        await world.create()
        secret = await world.client.get(Secret, f"{NAME}-{name}", namespace="default")
        await world.delete(secret)
        await asyncio.sleep(60)
        status = await world.status()
        assert status.phase is Phase.DEGRADED
        assert status.message.startswith(f"create the Secret {NAME}-{name} again")
        stalled = find_condition(status.conditions, "Stalled")
        assert stalled is not None
        assert (stalled.status, stalled.reason) == ("True", "CredentialsMissing")
        assert f"{NAME}-{name}" not in await names(world, Secret)

        secret.metadata.resource_version, secret.metadata.uid = None, None
        await world.client.create(secret)
        await world.settle()
        assert (await world.status()).phase is Phase.READY


async def test_suspend_changes_nothing(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create()
        status = await world.change(suspend=True, replicas=3)
        assert (status.phase, status.ready_replicas) == (Phase.SCALING, 1)
        assert len(await names(world, Pod)) == 1
        assert (await world.change(suspend=False)).ready_replicas == 3


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"version": "99"}, "version 99 is not known: use one of 18, 17, 13, with or without a minor"),
        ({"version": "18.6.1"}, "version 18.6.1 does not exist: 18 has minors with one number, such as 18.6"),
        ({"parameters": {"port": "1"}}, "parameters.port: the operator sets it"),
    ],
)
async def test_what_the_engine_refuses_fails(cluster: TestCluster, spec: dict[str, object], message: str) -> None:
    async with running(cluster) as world:
        await world.create(**spec)
        status = await world.status()
        assert (status.phase, status.message) == (Phase.FAILED, message)
        assert not await names(world, Secret)
        assert not await names(world, StatefulSet)


async def test_a_mistake_in_the_spec_leaves_the_database_serving(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create()
        status = await world.change(parameters={"port": "1"})
        assert (status.phase, status.primary) == (Phase.DEGRADED, f"{NAME}-0")
        assert (await world.change(parameters={"port": None})).phase is Phase.READY


async def test_a_database_without_nodes_fails_and_recovers(cluster: TestCluster) -> None:
    cluster.program(Behavior(image="memory:18.6", never_ready=True))
    async with running(cluster) as world:
        await world.create()
        await asyncio.sleep(1000)
        status = await world.status()
        assert status.phase is Phase.FAILED
        assert status.message.startswith("not ready after 15 min")
        assert (await world.change(version="18.7")).phase is Phase.READY


async def test_a_deleted_child_is_created_again(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=2)
        await world.client.delete(StatefulSet, NAME, namespace="default")
        await world.client.delete(Service, f"{NAME}-rw", namespace="default")
        await world.settle()
        status = await world.status()
        assert (status.phase, status.ready_replicas) == (Phase.READY, 2)
        assert f"{NAME}-rw" in await names(world, Service)
        assert sum(world.engine.initializations.values()) == 1


async def test_the_rules_hold_without_a_webhook(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await check_rules(world.client, "default")


async def test_the_scale_subresource(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create()
        await world.client.scale(Database, NAME, 2, namespace="default")
        await world.settle()
        assert (await world.status()).ready_replicas == 2
