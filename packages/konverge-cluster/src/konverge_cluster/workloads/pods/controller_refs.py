"""Claims of an owner on objects: adopts matching orphans and releases objects that no longer match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from konverge.errors import Conflict, Invalid, NotFound
from konverge.objects import LabelSelector, Resource
from konverge.reconcile import Context
from konverge_cluster.status_writes import controller_client
from konverge_cluster.workloads.pods.claims import Claims, adopt_patch, claim, release_patch
from konverge_cluster.workloads.pods.facts import is_being_deleted

__all__ = ["adopt_objects", "claim_objects"]

T = TypeVar("T", bound=Resource)


async def claim_objects(
    owner: Resource,
    kind: type[T],
    *,
    selector: LabelSelector,
    ctx: Context,
    predicate: Callable[[T], bool] = lambda _: True,
    is_member: Callable[[T], bool] = lambda _: True,
    finalizers: tuple[str, ...] = (),
) -> list[T]:
    """Claim the objects of a kind and return those that the owner owns; only those that `predicate` accepts.

    An object that is not a member is treated as if the selector did not match. Adopted objects get the finalizers and
    released ones lose them.

    Raises: Conflict when an object would be adopted and the live owner is gone or being deleted.
    """
    candidates = {obj.uid: obj for obj in (*ctx.owned(kind), *await ctx.list(kind, labels=str(selector)))}
    claims = claim(owner, selector, filter(predicate, candidates.values()), is_member=is_member)
    owned = claims.owned
    if claims.to_adopt or claims.to_release:
        owned = owned + await _adopt_and_release(owner, claims, kind=kind, ctx=ctx, finalizers=finalizers)
    return sorted(owned, key=lambda obj: obj.key)


async def _adopt_and_release(
    owner: Resource, claims: Claims[T], *, kind: type[T], ctx: Context, finalizers: tuple[str, ...]
) -> list[T]:
    client = controller_client(ctx)
    for obj in claims.to_release:
        patch = release_patch(owner, obj, finalizers=finalizers)
        try:
            await client.patch(kind, obj.key, patch, patch_type="strategic")
        except (NotFound, Invalid):
            continue  # gone, or no longer owned
    return await adopt_objects(owner, claims.to_adopt, kind=kind, ctx=ctx, finalizers=finalizers)


async def adopt_objects(
    owner: Resource, objects: Sequence[T], *, kind: type[T], ctx: Context, finalizers: tuple[str, ...] = ()
) -> list[T]:
    """Adopt objects; return those that still existed.

    Raises: Conflict when there are any and the live owner is gone or being deleted.
    """
    if objects:
        await _check_live_owner(owner, ctx)
    adopted = []
    for obj in objects:
        patch = adopt_patch(owner, obj, finalizers=finalizers)
        try:
            adopted.append(await controller_client(ctx).patch(kind, obj.key, patch, patch_type="strategic"))
        except NotFound:
            continue
    return adopted


async def _check_live_owner(owner: Resource, ctx: Context) -> None:
    """Check with the server: an owner that is being deleted must not adopt the objects that its deletion orphans."""
    live = await ctx.client.get(type(owner), owner.key)
    if live.uid != owner.uid or is_being_deleted(live):
        raise Conflict(f"{owner.kind} {owner.key} is gone or being deleted: it adopts nothing")
