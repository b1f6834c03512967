"""Prune: delete the children that are no longer desired, and nothing else.

A reconciler calls `prune` after it has applied its complete set of children. A reconciler that returns early does not
call it, and nothing is deleted. Rules that hold here:

1. A child is deleted only if it has the owner's uid in its owner references, an apply of our field manager in its
   managedFields, and was not applied in this reconcile.
2. A desired child counts as applied even if its apply failed, so it is kept.
3. The delete has the uid and the version as preconditions: another object that has taken the name is kept, and so is
   one that another owner has adopted. If the server refuses that and the owner is alive, the uid alone decides.
4. A conflict is raised once the other children are deleted: the child may still exist, so the reconcile is not done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.cache import Cache, Lister
from konverge.client import Client
from konverge.errors import Conflict
from konverge.objects import AnyObject, Key, Kind, LabelSelector, Resource, Unstructured, kind_of, labels_of
from konverge.reconcile.applied import AppliedObjects
from konverge.reconcile.finalizers import is_terminating
from konverge.reconcile.owned_fields import is_applied_by
from konverge.reconcile.stale import check_owner

__all__ = ["prune"]

_EVERYTHING = LabelSelector.everything()


async def prune(
    client: Client,
    cache: Cache,
    owner: AnyObject,
    applied: AppliedObjects,
    *,
    kinds: Iterable[type[Resource] | Kind],
    manager: str,
    labels: LabelSelector = _EVERYTHING,
) -> list[Key]:
    """Delete the owner's children of these kinds that were not applied; return the keys of the deleted ones.

    Children that `labels` does not select are kept.

    Raises: ValueError when a kind is not cached, or not with the managedFields of this manager; Conflict when a child
    could not be deleted, after all others are.
    """
    listers = [_lister(cache, kind, owner, manager) for kind in kinds]
    deleted: list[Key] = []
    conflicts: list[Conflict] = []
    for child in (child for lister in listers for child in _obsolete(lister, owner, applied, manager)):
        if not labels.matches(labels_of(child)):
            continue
        try:
            await _delete(client, cache, child, owner)
            deleted.append(child.key)
        except Conflict as error:
            conflicts.append(error)
    if conflicts:
        raise conflicts[0]
    return deleted


async def _delete(client: Client, cache: Cache, child: Any, owner: AnyObject) -> None:
    # The propagation is explicit, since the default for a Job orphans its pods.
    try:
        await client.delete(child, propagation="Background", missing_ok=True, unchanged=True)
    except Conflict as error:
        await check_owner(client, cache, owner, error)
        await client.delete(child, propagation="Background", missing_ok=True)


def _obsolete(lister: Lister[Any], owner: AnyObject, applied: AppliedObjects, manager: str) -> list[Any]:
    """Return the children to delete [1]."""
    return [
        child
        for child in lister.owned_by(owner.uid, namespace=owner.namespace)
        if child not in applied and not is_terminating(child) and is_applied_by(child, manager)
    ]


def _lister(cache: Cache, type_: type[Resource] | Kind, owner: AnyObject, manager: str) -> Lister[Any]:
    kind = kind_of(type_)
    # The children of a cluster-scoped owner may be in any namespace; those in the cached namespaces are found.
    lister = cache.complete_lister(kind, owner.namespace) if owner.namespace else cache.lister(kind)
    if lister is None:
        raise ValueError(f"prune of {kind.kind} needs its objects in the cache: declare it with owns({kind.kind})")
    if lister.options.manager != manager:
        raise ValueError(f"prune of {kind.kind} needs CacheOptions(manager={manager!r}), to see what was applied")
    return lister.with_type(Unstructured if isinstance(type_, Kind) else type_)
