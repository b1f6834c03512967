"""Families of owners in a world without a server, that obeys verdicts in any order."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from konverge.objects import Key, Kind, Scope
from konverge_cluster.garbage import OwnerGraph, Owning, Standing, Thing, Verdict, verdict_on
from konverge_cluster.garbage.verdicts import Delete, DropFinalizer, DropOwners, Look
from ownerships import CLUSTER_SCOPED, Family, Policy, Tie

FINALIZERS = {"Background": (), "Foreground": ("foregroundDeletion",), "Orphan": ("orphan",)}


class World:
    """Things as a server would keep them; `pending` are those that the graph wants looked at."""

    def __init__(self, family: Family) -> None:
        self.graph = OwnerGraph()
        self.things: dict[str, Thing] = {}
        self.pending: list[str] = []
        self.verdicts = 0
        for number, member in enumerate(family.members):
            scope = Scope.CLUSTER if member.kind in CLUSTER_SCOPED else Scope.NAMESPACED
            kind = Kind("", "v1", member.kind, member.kind.lower(), scope)
            owners = tuple(_owning(family, tie) for tie in member.ties)
            key = Key("" if scope is Scope.CLUSTER else "default", f"m{number}")
            finalizers = ("hold",) if member.held else ()
            self.store(Thing(uid=uid_of(number), kind=kind, key=key, owners=owners, finalizers=finalizers))

    def store(self, thing: Thing) -> None:
        if thing.deleting and not thing.finalizers:
            del self.things[thing.uid]
            self.pending += self.graph.remove(thing.uid)
            return
        self.things[thing.uid] = thing
        self.pending += self.graph.put(thing)

    def delete(self, uid: str, policy: Policy) -> None:
        thing = self.things.get(uid)
        if thing is None:
            return
        kept = tuple(one for one in thing.finalizers if one not in ("orphan", "foregroundDeletion"))
        self.store(replace(thing, finalizers=(*kept, *FINALIZERS[policy]), deleting=True))

    def hold(self, uid: str) -> None:
        self.store(replace(self.things[uid], finalizers=("hold",)))

    def release(self, uid: str) -> None:
        thing = self.things.get(uid)
        if thing is not None:
            self.store(replace(thing, finalizers=tuple(one for one in thing.finalizers if one != "hold")))

    def standing(self, owner: Owning) -> Standing:
        found = self.things.get(owner.uid)
        if found is None:
            return Standing.ABSENT
        return Standing.WAITING if found.is_waiting else Standing.SOLID

    def run(self, random: Random) -> None:
        """Look at things in any order until nothing is left to look at."""
        while self.pending:
            uid = self.pending.pop(random.randrange(len(self.pending)))
            thing = self.things.get(uid)
            if thing is None:
                continue
            standings = {owner: self.standing(owner) for owner in thing.owners}
            for verdict in verdict_on(thing, self.graph, standings):
                self.obey(verdict)
            self.verdicts += 1
            assert self.verdicts < 1000, "it never comes to rest"

    def obey(self, verdict: Verdict) -> None:
        if isinstance(verdict, Look):
            self.pending.append(verdict.uid)
            return
        thing = self.things.get(verdict.thing.uid)
        if thing is None:
            return
        if isinstance(verdict, Delete):
            self.delete(thing.uid, verdict.propagation)
        elif isinstance(verdict, DropFinalizer):
            self.store(replace(thing, finalizers=tuple(one for one in thing.finalizers if one != verdict.finalizer)))
        elif isinstance(verdict, DropOwners):
            self.store(replace(thing, owners=tuple(one for one in thing.owners if one.uid not in verdict.uids)))
        else:
            self.store(replace(thing, owners=tuple(replace(one, blocks=False) for one in thing.owners)))


def _owning(family: Family, tie: Tie) -> Owning:
    kind = family.members[tie.owner].kind
    return Owning("v1", kind, f"m{tie.owner}", uid_of(tie.owner, tie.wrong), None, tie.blocks)


def uid_of(number: int, wrong: bool = False) -> str:
    return f"wrong-{number}" if wrong else f"u{number}"


def is_determined(family: Family, orders: int = 20) -> bool:
    """Tell whether what is left of a family does not depend on who is looked at first, as it may on any server."""
    left = []
    for number in range(orders):
        world, order = World(family), Random(number)
        for uid in world.things:
            world.hold(uid)
        world.run(order)
        for death in family.deaths:
            world.delete(uid_of(death[0]), death[1])
            world.run(order)
        for index, member in enumerate(family.members):
            if not member.held:
                world.release(uid_of(index))
                world.run(order)
        left.append({uid: (thing.deleting, sorted(thing.finalizers)) for uid, thing in world.things.items()})
    return all(one == left[0] for one in left)
