"""The bus of a Redis cluster in memory: what servers know of each other, and how they learn it, as Redis 6.2 does.

Every server has its own table of owners, in which a slot has one owner at most. A claim replaces another one only by a
later epoch; whoever claims slots that others know of a later epoch is told so. Nothing here knows what is really true.
"""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from konverge_operators.redis.cluster.engine import Peer
from konverge_operators.redis.cluster.slots import SLOTS

__all__ = [
    "FakeNode",
    "assign",
    "follow",
    "hear",
    "mark_foreign_keys",
    "promote",
    "raise_epoch",
    "slot_of",
    "votes_for",
]

_NONE: frozenset[int] = frozenset()


@dataclass
class FakeNode:
    """One server, which belongs to a pod name. `host` is "" while it does not run."""

    pod: str
    id: str
    host: str = ""
    epoch: int = 0
    current_epoch: int = 0
    primary: str = ""
    primary_host: str = ""  # where it replicates, if that is not the address of its primary that it knows
    was_synced: bool = False  # since it started: else it does not stand for election
    offset: int = 0  # of the writes that it has, since its primary started
    slots: frozenset[int] = _NONE
    keys: dict[int, frozenset[str]] = field(default_factory=dict)  # replaced, never changed: replicas share it
    migrating: dict[int, str] = field(default_factory=dict)
    importing: dict[int, str] = field(default_factory=dict)
    known: dict[str, Peer] = field(default_factory=dict)
    banned: set[str] = field(default_factory=set)
    passwords: frozenset[str] = frozenset()  # hashes; without any, all are accepted
    primary_password: str = ""

    def claim(self) -> tuple[str, int, frozenset[int]]:
        """Return whose slots its messages claim, with their epoch: its own, or those of its primary."""
        if not self.primary:
            return self.id, self.epoch, self.slots
        peer = self.known.get(self.primary)
        return self.primary, peer.epoch if peer else 0, peer.slots if peer else _NONE

    def owners(self) -> Iterator[tuple[str, int, frozenset[int]]]:
        """Return the owners of slots that it knows, with their epochs."""
        if self.slots:
            yield self.id, self.epoch, self.slots
        for id_, peer in self.known.items():
            if peer.slots:
                yield id_, peer.epoch, peer.slots


def slot_of(key: str) -> int:
    """Return the slot of a key without braces."""
    return crc_hqx(key.encode(), 0) % SLOTS


def hear(one: FakeNode, two: FakeNode) -> bool:
    """Process a message of another node; report whether anything was learned."""
    before, peer = (one.current_epoch, one.epoch), one.known[two.id]
    owner, epoch, slots = two.claim()
    one.current_epoch = max(one.current_epoch, two.current_epoch, epoch)
    changed = (peer.host, peer.primary) != (two.host, two.primary) or peer.epoch < epoch
    if changed:
        kept = _NONE if two.primary else peer.slots
        one.known[two.id] = Peer(two.host, two.primary, kept, epoch=max(peer.epoch, epoch))
    if one.primary == two.id and peer.host != two.host:
        one.primary_host = ""
    if not two.primary:
        changed |= _rebind(one, two.id, epoch, slots)
        if not one.primary and one.epoch == epoch and one.id < two.id:
            one.current_epoch += 1
            one.epoch = one.current_epoch
    if one.id != owner and (owner not in one.known or one.known[owner].slots is not slots):
        changed |= _object(one, two, owner, epoch, slots)
    return changed or before != (one.current_epoch, one.epoch)


def _object(one: FakeNode, two: FakeNode, owner: str, epoch: int, slots: frozenset[int]) -> bool:
    """Tell a node of the owners of slots that it claims, if their epochs are later (UPDATE)."""
    changed = False
    for id_, later, owned in list(one.owners()):
        known = two.known.get(id_)
        if id_ != owner and later > epoch and owned & slots and known is not None and known.epoch < later:
            two.known[id_] = replace(known, primary="", epoch=later)
            two.current_epoch = max(two.current_epoch, later)
            _rebind(two, id_, later, owned)
            changed = True
    return changed


def _rebind(one: FakeNode, id_: str, epoch: int, slots: frozenset[int]) -> bool:
    """Record the slots that a node claims, where no later epoch says otherwise and none is being imported."""
    peer = one.known[id_]
    if peer.slots is slots:
        return False
    new = slots - peer.slots - one.importing.keys()
    for owner, other, owned in list(one.owners()) if new else ():
        if owner != id_ and other >= epoch:
            new -= owned
    if new:
        assign(one, id_, new)
    owned = one.known[id_].slots
    if owned == slots:
        one.known[id_] = replace(one.known[id_], slots=slots)
    return bool(new)


def assign(one: FakeNode, id_: str, slots: frozenset[int]) -> None:
    """Record another owner of slots. One whose primary, or who itself, has no slots left replicates the new owner."""
    lost = one.slots & slots
    primary = one.primary or one.id
    is_hit = bool(lost)
    one.slots -= lost
    for owner, peer in list(one.known.items()):
        if owner != id_ and peer.slots & slots:
            one.known[owner] = replace(peer, slots=peer.slots - slots)
            is_hit |= owner == primary
    one.known[id_] = replace(one.known[id_], slots=one.known[id_].slots | slots)
    left = one.slots if primary == one.id else one.known[primary].slots if primary in one.known else _NONE
    if is_hit and not left:
        follow(one, id_)
    elif lost:
        one.keys = {slot: keys for slot, keys in one.keys.items() if slot not in lost}


def mark_foreign_keys(node: FakeNode) -> None:
    """Mark slots of others as importing whose keys a primary has when it starts; those without an owner are its own."""
    owners = {slot: id_ for id_, _, owned in node.owners() for slot in owned}
    for slot in [slot for slot, keys in node.keys.items() if keys] if not node.primary else ():
        if slot not in owners:
            node.slots |= {slot}
        elif owners[slot] != node.id:
            node.importing.setdefault(slot, owners[slot])


def follow(node: FakeNode, primary: str) -> None:
    """Make a node a replica: a primary loses its marks and slots. Its keys are replaced once it reaches the new one."""
    if not node.primary:
        node.migrating.clear()
        node.importing.clear()
    if node.primary != primary:
        node.was_synced = False
    node.primary, node.primary_host, node.slots = primary, "", _NONE


def promote(node: FakeNode) -> None:
    """Make a replica the owner of the slots that it knows of its primary."""
    peer = node.known[node.primary]
    node.known[node.primary] = replace(peer, slots=_NONE)
    node.primary, node.primary_host, node.slots = "", "", peer.slots


def raise_epoch(node: FakeNode) -> None:
    """Set a later epoch than all that a node knows, unless it has the last one alone."""
    last = max(node.current_epoch, *(peer.epoch for peer in node.known.values()), 0)
    if node.epoch == 0 or node.epoch != last:
        node.current_epoch = node.epoch = 1 + last


def votes_for(candidate: FakeNode, voters: Collection[FakeNode]) -> bool:
    """Report whether most primaries with slots that a replica knows vote for it.

    One denies its vote that knows a later owner of slots which the candidate would get.
    """
    _, epoch, slots = candidate.claim()
    size = sum(1 for id_, _, _ in candidate.owners() if id_ != candidate.id)
    votes = [
        one
        for one in voters
        if one.slots and not any(later > epoch and owned & slots for _, later, owned in one.owners())
    ]
    return bool(slots) and 2 * len(votes) > size
