"""The database component: a plain StatefulSet, or a `Database` when its operator is installed.

The choice is made before anything is created, recorded in the status, and never changed: switching would leave the data
behind.
"""

from __future__ import annotations

import secrets
from typing import Any

from konverge import Context
from konverge.k8s.apps.v1 import StatefulSet
from konverge.k8s.batch.v1 import CronJob
from konverge.k8s.core.v1 import PersistentVolumeClaim, Secret, Service
from konverge.k8s.networking.v1 import NetworkPolicy
from konverge.objects import AnyObject, Kind, Unstructured
from konverge_operators.ecommerce.api import EcommerceApp
from konverge_operators.ecommerce.names import DATABASE_CLIENT, OPERATOR, component_name
from konverge_operators.manifests import Json, child, labels, network_policy, pod_spec, selector

__all__ = ["DATABASE", "KINDS", "connection_secret", "database_objects", "report_claims"]

DATABASE = Kind("example.com", "v1", "Database", "databases")
KINDS = (StatefulSet, Service, NetworkPolicy, CronJob)
_PORT = 5432
_USER = 999  # postgres in the official image


def connection_secret(app: EcommerceApp) -> str:
    """Return the name of the Secret with the connection, which has the keys of servicebinding.io."""
    return component_name(app, "database") + ("-app" if app.status.database_kind == DATABASE.kind else "")


async def database_objects(app: EcommerceApp, ctx: Context) -> list[AnyObject]:
    """Return the desired objects of the database."""
    if app.status.database_kind == DATABASE.kind:
        return [_database(app)]
    await _create_credentials(app, ctx)
    found: list[AnyObject] = [_stateful_set(app), _service(app), _policy(app)]
    if app.spec.database.backup.enabled:
        claim = _backup_claim(app)
        claim.metadata.namespace = app.namespace
        await ctx.create_once(claim, owned=False)  # so that it outlives the application
        found.append(_backup_job(app))
    return found


async def report_claims(app: EcommerceApp, ctx: Context) -> None:
    """Record which claims outlive the application."""
    if app.spec.deletion_policy == "Retain" and app.status.database_kind == "StatefulSet":
        name = component_name(app, "database")
        kept = f"data-{name}-0, {name}-backup" if app.spec.database.backup.enabled else f"data-{name}-0"
        ctx.event("ClaimsRetained", f"the data is kept in {kept}", action="Delete")


def _database(app: EcommerceApp) -> Unstructured:
    options = app.spec.database
    backup = {"enabled": options.backup.enabled, "schedule": options.backup.schedule}
    spec = {
        "engine": options.engine,
        "version": options.version,
        "storageSize": str(options.storage),
        "backup": backup,
        "deletionPolicy": app.spec.deletion_policy,
    }
    metadata = {"name": component_name(app, "database"), "labels": labels(app.name, "database", operator=OPERATOR)}
    return Unstructured(apiVersion=DATABASE.api_version, kind=DATABASE.kind, metadata=metadata, spec=spec)


async def _create_credentials(app: EcommerceApp, ctx: Context) -> None:
    name, password = component_name(app, "database"), secrets.token_urlsafe(24)
    values = {"type": "postgresql", "host": name, "port": str(_PORT), "username": "shop", "database": "shop"}
    uri = f"postgresql://shop:{password}@{name}:{_PORT}/shop"
    data = {**values, "password": password, "uri": uri}
    await ctx.create_once(child(Secret, name, labels(app.name, "database", operator=OPERATOR), stringData=data))


def _variable(name: str, secret: str, key: str) -> Json:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def _stateful_set(app: EcommerceApp) -> StatefulSet:
    name, options = component_name(app, "database"), app.spec.database
    selected, all_labels = selector(app.name, "database"), labels(app.name, "database", operator=OPERATOR)
    ready = {"exec": {"command": ["pg_isready", "-U", "shop"]}}
    container: Json = {
        "name": "database",
        "image": f"postgres:{options.version}",
        "ports": [{"name": "postgresql", "containerPort": _PORT}],
        "env": [
            *(_variable(f"POSTGRES_{key.upper()}", name, value) for key, value in
              (("user", "username"), ("password", "password"), ("db", "database"))),
            {"name": "PGDATA", "value": "/var/lib/postgresql/data/pgdata"},
        ],
        "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}},
        "startupProbe": {**ready, "failureThreshold": 60},
        "readinessProbe": ready,
        "livenessProbe": {**ready, "failureThreshold": 6},
        "volumeMounts": [
            {"name": "data", "mountPath": "/var/lib/postgresql/data"},
            {"name": "run", "mountPath": "/var/run/postgresql"},
        ],
    }  # fmt: skip
    run: Json = {"name": "run", "emptyDir": {}}
    pods = pod_spec(container, selected, user=_USER, volumes=[run], terminationGracePeriodSeconds=120)
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": str(options.storage)}}}
    spec = {
        "replicas": 1,
        "serviceName": name,
        "selector": {"matchLabels": selected},
        "template": {"metadata": {"labels": all_labels}, "spec": pods},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": storage}],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": app.spec.deletion_policy, "whenScaled": "Retain"},
    }
    return child(StatefulSet, name, all_labels, spec=spec)


def _service(app: EcommerceApp) -> Service:
    ports = [{"name": "postgresql", "port": _PORT, "targetPort": "postgresql"}]
    spec = {"clusterIP": "None", "selector": selector(app.name, "database"), "ports": ports}
    return child(Service, component_name(app, "database"), labels(app.name, "database", operator=OPERATOR), spec=spec)


def _policy(app: EcommerceApp) -> NetworkPolicy:
    allowed = {"app.kubernetes.io/instance": app.name, DATABASE_CLIENT: "true"}
    spec = network_policy(selector(app.name, "database"), allowed=allowed, port=_PORT)
    name = component_name(app, "database")
    return child(NetworkPolicy, name, labels(app.name, "database", operator=OPERATOR), spec=spec)


def _backup_claim(app: EcommerceApp) -> PersistentVolumeClaim:
    storage = {"requests": {"storage": str(app.spec.database.storage)}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": storage}
    name = f"{component_name(app, 'database')}-backup"
    return child(PersistentVolumeClaim, name, labels(app.name, "database", operator=OPERATOR), spec=spec)


def _backup_job(app: EcommerceApp) -> CronJob:
    """Return the job that dumps the database into a claim. That protects from mistakes, not from the loss of a node."""
    name, options = component_name(app, "database"), app.spec.database
    pod_labels = {**labels(app.name, "backup", operator=OPERATOR), DATABASE_CLIENT: "true"}
    dump = 'pg_dump --format=custom --file="/backup/$(date +%Y%m%d%H%M%S).dump" "$DATABASE_URI"'
    container: Json = {
        "name": "backup",
        "image": f"postgres:{options.version}",
        "command": ["sh", "-c", dump],
        "env": [_variable("DATABASE_URI", name, "uri")],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [{"name": "backup", "mountPath": "/backup"}],
    }
    backup: Any = {"name": "backup", "persistentVolumeClaim": {"claimName": f"{name}-backup"}}
    pods = pod_spec(container, selector(app.name, "backup"), user=_USER, volumes=[backup])
    template = {"metadata": {"labels": pod_labels}, "spec": {**pods, "restartPolicy": "OnFailure"}}
    spec = {
        "schedule": options.backup.schedule,
        "concurrencyPolicy": "Forbid",
        "jobTemplate": {"spec": {"backoffLimit": 3, "template": template}},
    }
    return child(CronJob, f"{name}-backup", labels(app.name, "database", operator=OPERATOR), spec=spec)
