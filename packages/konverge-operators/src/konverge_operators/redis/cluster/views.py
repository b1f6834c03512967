"""What is observed of a cluster in one reconcile: its pods, what their servers report, and what follows from that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from konverge_operators.redis.cluster.engine import Engine, NodeState, Server, Unreachable
from konverge_operators.redis.cluster.slots import SLOTS

__all__ = ["Member", "Node", "View", "expected_members", "is_empty", "observe"]


@dataclass(frozen=True)
class Member:
    """One pod of the cluster, whether or not it exists. `server` is None while it has no address.

    A excess member goes when its shard gets fewer replicas; an outdated one has an old template.
    """

    pod: str
    shard: int
    server: Server | None = None
    excess: bool = False
    outdated: bool = False


@dataclass(frozen=True)
class Node:
    """A member whose server replies."""

    member: Member
    server: Server
    state: NodeState

    @property
    def id(self) -> str:
        return self.state.id

    @property
    def shard(self) -> int:
        return self.member.shard


def expected_members(name: str, *, shards: int, per_shard: int, existing: Mapping[int, int]) -> list[Member]:
    """Return the members that a cluster should have, and those of StatefulSets that exist, by shard and replicas."""
    found: list[Member] = []
    for shard in sorted({*range(shards), *existing}):
        wanted = per_shard if shard < shards else 0
        ordinals = range(max(wanted, existing.get(shard, 0)))
        found += [Member(f"{name}-shard-{shard}-{one}", shard, excess=one >= wanted) for one in ordinals]
    return found


def is_empty(state: NodeState) -> bool:
    """Report whether a node never was part of a cluster, or was reset."""
    return not (state.slots or state.keys or state.epoch or state.peers or state.primary)


@dataclass(frozen=True)
class View:
    """The members of a cluster with `shards` desired shards, and the nodes among them that reply."""

    shards: int
    members: tuple[Member, ...]
    nodes: tuple[Node, ...]

    @cached_property
    def by_id(self) -> dict[str, Node]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def unreachable(self) -> list[Member]:
        found = {node.member.pod for node in self.nodes}
        return [member for member in self.members if member.pod not in found]

    @cached_property
    def active(self) -> list[Node]:
        """The nodes of the cluster, without those that were reset since their shard is removed."""
        return [node for node in self.nodes if node.shard < self.shards or not is_empty(node.state)]

    @cached_property
    def owners(self) -> dict[int, str]:
        """The owner of each slot."""
        return {slot: id_ for id_, slots in self.owned.items() for slot in slots}

    @cached_property
    def owned(self) -> dict[str, frozenset[int]]:
        """The slots of each node: the claim of the latest epoch counts, also that of a node which does not reply.

        Else a primary that was replaced and comes back would get its slots again, when its successor is lost.
        """
        claims = [(node.state.epoch, node.id, node.state.slots) for node in self.nodes]
        claims += [item for node in self.nodes for item in self._lost_claims(node)]
        found: dict[str, frozenset[int]] = {}
        taken: set[int] = set()
        for _, id_, slots in sorted(claims, key=lambda claim: (-claim[0], claim[1] not in self.by_id)):
            if left := slots - taken:
                found[id_] = found.get(id_, frozenset()) | left
                taken |= left
        return found

    def _lost_claims(self, node: Node) -> list[tuple[int, str, frozenset[int]]]:
        """Return epoch, id and slots of nodes that do not reply, as a node knows them."""
        peers = node.state.peers.items()
        return [(peer.epoch, id_, peer.slots) for id_, peer in peers if id_ not in self.by_id]

    @property
    def covered(self) -> int:
        """How many slots have an owner that replies."""
        return sum(len(slots) for node, slots in self.owned.items() if node in self.by_id)

    @property
    def is_covered(self) -> bool:
        return self.covered == SLOTS

    @property
    def is_consistent(self) -> bool:
        """Report whether all nodes know the same owners of slots: a client may ask any of them."""
        return all(self._knows_owners(node) for node in self.active)

    def _knows_owners(self, node: Node) -> bool:
        known = {id_: peer.slots for id_, peer in node.state.peers.items()} | {node.id: node.state.slots}
        return all(known.get(id_) == slots for id_, slots in self.owned.items())

    def shard(self, number: int) -> list[Node]:
        return [node for node in self.nodes if node.shard == number]

    def primary_of(self, number: int) -> Node | None:
        """Return the primary of a shard: the one with most slots, else the first; None during an election."""
        nodes = self.shard(number)
        if any(node.state.primary in self.owned.keys() - self.by_id.keys() for node in nodes):
            return None
        primaries = [node for node in nodes if not node.state.primary]
        return max(primaries, key=lambda node: len(self.owned.get(node.id, ())), default=None)

    def primary_by_id(self, id_: str) -> Node | None:
        """Return a node by its id, or the primary that it replicates now; None if that one does not reply."""
        node = self.by_id.get(id_)
        return node if node is None or not node.state.primary else self.by_id.get(node.state.primary)

    def has_addresses(self, node: Node, others: Iterable[Node]) -> bool:
        """Report whether a node knows others by their current addresses."""
        peers = node.state.peers
        return all(one.id in peers and peers[one.id].host == one.server.host for one in others if one.id != node.id)


async def observe(members: Iterable[Member], engine: Engine, *, shards: int) -> View:
    """Return what the servers of the members report now."""

    async def ask(member: Member) -> Node | None:
        if member.server is None:
            return None
        try:
            return Node(member, member.server, await engine.state(member.server))
        except Unreachable:
            return None

    every = tuple(members)
    found = await asyncio.gather(*map(ask, every))
    return View(shards, every, tuple(node for node in found if node is not None))
