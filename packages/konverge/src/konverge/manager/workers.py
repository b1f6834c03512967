"""The workers of a manager's controllers: they start once the lease is held, and stop within a grace period."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

from konverge.controller import RunningController
from konverge.manager.background import background
from konverge.manager.leader_elections import LeaderElections

__all__ = ["Workers"]


class Workers:
    """The workers of all controllers. Promise: none starts a reconcile before its lease is held, or after `stop`."""

    def __init__(self, controllers: tuple[RunningController[Any], ...], elections: LeaderElections) -> None:
        self.drained = True
        """Whether no reconcile was cancelled so far: a cancelled write may still be in flight."""
        self._controllers = controllers
        self._elections = elections
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def run(self, *, grace: float) -> AsyncGenerator[None]:
        """Work while the block runs; at its end, stop within `grace` seconds."""
        async with background(self._work_when_leading()) as (self._task,):
            try:
                yield
            finally:
                await self.stop(grace)

    async def stop(self, grace: float) -> None:
        """Start no more reconciles, let those in flight end within `grace` seconds, and cancel the rest."""
        for running in self._controllers:
            running.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                for running in self._controllers:
                    await running.queue.wait_until_idle()
        # Once false it stays false: a write cancelled when the lease was lost may still be in flight at the end.
        self.drained = self.drained and not any(running.active_keys() for running in self._controllers)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _work_when_leading(self) -> None:
        async with asyncio.TaskGroup() as group:
            for running in self._controllers:
                group.create_task(self._work(running), name=running.controller.name)

    async def _work(self, running: RunningController[Any]) -> None:
        election = self._elections.of(running.controller.name)
        if election is not None:
            await election.leading.wait()
        await running.run_workers()
