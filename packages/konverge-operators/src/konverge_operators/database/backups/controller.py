"""The controller of DatabaseBackup."""

from __future__ import annotations

from collections.abc import Mapping

from konverge import Key, controller_for
from konverge.cache import CacheOptions
from konverge.controller import Controller
from konverge.k8s.batch.v1 import Job
from konverge.k8s.core.v1 import Pod
from konverge.objects import Resource
from konverge.triggers import to_keys
from konverge_operators.database.api import Database
from konverge_operators.database.backups.api import DatabaseBackup
from konverge_operators.database.backups.jobs import PURPOSE
from konverge_operators.database.backups.reconciler import BackupReconciler
from konverge_operators.database.engine import Engine
from konverge_operators.database.names import MANAGED_BY

__all__ = ["backup_controller"]


def backup_controller(engines: Mapping[str, Engine]) -> Controller[DatabaseBackup]:
    """Return the controller of backups of databases of these engines."""
    options = CacheOptions(labels=MANAGED_BY)
    builder = controller_for(DatabaseBackup).owns(Job, options=options)
    builder.watches(Job, to_keys(_scheduled_backup, Job), options=options)
    builder.watches(Pod, to_keys(_nothing, Pod), options=options)
    builder.watches(Database, to_keys(_nothing, Database))
    builder.needs(Job, "get", "create", "delete")
    return builder.build(BackupReconciler(engines))


def _scheduled_backup(obj: Resource) -> list[Key]:
    """Return the backup that a Job of a CronJob writes: it has its name."""
    scheduled = any(one.kind == "CronJob" for one in obj.metadata.owner_references or ())
    is_backup = (obj.metadata.labels or {}).get(PURPOSE) == "backup"
    return [Key(obj.namespace, obj.name)] if scheduled and is_backup else []


def _nothing(_obj: Resource) -> list[Key]:
    """Return nothing: these kinds are only read."""
    return []
