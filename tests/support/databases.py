"""Databases for tests of the Database operator: a sample, and an embedded cluster that runs it with an engine."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge import Client
from konverge.errors import Invalid
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import Event
from konverge.k8s.storage.v1 import StorageClass
from konverge.objects import AnyObject, ObjectMeta, from_wire
from konverge_cluster.testing import TestCluster
from konverge_cluster.volumes.provisioner import SIMULATED
from konverge_operators.database.api import Database, DatabaseStatus
from konverge_operators.database.backups.api import BackupSpec, DatabaseBackup
from konverge_operators.database.memory import InMemoryEngine
from konverge_operators.database.operator import new_operator
from konverge_operators.database.reconciler import DatabaseReconciler

__all__ = ["NAME", "World", "backup_of", "check_rules", "database", "running", "storage_class"]

NAME = "orders"


def database(name: Any = NAME, **spec: Any) -> Database:
    """Return a database of version 18 in the namespace default; `spec` has wire names."""
    document = {"metadata": {"name": name, "namespace": "default"}, "spec": {"version": "18", **spec}}
    return from_wire(Database, {"apiVersion": "example.com/v1", "kind": "Database", **document})


def backup_of(database: str, name: str = "first", *, retain: bool = False) -> DatabaseBackup:
    """Return a backup in the namespace default."""
    metadata = ObjectMeta(name=name, namespace="default")
    return DatabaseBackup(metadata=metadata, spec=BackupSpec(database=database, retain=retain))


def storage_class() -> StorageClass:
    """Return a class whose claims can grow, also while pods use them."""
    return StorageClass(metadata=ObjectMeta(name="fast"), provisioner=SIMULATED, allow_volume_expansion=True)


async def check_rules(client: Client, namespace: str) -> None:
    """Check the rules of the CRD, and leave a suspended database behind."""

    async def create(**spec: Any) -> None:
        wanted = database(storageClassName="fast", **spec)
        wanted.metadata.namespace = namespace
        await client.create(wanted)

    async def edit(**spec: Any) -> None:
        await client.patch(Database, NAME, {"spec": spec}, namespace=namespace)

    with pytest.raises(Invalid, match="strict needs 2 replicas"):
        await create(synchronous="strict")
    with pytest.raises(Invalid, match="the size must be above 0"):
        await create(storageSize="0")
    with pytest.raises(Invalid, match="set either claim or s3"):
        await create(backup={"enabled": True, "destination": {}})
    with pytest.raises(Invalid, match="set either fromBackup or fromDestination"):
        await create(recovery={"targetTime": "2026-11-16T10:00:00Z"})
    await create(suspend=True, storageSize="1Gi", version="17.2", recovery={"fromBackup": "first"})
    changes: list[tuple[dict[str, Any], str]] = [
        ({"storageSize": "500Mi"}, "the storage cannot become smaller"),
        ({"version": "17.1"}, "the version cannot be lowered"),
        ({"owner": "other"}, "the value cannot be changed"),
        ({"database": "other"}, "the value cannot be changed"),
        ({"storageClassName": None}, "storageClassName cannot be changed"),
        ({"recovery": {"fromBackup": "other"}}, "the value cannot be changed"),
        ({"recovery": None}, "recovery can be set at the creation only"),
    ]
    for change, message in changes:
        with pytest.raises(Invalid, match=message):
            await edit(**change)
    await edit(storageSize="1024Mi", version="17.3", replicas=2, synchronous="strict")


class World:
    """A cluster on virtual time in which the operator runs, with an engine in memory."""

    def __init__(self, cluster: TestCluster, engine: InMemoryEngine) -> None:
        self.cluster = cluster
        self.engine = engine
        self.client: Client = cluster.client()

    async def get(self) -> Database:
        return await self.client.get(Database, NAME, namespace="default")

    async def status(self) -> DatabaseStatus:
        return (await self.get()).status

    async def stateful_set(self) -> StatefulSet:
        return await self.client.get(StatefulSet, NAME, namespace="default")

    async def create(self, **spec: Any) -> Database:
        created = await self.client.create(database(**spec))
        await self.settle()
        return created

    async def edit(self, annotations: dict[str, Any] | None = None, **spec: Any) -> None:
        change = {"metadata": {"annotations": annotations or {}}, "spec": spec}
        await self.client.patch(Database, NAME, change, namespace="default")

    async def change(self, annotations: dict[str, Any] | None = None, **spec: Any) -> DatabaseStatus:
        """Edit the database and return its status when nothing happens any more."""
        await self.edit(annotations, **spec)
        await self.settle()
        return await self.status()

    async def settle(self) -> None:
        await self.cluster.settle(quiet=45)

    async def write(self) -> bool:
        return await self.engine.write(await self.get())

    async def events(self) -> list[str]:
        """Return reason and message of the events about the database, in no order."""
        found = await self.client.list(Event, namespace="default")
        return [f"{one.reason}: {one.message}" for one in found if one.involved_object.kind == "Database"]

    async def delete(self, obj: AnyObject) -> None:
        await self.client.delete(obj)


@asynccontextmanager
async def running(cluster: TestCluster) -> AsyncGenerator[World]:
    """Run the operator on a cluster."""
    engine = InMemoryEngine()
    engine.server = cluster.client()
    reconciler = DatabaseReconciler({engine.name: engine})
    async with cluster.operator(new_operator([engine], reconciler)):
        yield World(cluster, engine)
    assert not engine.violations
    counters = [one for family in reconciler.metrics.unexpected.collect() for one in family.samples]
    assert not [one.labels for one in counters if one.name.endswith("_total")]
