"""The database component: a plain StatefulSet, or a `Database` when its operator is installed.

The choice is made before anything is created, recorded in the status, and never changed: switching would leave the data
behind.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from konverge import Context
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.batch.v1 import CronJob
from konverge.k8s.core.v1 import PersistentVolumeClaim, Secret, Service
from konverge.k8s.networking.v1 import NetworkPolicy
from konverge.objects import AnyObject, Kind, ObjectStatus, Unstructured, to_wire
from konverge.workflow import Waiting, objects_status
from konverge_operators.ecommerce.api import EcommerceApp
from konverge_operators.ecommerce.engines import USER, plain_engine
from konverge_operators.ecommerce.names import DATABASE_CLIENT, Part
from konverge_operators.manifests import Json, network_policy, secret_variable, unstructured

__all__ = ["DATABASE", "KINDS", "connection_secret", "database_objects", "database_status", "report_claims"]

DATABASE = Kind("example.com", "v1", "Database", "databases")
KINDS = (StatefulSet, Service, NetworkPolicy, CronJob)
_DUMP_KEYS = ("uri", "host", "username", "password", "database")


async def connection_secret(app: EcommerceApp, ctx: Context) -> str:
    """Return the name of the Secret with the connection, which has the keys of servicebinding.io.

    Raises: Waiting when the Database does not name it.
    """
    name = Part(app, "database").name
    if app.status.database_kind != DATABASE.kind:
        return name
    database = await ctx.get(DATABASE, name)
    secret = _reported_secret(database) if database is not None else ""
    if not secret:
        raise Waiting("DatabaseNotReady", f"Database {name} names no connection Secret")
    return secret


def database_status(app: EcommerceApp, objects: Sequence[AnyObject]) -> ObjectStatus:
    """Return the status of the database. A new Database has no condition yet, which kstatus takes for ready."""
    found = objects_status(app, objects)
    new = [one.name for one in objects if isinstance(one, Unstructured) and not _reported_secret(one)]
    if new and found.status == "Current":
        return ObjectStatus("InProgress", f"Database {new[0]} names no connection Secret")
    return found


def _reported_secret(database: Unstructured) -> str:
    status: dict[str, Any] = database.get("status") or {}
    return str(status.get("connectionSecret") or "")


async def database_objects(app: EcommerceApp, ctx: Context) -> list[AnyObject]:
    """Return the desired objects of the database."""
    part, options = Part(app, "database"), app.spec.database
    if app.status.database_kind == DATABASE.kind:
        return [unstructured(DATABASE, part.name, part.labels, _database_spec(app))]
    engine = plain_engine(options)
    connection = engine.connection(part.name, secrets.token_urlsafe(24))
    await ctx.create_once(part.child(Secret, stringData=connection))
    allowed = {"app.kubernetes.io/instance": app.name, DATABASE_CLIENT: "true"}
    found: list[AnyObject] = [
        part.child(StatefulSet, spec=_stateful_set_spec(part)),
        part.service(engine.port, engine.name),
        part.child(NetworkPolicy, spec=network_policy(part.selector, allowed=allowed, port=engine.port)),
    ]
    if options.backup.enabled:
        backup = Part(app, "database-backup", component="database")
        claim = backup.child(PersistentVolumeClaim, spec=_claim_spec(app))
        claim.metadata.namespace = app.namespace
        await ctx.create_once(claim, owned=False)  # so that it outlives the application
        found.append(backup.child(CronJob, spec=_backup_spec(app, part.name)))
    return found


async def report_claims(app: EcommerceApp, ctx: Context) -> None:
    """Record which claims outlive the application."""
    if app.spec.deletion_policy == "Retain" and app.status.database_kind == "StatefulSet":
        name = Part(app, "database").name
        kept = f"data-{name}-0, {name}-backup" if app.spec.database.backup.enabled else f"data-{name}-0"
        ctx.event("ClaimsRetained", f"the data is kept in {kept}", action="Delete")


def _database_spec(app: EcommerceApp) -> Json:
    options = to_wire(app.spec.database)
    size = str(options.pop("storage"))
    return {**options, "storageSize": size, "deletionPolicy": app.spec.deletion_policy}


def _claim_spec(app: EcommerceApp) -> Json:
    storage = {"requests": {"storage": str(app.spec.database.storage)}}
    return {"accessModes": ["ReadWriteOnce"], "resources": storage}


def _stateful_set_spec(part: Part) -> Json:
    engine = plain_engine(part.app.spec.database)
    ready = {"exec": {"command": list(engine.is_ready)}}
    container: Json = {
        "name": "database",
        "image": engine.image,
        "ports": [{"name": engine.name, "containerPort": engine.port}],
        "env": engine.environment(part.name),
        "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}},
        "startupProbe": {**ready, "periodSeconds": 1, "failureThreshold": 600},
        "readinessProbe": ready,
        "livenessProbe": {**ready, "failureThreshold": 6},
        "volumeMounts": [
            {"name": "data", "mountPath": engine.data_path},
            {"name": "run", "mountPath": engine.run_path},
        ],
    }
    run: Json = {"name": "run", "emptyDir": {}}
    policy = {"whenDeleted": part.app.spec.deletion_policy, "whenScaled": "Retain"}
    return {
        "replicas": 1,
        "serviceName": part.name,
        "selector": {"matchLabels": part.selector},
        "template": part.template(container, user=USER, volumes=[run], terminationGracePeriodSeconds=120),
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": _claim_spec(part.app)}],
        "persistentVolumeClaimRetentionPolicy": policy,
    }


def _backup_spec(app: EcommerceApp, database: str) -> Json:
    """Return a job that dumps the database into a claim. That protects from mistakes, not from the loss of a node."""
    engine = plain_engine(app.spec.database)
    container: Json = {
        "name": "backup",
        "image": engine.image,
        "command": ["sh", "-c", engine.dump],
        "env": [secret_variable(f"DATABASE_{key.upper()}", database, key) for key in _DUMP_KEYS],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [{"name": "backup", "mountPath": "/backup"}],
    }
    volume: Json = {"name": "backup", "persistentVolumeClaim": {"claimName": f"{database}-backup"}}
    pods = Part(app, "backup").template(container, clients=True, user=USER, volumes=[volume], restartPolicy="OnFailure")
    return {
        "schedule": app.spec.database.backup.schedule,
        "concurrencyPolicy": "Forbid",
        "jobTemplate": {"spec": {"backoffLimit": 3, "template": pods}},
    }
