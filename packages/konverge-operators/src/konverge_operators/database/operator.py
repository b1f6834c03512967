"""The operator of Database: its controller, as the commands `konverge run`, `dev` and `manifests` load it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from konverge import Key, controller_for
from konverge.cache import CacheOptions, Event
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.batch.v1 import CronJob, Job
from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod, Secret, Service
from konverge.k8s.storage.v1 import StorageClass
from konverge.manager import Operator
from konverge.objects import Resource
from konverge.triggers import Predicate, field_changed, labels_changed, to_keys
from konverge_operators.database.admission import warning_webhook
from konverge_operators.database.api import Database
from konverge_operators.database.backups.api import DatabaseBackup
from konverge_operators.database.backups.controller import backup_controller
from konverge_operators.database.children import KINDS, POD_MONITOR
from konverge_operators.database.engine import Engine
from konverge_operators.database.mariadb.engine import MariaDB
from konverge_operators.database.mariadb.local_images import local_images as mariadb_images
from konverge_operators.database.names import MANAGED_BY, OPERATOR
from konverge_operators.database.postgresql.engine import PostgreSQL
from konverge_operators.database.postgresql.local_images import local_images as postgresql_images
from konverge_operators.database.reconciler import DatabaseReconciler

__all__ = ["new_operator", "operator"]

_MANAGED = CacheOptions(labels=MANAGED_BY)
_POD_CHANGED = (
    labels_changed
    | field_changed(".status.conditions")
    | field_changed(".status.containerStatuses")
    | field_changed(".metadata.deletionTimestamp")
)


def new_operator(engines: Sequence[Engine], reconciler: DatabaseReconciler | None = None) -> Operator:
    """Return the operator of a new process, for databases of these engines."""
    reconciler = reconciler or DatabaseReconciler({engine.name: engine for engine in engines})
    builder = controller_for(Database)
    for kind in KINDS:
        builder.owns(kind)
    builder.owns(POD_MONITOR, options=CacheOptions(optional=True))
    changed = _POD_CHANGED | _member_changed(engines)
    builder.watches(Pod, to_keys(_database_of, Pod), predicate=changed, options=_MANAGED)
    builder.watches(PersistentVolumeClaim, to_keys(_database_of, PersistentVolumeClaim), options=_MANAGED)
    builder.watches(Job, to_keys(_database_of, Job), options=_MANAGED).owns(CronJob)
    builder.watches(DatabaseBackup, to_keys(_backed_up_database, DatabaseBackup))
    builder.needs(DatabaseBackup, "create", "delete").needs(Job, "get", "list", "create", "delete").needs(Pod, "list")
    builder.needs(Database, "patch").needs(Secret, "get", "create", "patch", "delete").needs(Pod, "delete")
    builder.needs(PersistentVolumeClaim, "get", "create", "patch", "delete").needs(StorageClass, "get")
    builder.needs(StatefulSet, "get", "list").needs(Service, "get")
    for engine in engines:
        for needed, verbs, subresource in engine.operator_permissions:
            builder.needs(needed, *verbs, subresource=subresource)
    folder = Path(__file__).parent
    return Operator(
        name=OPERATOR,
        controllers=(builder.build(reconciler), backup_controller({engine.name: engine for engine in engines})),
        webhooks=(warning_webhook(engines),),
        samples=(folder / "samples" / "database.yaml",),
        monitoring=(folder / "alerts" / "database-operator.yaml", folder / "dashboards" / "database-operator.json"),
        images=(postgresql_images, mariadb_images),
        metrics=reconciler.collectors,
    )


def _member_changed(engines: Sequence[Engine]) -> Predicate:
    """Return a predicate for what members write into their pods: they do so all the time, it rarely matters."""

    def test(event: Event) -> bool:
        if event.old is None or event.new is None:
            return True
        before, after = event.old.read(Pod), event.new.read(Pod)
        return any(engine.member_changed(before, after) for engine in engines)

    return Predicate(test, "member_changed")


def _database_of(obj: Resource) -> list[Key]:
    """Return the database that a pod or a claim belongs to."""
    instance = (obj.metadata.labels or {}).get("app.kubernetes.io/instance")
    return [Key(obj.namespace, instance)] if instance else []


def _backed_up_database(obj: Resource) -> list[Key]:
    assert isinstance(obj, DatabaseBackup)
    return [Key(obj.namespace, obj.spec.database)]


operator = new_operator([PostgreSQL(), MariaDB()])
