"""Families of owners and dependents without a server: a small simulation executes the actions in any order."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from konverge.objects import Key, Kind, Scope
from konverge_cluster.garbage import Action, GraphNode, OwnerGraph, OwnerReference, OwnerState, required_actions
from konverge_cluster.garbage.actions import Delete, Enqueue, RemoveFinalizer, RemoveOwners
from ownerships import CLUSTER_SCOPED, Family, Policy, Tie

FINALIZERS = {"Background": (), "Foreground": ("foregroundDeletion",), "Orphan": ("orphan",)}


class World:
    """Nodes as a server would store them; `pending` are the uids that the graph wants processed."""

    def __init__(self, family: Family) -> None:
        self.graph = OwnerGraph()
        self.nodes: dict[str, GraphNode] = {}
        self.pending: list[str] = []
        self.passes = 0
        for number, member in enumerate(family.members):
            scope = Scope.CLUSTER if member.kind in CLUSTER_SCOPED else Scope.NAMESPACED
            kind = Kind("", "v1", member.kind, member.kind.lower(), scope)
            owners = tuple(_reference(family, tie) for tie in member.ties)
            key = Key("" if scope is Scope.CLUSTER else "default", f"m{number}")
            finalizers = ("hold",) if member.held else ()
            self.store(GraphNode(uid=uid_of(number), kind=kind, key=key, owners=owners, finalizers=finalizers))

    def store(self, node: GraphNode) -> None:
        if node.being_deleted and not node.finalizers:
            del self.nodes[node.uid]
            self.pending += self.graph.remove(node.uid)
            return
        self.nodes[node.uid] = node
        self.pending += self.graph.put(node)

    def delete(self, uid: str, policy: Policy) -> None:
        node = self.nodes.get(uid)
        if node is None:
            return
        other_finalizers = tuple(one for one in node.finalizers if one not in ("orphan", "foregroundDeletion"))
        self.store(replace(node, finalizers=(*other_finalizers, *FINALIZERS[policy]), being_deleted=True))

    def hold(self, uid: str) -> None:
        self.store(replace(self.nodes[uid], finalizers=("hold",)))

    def release(self, uid: str) -> None:
        node = self.nodes.get(uid)
        if node is not None:
            self.store(replace(node, finalizers=tuple(one for one in node.finalizers if one != "hold")))

    def owner_state(self, owner: OwnerReference) -> OwnerState:
        found = self.nodes.get(owner.uid)
        if found is None:
            return OwnerState.ABSENT
        return OwnerState.WAITING if found.is_waiting_for_dependents else OwnerState.SOLID

    def run(self, random: Random) -> None:
        """Process nodes in any order until none is pending."""
        while self.pending:
            uid = self.pending.pop(random.randrange(len(self.pending)))
            node = self.nodes.get(uid)
            if node is None:
                continue
            owner_states = {owner: self.owner_state(owner) for owner in node.owners}
            for action in required_actions(node, self.graph, owner_states):
                self.execute(action)
            self.passes += 1
            assert self.passes < 1000, "it never converges"

    def execute(self, action: Action) -> None:
        if isinstance(action, Enqueue):
            self.pending.append(action.uid)
            return
        node = self.nodes.get(action.node.uid)
        if node is None:
            return
        if isinstance(action, Delete):
            self.delete(node.uid, action.propagation)
        elif isinstance(action, RemoveFinalizer):
            self.store(replace(node, finalizers=tuple(one for one in node.finalizers if one != action.finalizer)))
        elif isinstance(action, RemoveOwners):
            self.store(replace(node, owners=tuple(one for one in node.owners if one.uid not in action.uids)))
        else:
            self.store(replace(node, owners=tuple(replace(one, block_owner_deletion=False) for one in node.owners)))


def _reference(family: Family, tie: Tie) -> OwnerReference:
    kind = family.members[tie.owner].kind
    return OwnerReference("v1", kind, f"m{tie.owner}", uid_of(tie.owner, tie.wrong), None, tie.blocks)


def uid_of(number: int, wrong: bool = False) -> str:
    return f"wrong-{number}" if wrong else f"u{number}"


def is_determined(family: Family, orders: int = 20) -> bool:
    """Report whether the remainder of a family is independent of the processing order, as it may be on any server."""
    left = []
    for number in range(orders):
        world, order = World(family), Random(number)
        for uid in world.nodes:
            world.hold(uid)
        world.run(order)
        for death in family.deaths:
            world.delete(uid_of(death[0]), death[1])
            world.run(order)
        for index, member in enumerate(family.members):
            if not member.held:
                world.release(uid_of(index))
                world.run(order)
        left.append({uid: (node.being_deleted, sorted(node.finalizers)) for uid, node in world.nodes.items()})
    return all(one == left[0] for one in left)
