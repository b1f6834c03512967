"""Who owns whom: the graph that garbage collection decides by.

This module remembers; it does not ask and does not write. Rules that hold here:

1. Things are known by uid. A thing is a dependent of every uid that its references name, whatever else they say.
2. A change answers whom to look at again: whoever may have to go, or may go now, because of it.
3. A uid that was seen to go never comes back: it is absent for good, and nobody needs to ask the server about it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from konverge.objects import Key, Kind

__all__ = ["OwnerGraph", "Owning", "Thing"]

_REMEMBERED: Final = 10_000
"""So many uids that went are remembered; one that is forgotten costs a question to the server."""


@dataclass(frozen=True, slots=True)
class Owning:
    """One owner reference."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    blocks: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """An object as garbage collection sees it.

    `orphans` and `waits` say that its finalizers ask for its dependents to be let go, or to go before it does.
    """

    uid: str
    kind: Kind
    key: Key
    version: str = ""
    owners: tuple[Owning, ...] = ()
    finalizers: tuple[str, ...] = ()
    deleting: bool = False

    @property
    def orphans(self) -> bool:
        """Whether it has the finalizer that lets dependents go."""
        return "orphan" in self.finalizers

    @property
    def waits(self) -> bool:
        """Whether it has the finalizer that holds it until its dependents are gone."""
        return "foregroundDeletion" in self.finalizers

    @property
    def is_waiting(self) -> bool:
        """Whether it is being deleted and stays for its dependents."""
        return self.deleting and self.waits

    def blocks(self, uid: str) -> bool:
        """Tell whether it holds up the deletion of an owner that waits."""
        return any(owner.uid == uid and owner.blocks for owner in self.owners)

    def is_meant_by(self, owner: Owning, namespace: str) -> bool:
        """Tell whether a reference in a namespace names this thing in all its parts."""
        named = (owner.uid, owner.name, owner.kind, owner.api_version)
        own = (self.uid, self.key.name, self.kind.kind, self.kind.api_version)
        return named == own and (not self.kind.namespaced or self.key.namespace == namespace)


class OwnerGraph:
    """Things, and by the uid of an owner the things that name it."""

    def __init__(self) -> None:
        self._things: dict[str, Thing] = {}
        self._dependents: dict[str, dict[str, None]] = {}  # in the order of their coming
        self._absent: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._things)

    def get(self, uid: str) -> Thing | None:
        """Give a thing that was seen and not seen to go."""
        return self._things.get(uid)

    def is_absent(self, uid: str) -> bool:
        """Tell whether a uid was seen to go."""
        return uid in self._absent

    def dependents(self, uid: str) -> list[Thing]:
        """Give the things that name a uid as an owner."""
        return [self._things[one] for one in self._dependents.get(uid, ())]

    def of_kind(self, kind: Kind) -> list[Thing]:
        """Give all things of a kind."""
        return [thing for thing in self._things.values() if thing.kind == kind]

    def put(self, thing: Thing) -> list[str]:
        """Take a new state of a thing; give the uids to look at because of it."""
        before = self._things.get(thing.uid)
        self._things[thing.uid] = thing
        self._link(thing, before.owners if before is not None else ())
        return list(dict.fromkeys(self._touched(before, thing)))

    def remove(self, uid: str) -> list[str]:
        """Take note that a thing is gone; give the uids to look at because of it."""
        gone = self._things.pop(uid, None)
        if gone is None:
            return []
        self._unlink(uid, gone.owners)
        self._absent[uid] = None
        if len(self._absent) > _REMEMBERED:
            del self._absent[next(iter(self._absent))]
        return [*self._dependents.get(uid, ()), *self._waiting_owners(gone)]

    def _touched(self, before: Thing | None, thing: Thing) -> Iterator[str]:
        if before is not None and _facts(before) == _facts(thing):
            return
        if before is None or not before.is_waiting:
            # Dependents may have come first, and been looked at before their owner was known, or before it waited.
            # They are looked at before it: once it waits no more, those that do not block it would stay.
            yield from self._dependents.get(thing.uid, ())
        if thing.owners or thing.deleting:
            yield thing.uid
        yield from self._waiting_owners(before)
        yield from self._waiting_owners(thing)

    def _waiting_owners(self, thing: Thing | None) -> Iterator[str]:
        for owner in thing.owners if thing is not None else ():
            known = self._things.get(owner.uid)
            if known is not None and known.deleting:
                yield owner.uid

    def _link(self, thing: Thing, before: tuple[Owning, ...]) -> None:
        named = {owner.uid for owner in thing.owners}
        self._unlink(thing.uid, tuple(owner for owner in before if owner.uid not in named))
        for uid in named:
            self._dependents.setdefault(uid, {})[thing.uid] = None

    def _unlink(self, uid: str, owners: tuple[Owning, ...]) -> None:
        for owner in owners:
            dependents = self._dependents.get(owner.uid)
            if dependents is not None:
                dependents.pop(uid, None)
                if not dependents:
                    del self._dependents[owner.uid]


def _facts(thing: Thing) -> tuple[object, ...]:
    return thing.owners, thing.deleting, thing.orphans, thing.waits
