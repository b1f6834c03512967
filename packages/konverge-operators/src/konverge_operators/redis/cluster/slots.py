"""The rebalancing plan: which slots move from which node to which, as a pure function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

__all__ = ["SLOTS", "Move", "batches", "initial_slots", "is_balanced", "plan_moves", "slot_counts"]

SLOTS = 16384


class Move(NamedTuple):
    """One slot that moves between two nodes, by id."""

    slot: int
    source: str
    target: str


def slot_counts(weights: Mapping[str, int], owned: Mapping[str, frozenset[int]]) -> dict[str, int]:
    """Return how many slots each node should have: its share by weight, rounded up where that saves a move."""
    every, whole = sum(map(len, owned.values())), sum(weights.values())
    shares = {node: divmod(every * weight, whole) for node, weight in weights.items()}

    def order(node: str) -> tuple[bool, int, str]:
        share, remainder = shares[node]
        return len(owned.get(node, ())) <= share, -remainder, node

    rest = every - sum(share for share, _ in shares.values())
    larger = set(sorted((node for node, (_, remainder) in shares.items() if remainder), key=order)[:rest])
    return {node: share + (node in larger) for node, (share, _) in shares.items()}


def plan_moves(owned: Mapping[str, frozenset[int]], weights: Mapping[str, int]) -> list[Move]:
    """Return the fewest moves after which the nodes with weights have all slots, each its share.

    `owned` has the slots of every node; no slot may have two owners. A node without weight ends without slots.
    """
    if not weights:
        return []
    counts = slot_counts(weights, owned)
    excess = [
        (slot, node)
        for node, slots in sorted(owned.items())
        for slot in sorted(slots, reverse=True)[: max(len(slots) - counts.get(node, 0), 0)]
    ]
    wanted = [node for node in weights for _ in range(counts[node] - len(owned.get(node, ())))]
    return [Move(slot, source, target) for (slot, source), target in zip(excess, wanted, strict=True)]


def batches(moves: Iterable[Move], *, at_a_time: int) -> Iterator[list[Move]]:
    """Return the moves of a plan in turn, those between two nodes together, at most some at a time."""
    for _, group in groupby(moves, key=lambda move: (move.source, move.target)):
        between = list(group)
        for first in range(0, len(between), at_a_time):
            yield between[first : first + at_a_time]


def is_balanced(owned: Mapping[str, frozenset[int]], weights: Mapping[str, int], *, threshold: int) -> bool:
    """Report whether the nodes with weights have all slots, none more than `threshold` percent off its share."""
    if any(slots for node, slots in owned.items() if node not in weights):
        return False
    every, whole = sum(map(len, owned.values())), sum(weights.values())
    shares = {node: every * weight / whole for node, weight in weights.items()}
    return all(
        abs(len(owned.get(node, ())) - share) <= max(share * threshold / 100, 1) for node, share in shares.items()
    )


def initial_slots(weights: Iterable[int]) -> list[frozenset[int]]:
    """Return the slots of each shard of a new cluster: a range for its weight."""
    sums = [0, *accumulate(weights)]
    bounds = [SLOTS * part // sums[-1] for part in sums]
    return [frozenset(range(first, last)) for first, last in pairwise(bounds)]
