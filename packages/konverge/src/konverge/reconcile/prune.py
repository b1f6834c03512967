"""Pruning: children that are no longer wanted go, and nothing else does.

A reconciler that has applied everything that it wants calls `prune`; one that returns early does not, and nothing is
deleted. Rules that hold here:

1. A child goes only if it names the owner's uid, carries an apply of our field manager, and was not wanted in this run.
2. What was wanted counts, not what succeeded: a child whose apply failed stays.
3. It goes by uid: an object that has taken the name meanwhile stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from konverge.cache import Cache, View
from konverge.client import Client
from konverge.errors import Conflict
from konverge.objects import AnyObject, Key, Kind, Resource, Unstructured, kind_of, split_api_version
from konverge.reconcile.finalizers import is_deleting
from konverge.reconcile.owned_fields import is_applied_by

__all__ = ["Applied", "prune"]

Named: TypeAlias = tuple[str, str, Key]
"""An object by group, kind and key: the version that it is read in says nothing."""


class Applied:
    """What one run wanted to be there."""

    def __init__(self) -> None:
        self._wanted: set[Named] = set()

    def add(self, obj: AnyObject) -> None:
        """Note an object; its namespace must be known."""
        self._wanted.add(_name_of(obj))

    def __contains__(self, obj: AnyObject) -> bool:
        return _name_of(obj) in self._wanted

    def __len__(self) -> int:
        return len(self._wanted)


async def prune(
    client: Client,
    cache: Cache,
    owner: AnyObject,
    applied: Applied,
    *,
    kinds: Iterable[type[Resource] | Kind],
    manager: str,
) -> list[Key]:
    """Delete the owner's children of these kinds that were not wanted in this run; give the keys of what went.

    Raises: ValueError when a kind is not kept, or not with the managedFields of this manager.
    """
    views = [_view(cache, kind, owner, manager) for kind in kinds]
    gone: list[Key] = []
    for view in views:
        for child in view.owned_by(owner.uid, namespace=owner.namespace):
            unwanted = child not in applied and not is_deleting(child)
            if unwanted and is_applied_by(child, manager) and await _delete(client, child):
                gone.append(child.key)
    return gone


async def _delete(client: Client, child: AnyObject) -> bool:
    try:
        # Said aloud, since a Job would otherwise leave its pods behind.
        await client.delete(child, propagation="Background", missing_ok=True)
    except Conflict:
        return False
    return True


def _view(cache: Cache, wanted: type[Resource] | Kind, owner: AnyObject, manager: str) -> View[Any]:
    kind = kind_of(wanted)
    # The children of a cluster-scoped owner may be anywhere, so those of the namespaces that are followed are known.
    view = cache.whole_view(kind, owner.namespace) if owner.namespace else cache.view(kind)
    if view is None:
        raise ValueError(f"prune of {kind.kind} needs its objects in the cache: declare it with owns({kind.kind})")
    if view.options.manager != manager:
        raise ValueError(f"prune of {kind.kind} needs CacheOptions(manager={manager!r}), to see what was applied")
    return view.reading(Unstructured if isinstance(wanted, Kind) else wanted)


def _name_of(obj: AnyObject) -> Named:
    return split_api_version(obj.api_version)[0], obj.kind, obj.key
