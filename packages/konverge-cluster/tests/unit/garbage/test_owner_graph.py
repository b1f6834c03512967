"""The owner graph and the verdicts on it, without a server: a small world obeys them in any order."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import Key, Kind
from konverge_cluster.garbage import OwnerGraph, Owning, Standing, Thing
from owner_worlds import World, uid_of
from ownerships import family_from


@given(st.randoms(use_true_random=False), st.randoms(use_true_random=False))
def test_whatever_is_deleted_nothing_is_left_without_an_owner_that_it_names(family: Random, order: Random) -> None:
    drawn = family_from(family)
    world = World(drawn)
    world.run(order)
    for number, policy in drawn.deaths:
        world.delete(uid_of(number), policy)
        world.run(order)

    for thing in world.things.values():
        if thing.deleting:
            # Only somebody else's finalizer holds it, or it waits for one that is held so.
            assert "hold" in thing.finalizers or any(one.blocks(thing.uid) for one in world.things.values())
        else:
            assert {world.standing(owner) for owner in thing.owners} <= {Standing.SOLID}


def test_a_change_that_is_none_of_ours_touches_nobody() -> None:
    graph = OwnerGraph()
    kind = Kind("", "v1", "ConfigMap", "configmaps")
    owner = Thing(uid="o", kind=kind, key=Key("default", "o"))
    child = Thing(uid="c", kind=kind, key=Key("default", "c"), owners=(Owning("v1", "ConfigMap", "o", "o"),))

    assert graph.put(child) == ["c"]
    assert graph.put(owner) == ["c"]
    assert graph.put(replace(child, version="2", finalizers=("x",))) == []
    assert graph.remove("o") == ["c"]
    assert graph.is_absent("o")
