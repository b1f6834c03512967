"""Electors on the embedded server in virtual time, each with its own fault script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any, TypeAlias

from konverge.client import Client, InProcessTransport
from konverge.k8s.coordination.v1 import Lease
from konverge.manager.elector import Elector, LeaderElection
from konverge.manager.write_fence import WriteFence
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import FaultScript
from konverge.wire.messages import Request, Response
from konverge_cluster.embedded_server import EmbeddedServer

__all__ = ["ElectorProcess", "Electors", "until"]

Handle: TypeAlias = Callable[[Request], Awaitable[Response]]


class ElectorProcess:
    """One process: an elector, its transport, and the calls of its callbacks."""

    def __init__(self, handle: Handle, name: str, **election: Any) -> None:
        loop = asyncio.get_running_loop()
        self.transport = FaultTransport(InProcessTransport(handle))
        self.changes: list[tuple[float, str]] = []
        self.events: list[tuple[str, str]] = []
        self.stop_delay: float = 0.0
        self.elector = Elector(
            Client(self.transport),
            LeaderElection("operator", "default", identity=name, **election),
            fence=WriteFence(loop.time),
            on_started_leading=lambda: self.changes.append((loop.time(), "started")),
            on_stopped_leading=self._stopped,
            record_event=lambda reason, message: self.events.append((reason, message)),
            random=Random(name),
        )
        self.fence = self.elector.fence
        self.task: asyncio.Task[None] | None = None

    async def _stopped(self, reason: str) -> None:
        self.changes.append((asyncio.get_running_loop().time(), reason))
        await asyncio.sleep(self.stop_delay)

    @property
    def script(self) -> FaultScript:
        return self.transport.script

    @property
    def leading(self) -> bool:
        return self.elector.leading.is_set()

    async def kill(self) -> None:
        """Cancel it, as SIGKILL would: nothing is released."""
        assert self.task is not None
        self.task.cancel()
        await asyncio.wait([self.task])

    async def stop(self, *, release: bool = True) -> None:
        assert self.task is not None
        self.elector.stop(release=release)
        await self.task


class Electors:
    """All processes that compete for one lease. `server` may be replaced."""

    def __init__(self) -> None:
        self.server = EmbeddedServer(seed=1)
        self.client = Client(InProcessTransport(self._handle))
        self._all: list[ElectorProcess] = []

    async def join(self, name: str, **election: Any) -> ElectorProcess:
        process = ElectorProcess(self._handle, name, **election)
        process.task = asyncio.create_task(process.elector.run())
        self._all.append(process)
        await asyncio.sleep(0.1)
        return process

    async def _handle(self, request: Request) -> Response:
        return await self.server.handle(request)

    async def lease(self) -> Lease:
        return await self.client.get(Lease, "operator", namespace="default")

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[Electors]:
        electors = cls()
        try:
            yield electors
        finally:
            tasks = [process.task for process in electors._all if process.task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for task in tasks:
                if not task.cancelled():
                    task.result()  # an error that ended an elector fails its test


async def until(condition: Callable[[], object], *, within: float = 60.0) -> float:
    """Wait until a condition is true; return the time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within
    while not condition():
        assert loop.time() < end, "the condition did not become true"
        await asyncio.sleep(0.05)
    return loop.time()
