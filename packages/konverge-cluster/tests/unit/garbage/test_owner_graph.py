"""The owner graph and its actions, without a server: a small simulation executes them in any order."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import Key, Kind
from konverge_cluster.garbage import GraphNode, OwnerGraph, OwnerReference, OwnerState
from owner_worlds import World, uid_of
from ownerships import family_from


@given(st.randoms(use_true_random=False), st.randoms(use_true_random=False))
def test_whatever_is_deleted_no_node_is_left_with_absent_owners(family: Random, order: Random) -> None:
    drawn = family_from(family)
    world = World(drawn)
    world.run(order)
    for number, policy in drawn.deaths:
        world.delete(uid_of(number), policy)
        world.run(order)

    for node in world.nodes.values():
        if node.being_deleted:
            # Only another finalizer holds it, or it waits for a dependent that is held by one.
            assert "hold" in node.finalizers or any(one.blocks(node.uid) for one in world.nodes.values())
        else:
            assert {world.owner_state(owner) for owner in node.owners} <= {OwnerState.SOLID}


def test_an_irrelevant_change_affects_no_node() -> None:
    graph = OwnerGraph()
    kind = Kind("", "v1", "ConfigMap", "configmaps")
    owner = GraphNode(uid="o", kind=kind, key=Key("default", "o"))
    child = GraphNode(
        uid="c", kind=kind, key=Key("default", "c"), owners=(OwnerReference("v1", "ConfigMap", "o", "o"),)
    )

    assert graph.put(child) == ["c"]
    assert graph.put(owner) == ["c"]
    assert graph.put(replace(child, version="2", finalizers=("x",))) == []
    assert graph.remove("o") == ["c"]
    assert graph.is_absent("o")
