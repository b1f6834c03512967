"""All the leases that one process competes for: most operators have one, some have one for each controller."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TypeAlias

from konverge.manager.elector import Election
from konverge.manager.leadership import Connect, Leadership
from konverge.manager.lease_thread import LeaseThread

__all__ = ["Leaderships", "LeadingHook"]

LeadingHook: TypeAlias = Callable[[str, bool], None]
"""Told the name of a lease, and whether this process leads by it now."""

Lost: TypeAlias = Callable[[str], Awaitable[None]]
Record: TypeAlias = Callable[[Election, str, str], None]


class Leaderships:
    """The elections of a process: which controller works by which lease.

    `elections` gives the election of each controller by name, None for those that work on every replica.
    """

    def __init__(self, elections: Mapping[str, Election | None], hooks: tuple[LeadingHook, ...] = ()) -> None:
        self._elections = elections
        self._hooks = hooks
        self._all: dict[str, Leadership] = {}  # by name of the lease

    def __iter__(self) -> Iterator[Leadership]:
        return iter(self._all.values())

    def open(self, connect: Connect, *, side: LeaseThread | None, lost: Lost, record: Record) -> None:
        """Make ready to compete; nothing runs yet."""
        for election in self._elections.values():
            if election is not None and election.name not in self._all:
                self._all[election.name] = self._candidacy(election, connect, side, lost, record)

    def of(self, controller: str) -> Leadership | None:
        """Give the leadership that a controller works by; None when it works on every replica."""
        election = self._elections[controller]
        return None if election is None else self._all[election.name]

    async def run(self) -> None:
        """Compete for all of them, until stopped."""
        async with asyncio.TaskGroup() as group:
            for leadership in self:
                group.create_task(leadership.run(), name=f"lease {leadership.election.name}")

    def stop(self, *, release: bool) -> None:
        """End `run`; with `release` the leases are given back."""
        for leadership in self:
            leadership.stop(release=release)

    def give_up(self, why: str) -> None:
        """Stop leading at once, and leave the leases to expire. From any thread."""
        for leadership in self:
            leadership.give_up(why)

    def trouble(self) -> str:
        """Say why a lease cannot be asked for, "" when all can."""
        found = ((leadership.election.name, leadership.trouble()) for leadership in self)
        return "; ".join(f"{name}: {why}" for name, why in found if why)

    @property
    def patience(self) -> float:
        """How many seconds giving back may take."""
        return max((leadership.election.renew_deadline for leadership in self), default=0.0)

    def _candidacy(
        self, election: Election, connect: Connect, side: LeaseThread | None, lost: Lost, record: Record
    ) -> Leadership:
        async def stopped(why: str) -> None:
            self._tell(election, leads=False)
            await lost(why)

        return Leadership(
            election,
            connect,
            side=side,
            started=lambda: self._tell(election, leads=True),
            stopped=stopped,
            record=lambda reason, message: record(election, reason, message),
        )

    def _tell(self, election: Election, *, leads: bool) -> None:
        for hook in self._hooks:
            hook(election.name, leads)
