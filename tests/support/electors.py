"""Electors on the embedded server and virtual time, each with faults of its own on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from konverge.client import Client, InProcessTransport
from konverge.k8s.coordination.v1 import Lease
from konverge.manager.elector import Election, Elector
from konverge.manager.guard import Guard
from konverge.testing.fault_transport import FaultyTransport
from konverge.testing.faults import FaultScript
from konverge_cluster.embedded_server import EmbeddedServer

__all__ = ["Voter", "Voters", "until"]


class Voter:
    """One process: an elector, its way to the server, and what it was told."""

    def __init__(self, server: EmbeddedServer, name: str, **election: Any) -> None:
        loop = asyncio.get_running_loop()
        self.transport = FaultyTransport(InProcessTransport(server.handle))
        self.told: list[tuple[float, str]] = []
        self.events: list[tuple[str, str]] = []
        self.still_busy: float = 0.0
        self.elector = Elector(
            Client(self.transport),
            Election("operator", "default", identity=name, **election),
            guard=Guard(loop.time),
            started=lambda: self.told.append((loop.time(), "started")),
            stopped=self._stopped,
            record=lambda reason, message: self.events.append((reason, message)),
            random=Random(name),
        )
        self.guard = self.elector.guard
        self.task: asyncio.Task[None] | None = None

    async def _stopped(self, why: str) -> None:
        self.told.append((asyncio.get_running_loop().time(), why))
        await asyncio.sleep(self.still_busy)

    @property
    def script(self) -> FaultScript:
        return self.transport.script

    @property
    def leads(self) -> bool:
        return self.elector.leading.is_set()

    async def kill(self) -> None:
        """End it as SIGKILL would: nothing is released."""
        assert self.task is not None
        self.task.cancel()
        await asyncio.wait([self.task])

    async def stop(self, *, release: bool = True) -> None:
        assert self.task is not None
        self.elector.stop(release=release)
        await self.task


class Voters:
    """All who compete for one lease."""

    def __init__(self) -> None:
        self.server = EmbeddedServer(seed=1)
        self.client = Client(InProcessTransport(self.server.handle))
        self._all: list[Voter] = []

    async def join(self, name: str, **election: Any) -> Voter:
        voter = Voter(self.server, name, **election)
        voter.task = asyncio.create_task(voter.elector.run())
        self._all.append(voter)
        await asyncio.sleep(0.1)
        return voter

    async def lease(self) -> Lease:
        return await self.client.get(Lease, "operator", namespace="default")

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[Voters]:
        voters = cls()
        try:
            yield voters
        finally:
            tasks = [voter.task for voter in voters._all if voter.task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


async def until(claim: Callable[[], object], *, within: float = 60.0) -> float:
    """Wait until something is true; give the time it was."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within
    while not claim():
        assert loop.time() < end, "it did not come true"
        await asyncio.sleep(0.05)
    return loop.time()
