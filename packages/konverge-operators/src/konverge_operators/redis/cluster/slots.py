"""The rebalancing plan: which slots move from which node to which, as a pure function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

__all__ = ["SLOTS", "Move", "initial_slots", "is_balanced", "plan_moves", "slot_counts"]

SLOTS = 16384


class Move(NamedTuple):
    """One slot that moves between two nodes, by id."""

    slot: int
    source: str
    target: str


def slot_counts(nodes: Iterable[str], owned: Mapping[str, frozenset[int]]) -> dict[str, int]:
    """Return how many slots each node should have: as even as possible, the larger shares where there are most now."""
    order = sorted(nodes, key=lambda node: (-len(owned.get(node, ())), node))
    share, rest = divmod(sum(map(len, owned.values())), len(order))
    return {node: share + (place < rest) for place, node in enumerate(order)}


def plan_moves(owned: Mapping[str, frozenset[int]], keep: Iterable[str]) -> list[Move]:
    """Return the fewest moves after which the nodes of `keep` have all slots, as evenly as possible.

    `owned` has the slots of every node; no slot may have two owners. A node that is not kept ends without slots.
    """
    targets = list(keep)
    if not targets:
        return []
    counts = slot_counts(targets, owned)
    excess = [
        (slot, node)
        for node, slots in sorted(owned.items())
        for slot in sorted(slots, reverse=True)[: max(len(slots) - counts.get(node, 0), 0)]
    ]
    wanted = [node for node in targets for _ in range(counts[node] - len(owned.get(node, ())))]
    return [Move(slot, source, target) for (slot, source), target in zip(excess, wanted, strict=True)]


def is_balanced(owned: Mapping[str, frozenset[int]], keep: Iterable[str], *, threshold: int) -> bool:
    """Report whether the kept nodes have all slots, none more than `threshold` percent off its share."""
    targets = set(keep)
    if any(slots for node, slots in owned.items() if node not in targets):
        return False
    share = sum(map(len, owned.values())) / max(len(targets), 1)
    return all(abs(len(owned.get(node, ())) - share) <= max(share * threshold / 100, 1) for node in targets)


def initial_slots(shards: int) -> list[frozenset[int]]:
    """Return the slots of each shard of a new cluster: ranges that differ by at most one slot."""
    bounds = [SLOTS * shard // shards for shard in range(shards + 1)]
    return [frozenset(range(first, last)) for first, last in pairwise(bounds)]
