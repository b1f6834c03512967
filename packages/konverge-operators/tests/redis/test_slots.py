"""The rebalancing plan: every slot keeps exactly one owner, shares are even, and no plan has fewer moves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from konverge_operators.redis.cluster.slots import SLOTS, initial_slots, is_balanced, plan_moves

NODES = [f"node-{number}" for number in range(8)]


@st.composite
def assignments(draw: st.DrawFn) -> tuple[dict[str, frozenset[int]], list[str]]:
    """Return the slots of some nodes, and the nodes to keep, which may be others."""
    bounds = sorted(draw(st.lists(st.integers(0, SLOTS), max_size=12)))
    owners = draw(st.lists(st.sampled_from(NODES), min_size=len(bounds) + 1, max_size=len(bounds) + 1))
    owned: dict[str, frozenset[int]] = {}
    for first, last, node in zip([0, *bounds], [*bounds, SLOTS], owners, strict=True):
        owned[node] = owned.get(node, frozenset()) | frozenset(range(first, last))
    keep = draw(st.lists(st.sampled_from(NODES), min_size=1, unique=True))
    return owned, keep


@given(assignments())
def test_a_plan_ends_balanced_with_one_owner_for_every_slot(case: tuple[dict[str, frozenset[int]], list[str]]) -> None:
    owned, keep = case
    owners = {slot: node for node, slots in owned.items() for slot in slots}
    moves = plan_moves(owned, keep)
    assert len({move.slot for move in moves}) == len(moves)
    for move in moves:
        assert owners[move.slot] == move.source
        owners[move.slot] = move.target
    assert len(owners) == SLOTS
    counts = {node: sum(owner == node for owner in owners.values()) for node in keep}
    assert sum(counts.values()) == SLOTS
    assert max(counts.values()) - min(counts.values()) <= 1
    after = {node: frozenset(slot for slot, owner in owners.items() if owner == node) for node in keep}
    assert is_balanced(after, keep, threshold=1)
    assert plan_moves(after, keep) == []


@given(assignments())
def test_no_even_assignment_takes_fewer_moves(case: tuple[dict[str, frozenset[int]], list[str]]) -> None:
    owned, keep = case
    share, rest = divmod(SLOTS, len(keep))
    have = sorted((len(owned.get(node, ())) for node in keep), reverse=True)
    kept = sum(min(count, share + (place < rest)) for place, count in enumerate(have))
    assert len(plan_moves(owned, keep)) == SLOTS - kept


@given(assignments())
def test_an_interrupted_plan_continues_with_its_remaining_moves(
    case: tuple[dict[str, frozenset[int]], list[str]],
) -> None:
    owned, keep = case
    moves = plan_moves(owned, keep)
    half = len(moves) // 2
    state = {node: set(owned.get(node, ())) for node in {*owned, *keep}}
    for move in moves[:half]:
        state[move.source].remove(move.slot)
        state[move.target].add(move.slot)
    rest = plan_moves({node: frozenset(slots) for node, slots in state.items()}, keep)
    assert len(rest) <= len(moves) - half


def test_a_new_cluster_has_all_slots_in_even_ranges() -> None:
    for shards in range(3, 20):
        found = initial_slots(shards)
        assert sorted(slot for slots in found for slot in slots) == list(range(SLOTS))
        assert max(map(len, found)) - min(map(len, found)) <= 1
