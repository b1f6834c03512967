"""The graph of owners and dependents that garbage collection decides by.

This module keeps state; it does not read or write objects. Rules that hold here:

1. Nodes are identified by uid. A node is a dependent of every uid in its owner references, whatever else they contain.
2. Each change returns the uids to process: the nodes that may have to be deleted, or may be deleted now, because of it.
3. A deleted uid never returns: it is absent permanently, and the server need not be asked about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from konverge.objects import Key, Kind

__all__ = ["GraphNode", "OwnerGraph", "OwnerReference"]

_MAX_ABSENT: Final = 10_000
"""How many absent uids are cached; one that was evicted costs a request to the server."""


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """One owner reference."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """The metadata of an object that garbage collection needs.

    `orphans_dependents` and `waits_for_dependents` are its finalizers: dependents lose their reference, or go first.
    """

    uid: str
    kind: Kind
    key: Key
    version: str = ""
    owners: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    being_deleted: bool = False

    @property
    def orphans_dependents(self) -> bool:
        """Whether it has the finalizer that orphans its dependents."""
        return "orphan" in self.finalizers

    @property
    def waits_for_dependents(self) -> bool:
        """Whether it has the finalizer that keeps it until its dependents are deleted."""
        return "foregroundDeletion" in self.finalizers

    @property
    def is_waiting_for_dependents(self) -> bool:
        """Whether it is being deleted and waits for its dependents."""
        return self.being_deleted and self.waits_for_dependents

    def blocks(self, uid: str) -> bool:
        """Report whether it blocks the deletion of an owner that waits for its dependents."""
        return any(owner.uid == uid and owner.block_owner_deletion for owner in self.owners)

    def matches_reference(self, owner: OwnerReference, namespace: str) -> bool:
        """Report whether every field of an owner reference in a namespace matches this node."""
        named = (owner.uid, owner.name, owner.kind, owner.api_version)
        own = (self.uid, self.key.name, self.kind.kind, self.kind.api_version)
        return named == own and (not self.kind.namespaced or self.key.namespace == namespace)


class OwnerGraph:
    """Nodes by uid, and the dependents of each owner's uid."""

    def __init__(self) -> None:
        self._nodes: dict[str, GraphNode] = {}
        self._dependents: dict[str, dict[str, None]] = {}  # in the order of their creation
        self._absent: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, uid: str) -> GraphNode | None:
        """Return a node that was observed and not deleted since."""
        return self._nodes.get(uid)

    def is_absent(self, uid: str) -> bool:
        """Report whether the deletion of a uid was observed."""
        return uid in self._absent

    def dependents(self, uid: str) -> list[GraphNode]:
        """Return the nodes that have a uid as an owner."""
        return [self._nodes[one] for one in self._dependents.get(uid, ())]

    def of_kind(self, kind: Kind) -> list[GraphNode]:
        """Return all nodes of a kind."""
        return [node for node in self._nodes.values() if node.kind == kind]

    def put(self, node: GraphNode) -> list[str]:
        """Store a new state of a node; return the uids to process because of it."""
        before = self._nodes.get(node.uid)
        self._nodes[node.uid] = node
        self._link(node, before.owners if before is not None else ())
        return list(dict.fromkeys(self._affected(before, node)))

    def remove(self, uid: str) -> list[str]:
        """Record a deletion; return the uids to process because of it."""
        deleted = self._nodes.pop(uid, None)
        if deleted is None:
            return []
        self._unlink(uid, deleted.owners)
        self._absent[uid] = None
        if len(self._absent) > _MAX_ABSENT:
            del self._absent[next(iter(self._absent))]
        return [*self._dependents.get(uid, ()), *self._waiting_owners(deleted)]

    def _affected(self, before: GraphNode | None, node: GraphNode) -> Iterator[str]:
        if before is not None and _relevant_fields(before) == _relevant_fields(node):
            return
        if before is None or not before.is_waiting_for_dependents:
            # Dependents may come first and be processed before their owner is known, or before it waits.
            # They are processed before it: once its finalizer is deleted, those that do not block it would stay.
            yield from self._dependents.get(node.uid, ())
        if node.owners or node.being_deleted:
            yield node.uid
        yield from self._waiting_owners(before)
        yield from self._waiting_owners(node)

    def _waiting_owners(self, node: GraphNode | None) -> Iterator[str]:
        for owner in node.owners if node is not None else ():
            observed = self._nodes.get(owner.uid)
            if observed is not None and observed.being_deleted:
                yield owner.uid

    def _link(self, node: GraphNode, before: tuple[OwnerReference, ...]) -> None:
        named = {owner.uid for owner in node.owners}
        self._unlink(node.uid, tuple(owner for owner in before if owner.uid not in named))
        for uid in named:
            self._dependents.setdefault(uid, {})[node.uid] = None

    def _unlink(self, uid: str, owners: tuple[OwnerReference, ...]) -> None:
        for owner in owners:
            dependents = self._dependents.get(owner.uid)
            if dependents is not None:
                dependents.pop(uid, None)
                if not dependents:
                    del self._dependents[owner.uid]


def _relevant_fields(node: GraphNode) -> tuple[object, ...]:
    return node.owners, node.being_deleted, node.orphans_dependents, node.waits_for_dependents
