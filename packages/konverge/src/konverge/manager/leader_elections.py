"""All leases that one process competes for: most operators have one, some have one for each controller."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TypeAlias

from konverge.manager.election_runner import Connect, ElectionRunner
from konverge.manager.elector import LeaderElection
from konverge.manager.lease_thread import LeaseThread

__all__ = ["LeaderCallback", "LeaderElections"]

LeaderCallback: TypeAlias = Callable[[str, bool], None]
"""Called with the name of a lease, and whether this process now leads by it."""

StoppedLeading: TypeAlias = Callable[[str], Awaitable[None]]
RecordEvent: TypeAlias = Callable[[LeaderElection, str, str], None]


class LeaderElections:
    """The leader elections of a process: which controller works under which lease.

    `elections` maps the name of each controller to its election, None for controllers that work on every replica.

    Raises: ValueError for two leases of one name in different namespaces: callbacks and metrics know only their names.
    """

    def __init__(
        self, elections: Mapping[str, LeaderElection | None], callbacks: tuple[LeaderCallback, ...] = ()
    ) -> None:
        _check_names(elections)
        self._elections = elections
        self._callbacks = callbacks
        self._runners: dict[str, ElectionRunner] = {}  # by name of the lease

    def __iter__(self) -> Iterator[ElectionRunner]:
        return iter(self._runners.values())

    def open(
        self,
        connect: Connect,
        *,
        thread: LeaseThread | None,
        on_stopped_leading: StoppedLeading,
        record_event: RecordEvent,
    ) -> None:
        """Create a runner for each lease; nothing runs yet."""
        for election in self._elections.values():
            if election is not None and election.name not in self._runners:
                runner = self._runner(election, connect, thread, on_stopped_leading, record_event)
                self._runners[election.name] = runner

    def of(self, controller: str) -> ElectionRunner | None:
        """Return the election that a controller works under; None when it works on every replica."""
        election = self._elections[controller]
        return None if election is None else self._runners[election.name]

    async def run(self) -> None:
        """Compete for all leases until stopped."""
        async with asyncio.TaskGroup() as group:
            for runner in self:
                group.create_task(runner.run(), name=f"lease {runner.election.name}")

    def stop(self, *, release: bool) -> None:
        """End `run`; with `release` the leases are released."""
        for runner in self:
            runner.stop(release=release)

    def step_down(self, reason: str) -> None:
        """Stop leading at once and let the leases expire. Any thread may call it."""
        for runner in self:
            runner.step_down(reason)

    def not_ready_reason(self) -> str:
        """Return why a lease cannot be read or written, "" when all can."""
        reasons = ((runner.election.name, runner.not_ready_reason()) for runner in self)
        return "; ".join(f"{name}: {reason}" for name, reason in reasons if reason)

    @property
    def release_timeout(self) -> float:
        """How many seconds the release of all leases may take."""
        return max((runner.election.renew_deadline for runner in self), default=0.0)

    def _runner(
        self,
        election: LeaderElection,
        connect: Connect,
        thread: LeaseThread | None,
        on_stopped_leading: StoppedLeading,
        record_event: RecordEvent,
    ) -> ElectionRunner:
        async def stopped(reason: str) -> None:
            self._notify(election, leading=False)
            await on_stopped_leading(reason)

        return ElectionRunner(
            election,
            connect,
            thread=thread,
            on_started_leading=lambda: self._notify(election, leading=True),
            on_stopped_leading=stopped,
            record_event=lambda reason, message: record_event(election, reason, message),
        )

    def _notify(self, election: LeaderElection, *, leading: bool) -> None:
        for callback in self._callbacks:
            callback(election.name, leading)


def _check_names(elections: Mapping[str, LeaderElection | None]) -> None:
    namespaces: dict[str, str] = {}
    for election in elections.values():
        if election is not None and namespaces.setdefault(election.name, election.namespace) != election.namespace:
            raise ValueError(f"two leases are called {election.name}, in different namespaces: use different names")
