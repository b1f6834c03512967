"""Garbage collection on the embedded server, on virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import Client, crd_for
from konverge.errors import NotFound
from konverge.k8s.apiextensions.v1 import CustomResourceDefinition
from konverge.k8s.core.v1 import ConfigMap, Secret
from konverge.objects import AnyObject, ObjectMeta, OwnerReference, Resource
from konverge.testing import settle
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.garbage import GarbageCollector
from ownerships import Depot, Sprocket, SprocketSpec, client_of, collected_server, virtual_clock


def refer(owner: AnyObject, **more: Any) -> OwnerReference:
    return OwnerReference(api_version=owner.api_version, kind=owner.kind, name=owner.name, uid=owner.uid, **more)


async def make(client: Client, name: str, *owners: OwnerReference, kind: Any = ConfigMap, **meta: Any) -> Any:
    if kind.__kind__.namespaced:
        meta.setdefault("namespace", "default")
    obj = kind(metadata=ObjectMeta(name=name, owner_references=list(owners), **meta))
    if kind in (Sprocket, Depot):
        obj.spec = SprocketSpec()
    return await client.create(obj)


async def is_there(client: Client, obj: Resource) -> bool:
    try:
        found = await client.get(type(obj), obj.key)
    except NotFound:
        return False
    return found.uid == obj.uid


async def test_dependents_and_their_dependents_are_deleted_with_their_owner() -> None:
    async with collected_server() as (_, client):
        parent = await make(client, "parent")
        child = await make(client, "child", refer(parent), kind=Sprocket)
        grandchild = await make(client, "grandchild", refer(child), kind=Secret)

        await client.delete(parent)
        await settle()

        assert not await is_there(client, child)
        assert not await is_there(client, grandchild)


async def test_a_dependent_with_another_owner_stays_and_loses_the_reference() -> None:
    async with collected_server() as (_, client):
        one, other = await make(client, "one"), await make(client, "other")
        child = await make(client, "child", refer(one), refer(other))

        await client.delete(one)
        await settle()

        now = await client.get(ConfigMap, "child")
        assert now.uid == child.uid
        assert [owner.uid for owner in now.metadata.owner_references] == [other.uid]


async def test_a_dependent_of_an_absent_owner_is_deleted() -> None:
    async with collected_server() as (_, client):
        nobody = OwnerReference(api_version="v1", kind="ConfigMap", name="nobody", uid="no-such-uid")
        child = await make(client, "child", nobody)
        await settle()

        assert not await is_there(client, child)


async def test_a_dependent_of_an_owner_with_another_uid_is_deleted() -> None:
    async with collected_server() as (_, client):
        owner = await make(client, "owner")
        child = await make(client, "child", OwnerReference(api_version="v1", kind="ConfigMap", name="owner", uid="x"))
        await settle()

        assert not await is_there(client, child)
        assert await is_there(client, owner)


async def test_an_owner_in_another_namespace_counts_as_missing_and_an_event_says_so() -> None:
    async with collected_server() as (_, client):
        owner = await make(client, "owner", namespace="kube-public")
        await settle()
        child = await make(client, "child", refer(owner))
        await settle()

        assert not await is_there(client, child)
        (event,) = await client.list("events", namespace="default")
        assert (event["reason"], event["type"]) == ("OwnerRefInvalidNamespace", "Warning")
        meant = f"[v1/ConfigMap, namespace: default, name: owner, uid: {owner.uid}]"
        assert event["message"] == f'ownerRef {meant} does not exist in namespace "default"'
        assert event["involvedObject"]["uid"] == child.uid


async def test_a_cluster_scoped_object_with_a_namespaced_owner_is_left_alone() -> None:
    async with collected_server() as (_, client):
        owner = await make(client, "owner")
        depot = await make(client, "depot", refer(owner), kind=Depot)
        await client.delete(owner)
        await settle()

        assert await is_there(client, depot)


async def test_a_cluster_scoped_owner_may_have_dependents_in_every_namespace() -> None:
    async with collected_server() as (_, client):
        depot = await make(client, "depot", kind=Depot)
        children = [await make(client, "child", refer(depot), namespace=one) for one in ("default", "kube-public")]
        await settle()
        assert [await is_there(client, child) for child in children] == [True, True]

        await client.delete(depot)
        await settle()
        assert [await is_there(client, child) for child in children] == [False, False]


async def test_with_foreground_deletion_an_owner_stays_until_blocking_dependents_are_gone() -> None:
    async with collected_server() as (_, client):
        owner = await make(client, "owner")
        await make(client, "blocking", refer(owner, block_owner_deletion=True), finalizers=["test.konverge.dev/hold"])
        loose = await make(client, "loose", refer(owner), finalizers=["test.konverge.dev/hold"])

        await client.delete(owner, propagation="Foreground")
        await settle()
        assert (await client.get(ConfigMap, "owner")).metadata.finalizers == ["foregroundDeletion"]

        await client.patch(ConfigMap, "blocking", {"metadata": {"finalizers": None}})
        await settle()
        assert not await is_there(client, owner)
        assert (await client.get(ConfigMap, "loose")).metadata.deletion_timestamp is not None
        assert await is_there(client, loose)


async def test_foreground_deletion_applies_to_dependents_of_dependents() -> None:
    async with collected_server() as (_, client):
        owner = await make(client, "owner")
        child = await make(client, "child", refer(owner, block_owner_deletion=True))
        hold = {"finalizers": ["test.konverge.dev/hold"]}
        await make(client, "grandchild", refer(child, block_owner_deletion=True), **hold)

        await client.delete(owner, propagation="Foreground")
        await settle()
        assert (await client.get(ConfigMap, "child")).metadata.finalizers == ["foregroundDeletion"]
        assert await is_there(client, owner)

        await client.patch(ConfigMap, "grandchild", {"metadata": {"finalizers": None}})
        await settle()
        assert list(await client.list(ConfigMap, namespace="default")) == []


async def test_orphans_stay_and_lose_the_reference() -> None:
    async with collected_server() as (_, client):
        owner = await make(client, "owner")
        child = await make(client, "child", refer(owner), kind=Sprocket)

        await client.delete(owner, propagation="Orphan")
        await settle()

        assert not await is_there(client, owner)
        assert (await client.get(Sprocket, child.key)).metadata.owner_references == []


@pytest.mark.parametrize("policy", ["Foreground", "Background"])
async def test_a_cycle_is_deleted_when_one_of_its_members_is(policy: Any) -> None:
    async with collected_server() as (_, client):
        first = await make(client, "first")
        second = await make(client, "second", refer(first, block_owner_deletion=True))
        third = await make(client, "third", refer(second, block_owner_deletion=True))
        back = {"ownerReferences": [{**_wire(third), "blockOwnerDeletion": True}]}
        await client.patch(ConfigMap, "first", {"metadata": back})
        await settle()

        await client.delete(first, propagation=policy)
        await asyncio.sleep(60)

        assert [one.name for one in await client.list(ConfigMap, namespace="default")] == []


def _wire(owner: AnyObject) -> dict[str, str]:
    return {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}


async def test_kinds_are_monitored_as_their_definitions_are_added_and_deleted() -> None:
    server = EmbeddedServer(clock=virtual_clock, seed=1)
    client = client_of(server)
    async with GarbageCollector(client_of(server)).running() as collector:
        await settle()
        before = set(collector.kinds)
        await client.create(crd_for(Sprocket))
        await asyncio.sleep(5)
        assert {kind.kind for kind in set(collector.kinds) - before} == {"Sprocket"}

        owner = await make(client, "owner", kind=Sprocket)
        child = await make(client, "child", refer(owner))
        await client.delete(CustomResourceDefinition, "sprockets.own.konverge.dev")
        await asyncio.sleep(5)

        assert set(collector.kinds) == before
        assert not await is_there(client, child)


async def test_dependents_of_an_owner_of_an_unknown_kind_stay() -> None:
    async with collected_server() as (_, client):
        owner = OwnerReference(api_version="no.such/v1", kind="Nothing", name="x", uid="y")
        child = await make(client, "child", owner)
        await asyncio.sleep(300)

        assert await is_there(client, child)


async def test_objects_orphaned_by_a_crash_are_collected_after_a_restart() -> None:
    server = EmbeddedServer(clock=virtual_clock, seed=1)
    client = client_of(server)
    owner = await make(client, "owner")
    child = await make(client, "child", refer(owner))
    await client.delete(owner)
    async with GarbageCollector(client_of(server)).running():
        await settle()
        assert not await is_there(client, child)
