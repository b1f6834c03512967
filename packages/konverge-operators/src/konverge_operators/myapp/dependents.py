"""The database and the cache of an application: objects of other operators, known by their kinds and statuses only.

Their code is not imported. A Database that the application created has it as owner, unless `release` removes that: then
it outlives the application. One that is named by `existing` is only read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from konverge import Context
from konverge.objects import AnyObject, Kind, ObjectStatus, Unstructured, full_object, object_status
from konverge.workflow import Waiting
from konverge_operators.manifests import Json, labels, unstructured
from konverge_operators.myapp.api import MyApp

__all__ = [
    "CACHES",
    "DATABASE",
    "OPERATOR",
    "cache_objects",
    "connection_secret",
    "database_objects",
    "dependents_status",
    "existing_database",
    "release",
]

OPERATOR: Final = "myapp-operator"
DATABASE: Final = Kind("example.com", "v1", "Database", "databases")
CACHES: Final = {
    "Cache": Kind("cache.example.com", "v1", "Cache", "caches"),
    "RedisCluster": Kind("redis.example.com", "v1", "RedisCluster", "redisclusters"),
}


def existing_database(app: MyApp) -> list[str]:
    """Return the name of the Database that the application uses and does not own, if any."""
    chosen = app.spec.database
    return [chosen.existing] if chosen is not None and chosen.existing else []


async def database_objects(app: MyApp, ctx: Context) -> list[AnyObject]:
    """Return the Database to create; none when an existing one is used.

    Raises: Waiting when the kind is not served, or the existing one is not ready.
    """
    _require_served(ctx, DATABASE)
    chosen = app.spec.database
    assert chosen is not None, "the component is not enabled without a database"
    if not chosen.existing:
        return [_child(app, DATABASE, "database", {"deletionPolicy": app.spec.deletion_policy, **(chosen.spec or {})})]
    await release(app, ctx)
    found = await ctx.get(DATABASE, chosen.existing)
    if found is None:
        raise Waiting("DatabaseNotFound", f"Database {chosen.existing} does not exist")
    judged = dependents_status(app, [found])
    if judged.status != "Current":
        raise Waiting("DatabaseNotReady", judged.message)
    return []


async def cache_objects(app: MyApp, ctx: Context) -> list[AnyObject]:
    """Return the cache.

    Raises: Waiting when its kind is not served.
    """
    chosen = app.spec.cache
    assert chosen is not None, "the component is not enabled without a cache"
    kind = CACHES[chosen.kind]
    _require_served(ctx, kind)
    return [_child(app, kind, "cache", chosen.spec)]


async def release(app: MyApp, ctx: Context) -> None:
    """Let the Databases that must not be deleted outlive the application: it is not their owner any more."""
    kind: Any = DATABASE  # its children are unstructured
    for one in ctx.owned(kind) if ctx.is_served(kind) else ():
        if app.spec.deletion_policy == "Retain" or one.name in existing_database(app):
            others = [each for each in one.metadata["ownerReferences"] if each["uid"] != app.uid]
            change = {"resourceVersion": one.resource_version, "ownerReferences": others or None}
            await ctx.client.patch(DATABASE, one.key, {"metadata": change})
            ctx.event("DatabaseRetained", f"Database {one.name} is kept, with its data", action="Release")


def dependents_status(_app: MyApp, objects: Sequence[AnyObject]) -> ObjectStatus:
    """Return the status by the rules of kstatus; an object whose operator has not answered yet is not ready."""
    for one in objects:
        found, generation = object_status(one), full_object(one)["metadata"].get("generation")
        status, message = found.status, found.message
        if status != "Terminating" and _status_of(one).get("observedGeneration") != generation:
            status = "InProgress"
            message = f"its operator has not observed generation {generation} yet: does it run?"
        elif status == "Current" and not _status_of(one).get("connectionSecret"):
            status, message = "InProgress", "its status names no connectionSecret"
        if status != "Current":
            return ObjectStatus(status, f"{one.kind} {one.name}: {message}")
    return ObjectStatus("Current")


async def connection_secret(app: MyApp, ctx: Context, component: str) -> str:
    """Return the name of the connection Secret of the database or the cache; the last known one while it is gone.

    Raises: Waiting when none was ever known.
    """
    name, kind = f"{app.name}-{component}", DATABASE
    if component == "cache":
        kind = CACHES[app.spec.cache.kind if app.spec.cache is not None else "Cache"]
    else:
        name = next(iter(existing_database(app)), name)
    found = await ctx.get(kind, name) if ctx.is_served(kind) else None
    secret = _status_of(found).get("connectionSecret") or app.status.connections.get(component)
    if not secret:
        raise Waiting("ConnectionUnknown", f"{kind.kind} {name} names no connectionSecret")
    return str(secret)


def _require_served(ctx: Context, kind: Kind) -> None:
    if not ctx.is_served(kind):
        text = f"the CustomResourceDefinition {kind.plural}.{kind.group} is not installed: install the operator of"
        raise Waiting("KindNotServed", f"{text} {kind.kind} ({kind.api_version})")


def _child(app: MyApp, kind: Kind, component: str, spec: Json) -> Unstructured:
    return unstructured(kind, f"{app.name}-{component}", labels(app.name, component, operator=OPERATOR), spec)


def _status_of(obj: AnyObject | None) -> Json:
    found: object = full_object(obj).get("status") if obj is not None else None
    return cast("Json", found) if isinstance(found, dict) else {}
