"""The runnables of a manager as tasks, and how they are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

from konverge.client import Client
from konverge.manager.background import background
from konverge.manager.election_runner import ElectionRunner
from konverge.manager.runnables import InterruptedWrites, Runnable, RunnableContext

__all__ = ["RunnableTasks"]

NewContext: TypeAlias = Callable[[Runnable, Client], Awaitable[RunnableContext]]


class RunnableTasks:
    """The runnables while they run.

    Promises: one that is `leader_only` starts when the lease is held, and sends no write after the lease has expired;
    an error of a runnable names it.
    """

    def __init__(self, runnables: tuple[Runnable, ...]) -> None:
        self._runnables = runnables
        self._leader_tasks: list[asyncio.Task[None]] = []
        self._interrupted_writes = InterruptedWrites()

    @property
    def drained(self) -> bool:
        """Whether no write of a runnable that needs the lease was cancelled: it may still be in flight."""
        return not self._interrupted_writes.any

    @asynccontextmanager
    async def run(
        self, client: Client, election: ElectionRunner | None, new_context: NewContext, *, grace: float
    ) -> AsyncGenerator[None]:
        """Run them while the block runs; at its end, cancel them and wait for their cleanup for `grace` seconds."""
        coroutines = (self._run(one, client, election, new_context) for one in self._runnables)
        async with background(*coroutines) as tasks:
            self._leader_tasks = [task for one, task in zip(self._runnables, tasks, strict=True) if one.leader_only]
            try:
                yield
            finally:
                await _cancel(tasks, grace)

    async def stop_leading(self) -> None:
        """Cancel those that need the lease, without a wait for their cleanup."""
        await _cancel(self._leader_tasks, 0.0)

    async def _run(
        self, runnable: Runnable, client: Client, election: ElectionRunner | None, new_context: NewContext
    ) -> None:
        if runnable.leader_only and election is not None:
            await election.leading.wait()
            client = client.with_write_guard(election.fence).with_observers(self._interrupted_writes)
        context = await new_context(runnable, client)
        try:
            await runnable.function(context)
        except Exception as error:
            error.add_note(f"raised by the runnable {runnable.name}")
            raise


async def _cancel(tasks: Sequence[asyncio.Task[None]], grace: float) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=grace)
