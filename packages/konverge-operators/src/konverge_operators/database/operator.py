"""The operator of Database: its controller, as the commands `konverge run`, `dev` and `manifests` load it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from konverge import Key, controller_for
from konverge.cache import CacheOptions
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.core.v1 import PersistentVolumeClaim, Pod, Secret
from konverge.k8s.storage.v1 import StorageClass
from konverge.manager import Operator
from konverge.objects import Resource
from konverge.triggers import field_changed, labels_changed, to_keys
from konverge_operators.database.api import Database
from konverge_operators.database.children import KINDS
from konverge_operators.database.engine import Engine
from konverge_operators.database.names import MANAGED_BY, OPERATOR
from konverge_operators.database.postgresql.engine import PostgreSQL
from konverge_operators.database.postgresql.local_images import local_images
from konverge_operators.database.reconciler import DatabaseReconciler

__all__ = ["new_operator", "operator"]

_MANAGED = CacheOptions(labels=MANAGED_BY)
_POD_CHANGED = (
    labels_changed
    | field_changed(".status.conditions")
    | field_changed(".status.containerStatuses")
    | field_changed(".metadata.deletionTimestamp")
)  # members write annotations of their pods all the time


def new_operator(engines: Sequence[Engine], reconciler: DatabaseReconciler | None = None) -> Operator:
    """Return the operator of a new process, for databases of these engines."""
    reconciler = reconciler or DatabaseReconciler({engine.name: engine for engine in engines})
    builder = controller_for(Database)
    for kind in KINDS:
        builder.owns(kind)
    builder.watches(Pod, to_keys(_database_of, Pod), predicate=_POD_CHANGED, options=_MANAGED)
    builder.watches(PersistentVolumeClaim, to_keys(_database_of, PersistentVolumeClaim), options=_MANAGED)
    builder.needs(Database, "patch").needs(Secret, "get", "create", "patch", "delete").needs(Pod, "delete")
    builder.needs(PersistentVolumeClaim, "patch", "delete").needs(StorageClass, "get").needs(StatefulSet, "list")
    for engine in engines:
        for needed, verbs, subresource in engine.operator_permissions:
            builder.needs(needed, *verbs, subresource=subresource)
    samples = Path(__file__).parent / "samples"
    return Operator(
        name=OPERATOR,
        controllers=(builder.build(reconciler),),
        samples=(samples / "database.yaml",),
        images=(local_images,),
        metrics=reconciler.collectors,
    )


def _database_of(obj: Resource) -> list[Key]:
    """Return the database that a pod or a claim belongs to."""
    instance = (obj.metadata.labels or {}).get("app.kubernetes.io/instance")
    return [Key(obj.namespace, instance)] if instance else []


operator = new_operator([PostgreSQL()])
