"""Switchover on request: an annotation names the pod that becomes the primary, or "any".

The primary at the time of the request is in the status before anything is asked for. So it is known when the request is
done, also after a crash, and it is not done twice.
"""

from __future__ import annotations

from konverge import Context
from konverge_operators.database.api import Database
from konverge_operators.database.engine import Engine, Target
from konverge_operators.database.facts import Facts
from konverge_operators.database.names import SWITCHOVER
from konverge_operators.database.steps import best_replica

__all__ = ["switch_over"]

ANY = "any"


async def switch_over(database: Database, ctx: Context, engine: Engine, target: Target, facts: Facts) -> Database:
    """Go on with a requested switchover; return the database as it is stored then."""
    request, before = database.metadata.annotations.get(SWITCHOVER, ""), database.status.switchover_from
    if not request:
        return await _set_before(database, ctx, "") if before else database
    if not facts.primary:
        return database
    if facts.primary == request or (before and facts.primary != before):
        ctx.event("SwitchedOver", f"{facts.primary} is the primary", action="SwitchOver")
        return await _end(database, ctx)
    to = best_replica(facts) if request == ANY else request
    if not to or not facts.is_healthy(to):
        message = f"{request}: no healthy replica of that name" if request != ANY else "there is no healthy replica"
        ctx.event("SwitchoverRefused", message, warning=True, action="SwitchOver")
        return await _end(database, ctx)
    if not before:
        database = await _set_before(database, ctx, facts.primary)
    await engine.switchover(target, to)
    return database


async def _end(database: Database, ctx: Context) -> Database:
    """Remove the annotation, then the memory: in this order a crash cannot lead to a second switchover."""
    change = {"metadata": {"annotations": {SWITCHOVER: None}}}
    database = await ctx.client.patch(Database, database.name, change, namespace=database.namespace)
    return await _set_before(database, ctx, "")


async def _set_before(database: Database, ctx: Context, primary: str) -> Database:
    database.status.switchover_from = primary
    return await ctx.update_status(database)
