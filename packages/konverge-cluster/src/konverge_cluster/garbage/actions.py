"""The actions for a node: plain functions of the graph and of the state of its owners.

| the node | actions |
|---|---|
| is being deleted and orphans | its dependents lose the reference, then it loses the finalizer |
| is being deleted and waits | once no dependent blocks it, it loses the finalizer; until then they are processed |
| is being deleted otherwise | none: other finalizers hold it |
| has a solid owner | it stays, without its references to owners that are absent or waiting |
| has waiting owners, and dependents | it is deleted in the foreground; in a cycle it first unblocks its owners |
| has only absent or waiting owners | it is deleted, by the policy of its finalizers, else in the background |
| has no owners | it stays |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

from konverge_cluster.garbage.graph import GraphNode, OwnerGraph, OwnerReference

__all__ = [
    "Action",
    "Delete",
    "Enqueue",
    "OwnerState",
    "RemoveFinalizer",
    "RemoveOwners",
    "UnblockOwners",
    "required_actions",
]


class OwnerState(Enum):
    """The state of an owner, from the point of view of a dependent."""

    SOLID = "exists, and stays or goes without waiting for dependents"
    ABSENT = "does not exist"
    WAITING = "is being deleted and waits for its dependents"


@dataclass(frozen=True, slots=True)
class RemoveOwners:
    """Remove the references to some owners from a node."""

    node: GraphNode
    uids: frozenset[str]


@dataclass(frozen=True, slots=True)
class UnblockOwners:
    """Set blockOwnerDeletion to false in all owner references of a node."""

    node: GraphNode


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a node if it is still in the observed state."""

    node: GraphNode
    propagation: Literal["Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Remove a finalizer from a node that is being deleted."""

    node: GraphNode
    finalizer: str


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Process another node."""

    uid: str


Action: TypeAlias = RemoveOwners | UnblockOwners | Delete | RemoveFinalizer | Enqueue


def required_actions(
    node: GraphNode, graph: OwnerGraph, owner_states: Mapping[OwnerReference, OwnerState]
) -> list[Action]:
    """Return the actions in order; `owner_states` has the state of each owner unless the node is being deleted."""
    if node.being_deleted:
        return _finalizer_actions(node, graph.dependents(node.uid))
    if not node.owners:
        return []
    by_state = {state: [one for one in node.owners if owner_states[one] is state] for state in OwnerState}
    waiting = by_state[OwnerState.WAITING]
    if by_state[OwnerState.SOLID]:
        # A reference to a waiting owner would block it for ever.
        removed = frozenset(one.uid for one in (*by_state[OwnerState.ABSENT], *waiting))
        return [RemoveOwners(node, removed)] if removed else []
    if waiting and graph.dependents(node.uid):
        return _foreground_actions(node, graph.dependents(node.uid))
    return [Delete(node, _policy(node))]


def _finalizer_actions(node: GraphNode, dependents: list[GraphNode]) -> list[Action]:
    if node.orphans_dependents:
        own = frozenset({node.uid})
        return [*(RemoveOwners(one, own) for one in dependents), RemoveFinalizer(node, "orphan")]
    if not node.waits_for_dependents:
        return []
    blocking = [one for one in dependents if one.blocks(node.uid)]
    if not blocking:
        return [RemoveFinalizer(node, "foregroundDeletion")]
    return [Enqueue(one.uid) for one in blocking if not one.is_waiting_for_dependents]


def _foreground_actions(node: GraphNode, dependents: list[GraphNode]) -> list[Action]:
    delete = Delete(node, "Foreground")
    in_cycle = any(one.is_waiting_for_dependents for one in dependents)
    return [UnblockOwners(node), delete] if in_cycle else [delete]


def _policy(node: GraphNode) -> Literal["Background", "Foreground", "Orphan"]:
    if node.orphans_dependents:
        return "Orphan"
    return "Foreground" if node.waits_for_dependents else "Background"
