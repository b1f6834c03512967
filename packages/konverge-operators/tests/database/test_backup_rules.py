"""The rules of DatabaseBackup in its CRD."""

from __future__ import annotations

import pytest

from konverge import ObjectMeta
from konverge.errors import Invalid
from konverge.schema import crd_for
from konverge_cluster.testing import TestCluster
from konverge_operators.database.backups.api import BackupSpec, DatabaseBackup


async def test_the_database_of_a_backup_cannot_be_changed_and_retain_can(cluster: TestCluster) -> None:
    client = await cluster.install(crd_for(DatabaseBackup))
    backup = DatabaseBackup(
        metadata=ObjectMeta(name="before-upgrade", namespace="default"), spec=BackupSpec(database="orders")
    )
    await client.create(backup)
    with pytest.raises(Invalid, match="the value cannot be changed"):
        await client.patch(DatabaseBackup, backup.name, {"spec": {"database": "other"}}, namespace="default")
    changed = await client.patch(DatabaseBackup, backup.name, {"spec": {"retain": True}}, namespace="default")
    assert (changed.spec.database, changed.spec.retain) == ("orders", True)
