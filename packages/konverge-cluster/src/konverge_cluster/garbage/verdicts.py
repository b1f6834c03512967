"""What becomes of a thing: plain functions of the graph and of what is known about its owners.

| the thing | what becomes of it |
|---|---|
| is being deleted and orphans | its dependents lose the reference, then it loses the finalizer |
| is being deleted and waits | once no dependent blocks it, it loses the finalizer; until then they are looked at |
| is being deleted otherwise | nothing: who holds it lets it go |
| has an owner that stays | it stays, without its references to owners that are absent or waiting |
| has owners that wait, and dependents | it goes, and waits for those itself; in a ring it lets go of its owners first |
| has only absent or waiting owners | it goes, by the policy that its finalizers ask for, else in the background |
| has no owners | it stays |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

from konverge_cluster.garbage.graph import OwnerGraph, Owning, Thing

__all__ = ["Delete", "DropFinalizer", "DropOwners", "Look", "Standing", "Unblock", "Verdict", "verdict_on"]


class Standing(Enum):
    """How an owner stands to a thing that refers to it."""

    SOLID = "it is there, and stays or goes without waiting"
    ABSENT = "it is not there"
    WAITING = "it is being deleted and waits for its dependents"


@dataclass(frozen=True, slots=True)
class DropOwners:
    """Take the references to some owners from a thing."""

    thing: Thing
    uids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Unblock:
    """Let the references of a thing hold up nobody."""

    thing: Thing


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a thing, if it is still as it was seen."""

    thing: Thing
    propagation: Literal["Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True)
class DropFinalizer:
    """Take a finalizer from a thing that is being deleted."""

    thing: Thing
    finalizer: str


@dataclass(frozen=True, slots=True)
class Look:
    """Look at another thing."""

    uid: str


Verdict: TypeAlias = DropOwners | Unblock | Delete | DropFinalizer | Look


def verdict_on(thing: Thing, graph: OwnerGraph, standings: Mapping[Owning, Standing]) -> list[Verdict]:
    """Say what is to be done, in this order; `standings` are of its references, unless it is being deleted."""
    if thing.deleting:
        return _on_deleting(thing, graph.dependents(thing.uid))
    if not thing.owners:
        return []
    by = {wanted: [one for one in thing.owners if standings[one] is wanted] for wanted in Standing}
    waiting = by[Standing.WAITING]
    if by[Standing.SOLID]:
        # A reference to an owner that waits would hold it for ever.
        dropped = frozenset(one.uid for one in (*by[Standing.ABSENT], *waiting))
        return [DropOwners(thing, dropped)] if dropped else []
    if waiting and graph.dependents(thing.uid):
        return _in_the_foreground(thing, graph.dependents(thing.uid))
    return [Delete(thing, _policy(thing))]


def _on_deleting(thing: Thing, dependents: list[Thing]) -> list[Verdict]:
    if thing.orphans:
        own = frozenset({thing.uid})
        return [*(DropOwners(one, own) for one in dependents), DropFinalizer(thing, "orphan")]
    if not thing.waits:
        return []
    blocking = [one for one in dependents if one.blocks(thing.uid)]
    if not blocking:
        return [DropFinalizer(thing, "foregroundDeletion")]
    return [Look(one.uid) for one in blocking if not one.is_waiting]


def _in_the_foreground(thing: Thing, dependents: list[Thing]) -> list[Verdict]:
    delete = Delete(thing, "Foreground")
    in_a_ring = any(one.is_waiting for one in dependents)
    return [Unblock(thing), delete] if in_a_ring else [delete]


def _policy(thing: Thing) -> Literal["Background", "Foreground", "Orphan"]:
    if thing.orphans:
        return "Orphan"
    return "Foreground" if thing.waits else "Background"
