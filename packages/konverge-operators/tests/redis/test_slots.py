"""The rebalancing plan: one owner for every slot, shares by weight, no plan with fewer moves, few moves at a time."""

from __future__ import annotations

from itertools import combinations
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from konverge_operators.redis.cluster.slots import SLOTS, Move, batches, initial_slots, is_balanced, plan_moves

FEWER = 1000  # the plan does not depend on how many slots there are
NODES = [f"node-{number}" for number in range(8)]
Owned: TypeAlias = dict[str, frozenset[int]]
Case: TypeAlias = tuple[Owned, dict[str, int]]


@st.composite
def cases(draw: st.DrawFn, slots: int = FEWER) -> Case:
    """Return the slots of some nodes, and the weights of the nodes to keep, which may be others."""
    bounds = sorted(draw(st.lists(st.integers(0, slots), max_size=12)))
    owners = draw(st.lists(st.sampled_from(NODES), min_size=len(bounds) + 1, max_size=len(bounds) + 1))
    owned: Owned = {}
    for first, last, node in zip([0, *bounds], [*bounds, slots], owners, strict=True):
        owned[node] = owned.get(node, frozenset()) | frozenset(range(first, last))
    weights = st.sampled_from([1, 1, 1, 2, 3, 7, 100])
    return owned, draw(st.dictionaries(st.sampled_from(NODES), weights, min_size=1))


def moved(owned: Owned, moves: list[Move]) -> Owned:
    """Return the owners after some moves, each of which begins where its slot is."""
    owners = {slot: node for node, slots in owned.items() for slot in slots}
    for move in moves:
        assert owners[move.slot] == move.source != move.target
        owners[move.slot] = move.target
    return {node: frozenset(slot for slot, owner in owners.items() if owner == node) for node in set(owners.values())}


@given(cases())
def test_a_plan_gives_every_slot_one_owner_and_every_node_its_share(case: Case) -> None:
    owned, weights = case
    moves = plan_moves(owned, weights)
    assert len({move.slot for move in moves}) == len(moves)
    after = moved(owned, moves)
    assert after.keys() <= weights.keys()
    assert sorted(slot for slots in after.values() for slot in slots) == list(range(FEWER))
    for node, weight in weights.items():
        assert abs(len(after.get(node, ())) - FEWER * weight / sum(weights.values())) < 1
    assert is_balanced(after, weights, threshold=1)
    assert plan_moves(after, weights) == []


@given(cases(slots=40))
def test_no_assignment_of_the_same_shares_takes_fewer_moves(case: Case) -> None:
    owned, weights = case
    whole = sum(weights.values())
    least = {node: 40 * weight // whole for node, weight in weights.items()}
    may_have_more = [node for node, weight in weights.items() if 40 * weight % whole]
    kept = [
        sum(min(len(owned.get(node, ())), least[node] + (node in larger)) for node in weights)
        for larger in combinations(may_have_more, 40 - sum(least.values()))
    ]
    assert len(plan_moves(owned, weights)) == 40 - max(kept)


@given(cases(), st.floats(0, 1))
def test_an_interrupted_plan_continues_with_its_remaining_moves(case: Case, part: float) -> None:
    owned, weights = case
    moves = plan_moves(owned, weights)
    done = int(len(moves) * part)
    assert len(plan_moves(moved(owned, moves[:done]), weights)) == len(moves) - done


@given(cases(), st.integers(1, 1024))
def test_at_most_some_slots_move_at_a_time_between_two_nodes(case: Case, at_a_time: int) -> None:
    owned, weights = case
    moves = plan_moves(owned, weights)
    found = list(batches(moves, at_a_time=at_a_time))
    assert [move for batch in found for move in batch] == moves
    assert all(1 <= len(batch) <= at_a_time for batch in found)
    assert all(len({(move.source, move.target) for move in batch}) == 1 for batch in found)


@given(st.lists(st.integers(1, 100), min_size=3, max_size=20))
def test_a_new_cluster_has_all_slots_in_ranges_by_weight(weights: list[int]) -> None:
    found = initial_slots(weights)
    assert sorted(slot for slots in found for slot in slots) == list(range(SLOTS))
    for slots, weight in zip(found, weights, strict=True):
        assert abs(len(slots) - SLOTS * weight / sum(weights)) < 1
    owned = {f"node-{number}": slots for number, slots in enumerate(found)}
    assert is_balanced(owned, {f"node-{number}": weight for number, weight in enumerate(weights)}, threshold=1)
