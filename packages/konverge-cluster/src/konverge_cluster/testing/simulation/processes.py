"""The processes of the operator: each has its own memory, and ends when the schedule kills it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final

from konverge.client import Client, ClientOptions, InProcessTransport
from konverge.manager import LeaderElection, Operator
from konverge.manager.running_manager import RunningManager
from konverge.objects import Key
from konverge.reconcile import Context, Reconciler, Result
from konverge.wire.messages import Request, Response
from konverge_cluster import operator_accounts
from konverge_cluster.operator_accounts import AccountTransport
from konverge_cluster.testing.operators import missing_declarations
from konverge_cluster.testing.simulation.transports import Faults, ProcessTransport

__all__ = ["HOT_LOOP", "NAMESPACE", "Processes"]

NAMESPACE: Final = "default"
"""The namespace of the clients."""

HOT_LOOP: Final = 100
"""How many reconciles of one key in a minute are a hot loop."""

_LEASE_POLL: Final = 0.5


class Processes:
    """Runs processes of the operator until it is cancelled, `replicas` at a time.

    `handle` is the API server for the account of the operator. `build` returns the operator of a process, given its
    transport. Several replicas compete for a lease. So do the processes of a single one with a `lose-lease` in the
    schedule: the successor of a process that cannot renew its lease waits as a standby.
    """

    def __init__(
        self,
        handle: Callable[[Request], Awaitable[Response]],
        faults: Faults,
        build: Callable[[ProcessTransport], Operator],
        *,
        replicas: int,
    ) -> None:
        self.failed = asyncio.Event()
        self.started = 0
        self.were_down = False
        self._handle = handle
        self._faults = faults
        self._build = build
        self._replicas = replicas
        self._elects = replicas > 1 or any(one.fault == "lose-lease" for one in faults.schedule)
        self._runs: list[RunningManager] = []
        self._may_start = asyncio.Event()
        self._may_start.set()

    def kill(self) -> None:
        """Kill the current processes; the next ones start at once."""
        for process in self._faults.processes:
            process.kill()

    def missing_declarations(self) -> tuple[str, ...]:
        """Return a line for each kind that a process applied and its controller does not declare."""
        return tuple(line for running in self._runs for line in missing_declarations(running))

    @contextmanager
    def hold_restarts(self) -> Iterator[None]:
        """Start no process while the block runs, when one has crashed."""
        self._may_start.clear()
        try:
            yield
        finally:
            self._may_start.set()

    async def run(self) -> None:
        """Run all replicas."""
        async with asyncio.TaskGroup() as processes:
            for _ in range(self._replicas):
                processes.create_task(self._run_replica(processes))

    async def _run_replica(self, processes: asyncio.TaskGroup) -> None:
        """Start a process, and the next one when it has crashed or cannot renew its lease any more."""
        while not self.failed.is_set():
            self.started += 1
            transport = ProcessTransport(InProcessTransport(self._handle), self._faults, self.started)
            process = processes.create_task(self._serve(transport))
            lost = processes.create_task(transport.lease_lost.wait())
            await asyncio.wait([process, lost], return_when=asyncio.FIRST_COMPLETED)
            lost.cancel()
            self.were_down |= not self._may_start.is_set()
            await self._may_start.wait()

    async def _serve(self, transport: ProcessTransport) -> None:
        async with AsyncExitStack() as stack:
            self._faults.processes.append(transport)
            stack.callback(self._faults.processes.remove, transport)
            operator = self._build(transport)
            reporting = AccountTransport(transport, operator, self._fail)
            client = Client(reporting, options=ClientOptions(namespace=NAMESPACE))
            await stack.enter_async_context(client)
            counted = tuple(
                replace(one, reconciler=_CountingReconciler(one.reconciler, self._hot_loop))
                for one in operator.controllers
            )
            manager = replace(operator, controllers=counted).manager(
                client, grace=0.0, leader_election=self._election(operator, transport.number)
            )
            manager.skip_permission_check()
            running = await stack.enter_async_context(manager.running())
            self._runs.append(running)
            await self._until_ended(transport, running)

    async def _until_ended(self, transport: ProcessTransport, running: RunningManager) -> None:
        if not self._elects:
            await transport.crashed.wait()
            return
        while not transport.crashed.is_set() and not running.lost_reason:  # noqa: ASYNC110 - free on virtual time
            await asyncio.sleep(_LEASE_POLL)

    def _election(self, operator: Operator, number: int) -> LeaderElection | None:
        if not self._elects:
            return None
        clock = asyncio.get_running_loop().time
        return LeaderElection(operator.name, operator_accounts.NAMESPACE, identity=f"process-{number}", clock=clock)

    def _hot_loop(self, key: Key) -> None:
        self._fail(f"reconciled {key} more than {HOT_LOOP} times in a minute: a hot loop")

    def _fail(self, failure: str) -> None:
        self._faults.failures.append(failure)
        self.failed.set()
        self.kill()


class _CountingReconciler(Reconciler[Any]):
    """Counts the reconciles of each key."""

    def __init__(self, inner: Reconciler[Any], hot_loop: Callable[[Key], None]) -> None:
        self.finalizer = inner.finalizer  # type: ignore[misc]
        self.reconcile_terminating = inner.reconcile_terminating  # type: ignore[misc]
        self._inner = inner
        self._hot_loop = hot_loop
        self._times: dict[Key, deque[float]] = {}

    async def reconcile(self, obj: Any, ctx: Context, /) -> Result | None:
        self._count(ctx.key)
        return await self._inner.reconcile(obj, ctx)

    async def finalize(self, obj: Any, ctx: Context, /) -> Result | None:
        self._count(ctx.key)
        return await self._inner.finalize(obj, ctx)

    def gone(self, key: Key) -> None:
        self._inner.gone(key)

    def _count(self, key: Key) -> None:
        now = asyncio.get_running_loop().time()
        times = self._times.setdefault(key, deque(maxlen=HOT_LOOP + 1))
        times.append(now)
        if len(times) > HOT_LOOP and now - times[0] < 60.0:
            self._hot_loop(key)
            times.clear()
