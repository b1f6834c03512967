"""Operations on a Database: switchover, password rotation, growing storage, deletion."""

from __future__ import annotations

import asyncio

import pytest

from databases import NAME, World, running, storage_class
from konverge.errors import Invalid, NotFound
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod, Secret
from konverge.k8s.storage.v1 import StorageClass
from konverge.objects import find_condition
from konverge_cluster.testing import TestCluster
from konverge_operators.database.api import Database, Phase

pytestmark = pytest.mark.plain_loop


async def secret_of(world: World, name: str) -> dict[str, str]:
    secret = await world.client.get(Secret, f"{NAME}-{name}", namespace="default")
    return {key: value.decode() for key, value in secret.data.items()}


async def sizes(world: World) -> list[str]:
    claims = await world.client.list(PersistentVolumeClaim, namespace="default")
    return [str((one.status.capacity or {}).get("storage")) for one in claims]


async def test_a_switchover_on_request_is_done_once(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=3)
        status = await world.change({"example.com/switchover": "any"})
        assert (status.primary, status.switchover_from) == (f"{NAME}-1", "")
        assert "example.com/switchover" not in (await world.get()).metadata.annotations
        assert f"SwitchedOver: {NAME}-1 is the primary" in await world.events()
        assert world.engine.timeline_of(await world.get()) == 2


@pytest.mark.parametrize("request_", ["other-1", "any"])
async def test_a_switchover_that_is_not_possible_is_refused(cluster: TestCluster, request_: str) -> None:
    async with running(cluster) as world:
        await world.create()
        status = await world.change({"example.com/switchover": request_})
        assert (status.primary, status.phase) == (f"{NAME}-0", Phase.READY)
        assert "example.com/switchover" not in (await world.get()).metadata.annotations
        assert any(one.startswith("SwitchoverRefused") for one in await world.events())


async def test_a_rotated_password_and_the_old_one_are_both_valid_for_a_while(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        created = await world.create()
        before = await secret_of(world, "app")
        await world.edit({"example.com/rotate-password": "1"})
        await asyncio.sleep(60)
        after = await secret_of(world, "app")
        assert (before["username"], after["username"]) == ("app", "app_2")
        assert before["password"] != after["password"]
        assert after["uri"] == f"memory://app_2:{after['password']}@{NAME}-rw:5432/app"
        assert world.engine.logins_of(created) >= {"app", "app_2"}
        assert await world.write()
        await asyncio.sleep(660)
        assert "app" not in world.engine.logins_of(created)
        assert await secret_of(world, "app") == after
        with pytest.raises(NotFound):
            await secret_of(world, "app-next")

        await world.edit({"example.com/rotate-password": "2"})
        await asyncio.sleep(60)
        assert (await secret_of(world, "app"))["username"] == "app"
        assert await world.write()


async def test_storage_grows_without_a_restart(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.client.create(storage_class())
        await world.create(replicas=2, storageClassName="fast")
        pods = {pod.uid for pod in await world.client.list(Pod, namespace="default")}
        before = (await world.stateful_set()).uid
        status = await world.change(storageSize="2Gi")
        assert (status.phase, status.storage) == (Phase.READY, "2Gi")
        assert await sizes(world) == ["2Gi", "2Gi"]
        after = await world.stateful_set()
        assert after.uid != before
        assert after.spec.replicas == 2
        assert {pod.uid for pod in await world.client.list(Pod, namespace="default")} == pods
        assert (await world.change(replicas=3)).phase is Phase.READY
        assert await sizes(world) == ["2Gi", "2Gi", "2Gi"]
        with pytest.raises(Invalid, match="the storage cannot become smaller"):
            await world.edit(storageSize="1Gi")


async def test_a_class_that_cannot_grow_is_reported(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.client.create(storage_class())
        await world.client.patch(StorageClass, "fast", {"allowVolumeExpansion": False})
        await world.create(storageClassName="fast")
        status = await world.change(storageSize="2Gi")
        message = "the storage class fast does not allow expansion"
        assert (status.phase, status.message, status.primary) == (Phase.DEGRADED, message, f"{NAME}-0")
        stalled = find_condition(status.conditions, "Stalled")
        assert stalled is not None
        assert stalled.reason == "StorageCannotGrow"
        assert await sizes(world) == ["1Gi"]

        await world.client.patch(StorageClass, "fast", {"allowVolumeExpansion": True})
        await asyncio.sleep(60)
        assert ((await world.status()).phase, await sizes(world)) == (Phase.READY, ["2Gi"])


async def test_deletion_keeps_the_data_and_another_database_finds_it(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=2)
        assert await world.write()
        password = await secret_of(world, "app")
        await world.client.delete(Database, NAME, namespace="default")
        await world.settle()
        kept = f"kept: data-{NAME}-0, data-{NAME}-1, {NAME}-superuser, {NAME}-replication, {NAME}-app"
        assert f"DataRetained: {kept}" in await world.events()
        assert not len(await world.client.list(StatefulSet, namespace="default"))
        assert not len(await world.client.list(Pod, namespace="default"))
        assert await sizes(world) == ["1Gi", "1Gi"]

        await world.create(replicas=2)
        status = await world.status()
        assert (status.phase, status.ready_replicas) == (Phase.READY, 2)
        assert await secret_of(world, "app") == password
        assert await world.write()
        assert sum(world.engine.initializations.values()) == 1


async def test_retained_data_of_another_engine_is_not_touched(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create()
        await world.client.delete(Database, NAME, namespace="default")
        await world.settle()
        secret = await world.client.get(Secret, f"{NAME}-app", namespace="default")
        secret.data["type"] = b"mysql"
        secret = await world.client.update(secret)
        await world.create()
        status = await world.status()
        message = f"the Secret {NAME}-app is that of data of mysql: use another name, or delete it with its claims"
        assert (status.primary, status.message) == ("", message)
        assert not len(await world.client.list(StatefulSet, namespace="default"))
        assert await world.client.get(Secret, secret.name, namespace="default") == secret


async def test_deletion_by_policy_deletes_everything(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(replicas=2, deletionPolicy="Delete")
        await world.client.delete(Database, NAME, namespace="default")
        await world.settle()
        for kind in (Database, StatefulSet, Pod, PersistentVolumeClaim, Secret):
            assert not len(await world.client.list(kind, namespace="default")), kind


async def test_a_protected_database_goes_on_until_the_annotation_is_removed(cluster: TestCluster) -> None:
    async with running(cluster) as world:
        await world.create(deletionPolicy="Delete")
        await world.edit({"example.com/protected": "true"})
        await world.client.delete(Database, NAME, namespace="default")
        await asyncio.sleep(120)
        status = await world.status()
        assert (status.phase, status.primary) == (Phase.DELETING, f"{NAME}-0")
        assert await world.write()
        await world.edit({"example.com/protected": None})
        await world.settle()
        assert not len(await world.client.list(PersistentVolumeClaim, namespace="default"))
