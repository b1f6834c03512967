"""The end of a Database: what is deleted, and what is kept, by its policy."""

from __future__ import annotations

from konverge import Context, Result
from konverge_operators.database.credentials import find_secret
from konverge_operators.database.engine import Engine, Target
from konverge_operators.database.facts import Facts
from konverge_operators.database.names import certificate_secret
from konverge_operators.protection import protection_of

__all__ = ["remove"]

_INTERVAL = 5.0


async def remove(target: Target, ctx: Context, engine: Engine, facts: Facts) -> Result:
    """Bring a deletion one step further. The children are deleted by the garbage collector, as they have an owner.

    A protected database goes on serving until the annotation is removed.
    """
    database = target.database
    if protection := protection_of(database):
        ctx.event("DeletionProtected", protection, warning=True, action="Delete")
        return Result.requeue(after=6 * _INTERVAL, reason=protection)
    if database.spec.deletion_policy == "Retain":
        kept = ", ".join([*(one.name for one in facts.claims), *_secret_names(target)])
        ctx.event("DataRetained", f"kept: {kept}", action="Delete")
        return Result.done()
    if facts.stateful_set is not None:
        if facts.stateful_set.metadata.deletion_timestamp is None:
            await ctx.delete(facts.stateful_set, propagation="Foreground")
        return Result.requeue(after=_INTERVAL, reason="members are being stopped")
    if facts.pods:
        return Result.requeue(after=_INTERVAL, reason="members are being stopped")
    await engine.forget(target)
    for claim in facts.claims:
        await ctx.delete(claim)
    for name in _secret_names(target):
        if (secret := await find_secret(database, ctx, name)) is not None:
            await ctx.delete(secret)
    ctx.event("DataDeleted", "the claims and the credentials are deleted", action="Delete")
    return Result.done()


def _secret_names(target: Target) -> tuple[str, ...]:
    names = (target.secrets.superuser, target.secrets.replication, target.secrets.application)
    return (*names, certificate_secret(target.database)) if target.database.spec.tls.enabled else names
