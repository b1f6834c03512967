"""What an owner holds: its objects, with those adopted that are nobody's and those let go that no longer fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from konverge.errors import Conflict, Invalid, NotFound
from konverge.objects import LabelSelector, Resource
from konverge.reconcile import Context
from konverge_cluster.status_writes import controller_client
from konverge_cluster.workloads.pods.claims import Claims, adoption, claim, release
from konverge_cluster.workloads.pods.facts import is_being_deleted

__all__ = ["hold"]

T = TypeVar("T", bound=Resource)


async def hold(
    owner: Resource,
    kind: type[T],
    *,
    selector: LabelSelector,
    ctx: Context,
    among: Callable[[T], bool] = lambda _: True,
    finalizers: tuple[str, ...] = (),
) -> list[T]:
    """Give the objects of a kind that are the owner's, after claiming them; only those that `among` admits.

    Adopted ones get the finalizers and released ones lose them.

    Raises: Conflict when an object would be adopted and the owner itself is no longer the one that was read.
    """
    candidates = {obj.uid: obj for obj in (*ctx.owned(kind), *await ctx.list(kind, labels=str(selector)))}
    claims = claim(owner, selector, filter(among, candidates.values()))
    held = claims.kept
    if claims.adopted or claims.released:
        held = held + await _settle(owner, claims, kind=kind, ctx=ctx, finalizers=finalizers)
    return sorted(held, key=lambda obj: obj.key)


async def _settle(
    owner: Resource, claims: Claims[T], *, kind: type[T], ctx: Context, finalizers: tuple[str, ...]
) -> list[T]:
    client = controller_client(ctx)
    for obj in claims.released:
        patch = release(owner, obj, finalizers=finalizers)
        try:
            await client.patch(kind, obj.key, patch, patch_type="strategic")
        except (NotFound, Invalid):
            continue  # gone, or no longer ours
    if claims.adopted:
        await _check_still_there(owner, ctx)
    adopted = []
    for obj in claims.adopted:
        patch = adoption(owner, obj, finalizers=finalizers)
        try:
            adopted.append(await client.patch(kind, obj.key, patch, patch_type="strategic"))
        except NotFound:
            continue
    return adopted


async def _check_still_there(owner: Resource, ctx: Context) -> None:
    """Ask the server itself: an owner that is being deleted must not adopt what its deletion sets free."""
    fresh = await ctx.client.get(type(owner), owner.key)
    if fresh.uid != owner.uid or is_being_deleted(fresh):
        raise Conflict(f"{owner.kind} {owner.key} is gone or being deleted: it adopts nothing")
