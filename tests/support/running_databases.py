"""A Database of real PostgreSQL members on process nodes, its clients, and what tests break and measure.

The operator runs under its own account, with the generated rights. It can be stopped and started again: members and
their failover do not need it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from statistics import median
from typing import Any

from database_load import Load, Login, Prober
from konverge import ObjectMeta
from konverge.k8s.core.v1 import ConfigMap, Pod, Secret, Service
from konverge.objects import AnyObject, Key
from konverge_cluster.processes.faults import Faults
from konverge_operators.database.api import Database, DatabaseSpec, Phase
from konverge_operators.database.operator import new_operator
from konverge_operators.database.postgresql.configuration import TTL
from konverge_operators.database.postgresql.engine import PostgreSQL
from konverge_operators.database.postgresql.local_images import local_images
from konverge_operators.database.postgresql.states import Store
from process_clusters import ProcessCluster, process_cluster
from process_operators import operating_in

__all__ = ["NAME", "RunningDatabase", "running_database"]

NAME = "orders"
LIMIT = 180.0
_NOISE = ("STATEMENT:", "read-only transaction", "no action.")
"""What the prober and healthy members write to the log all the time."""


class RunningDatabase:
    """The Database in a cluster, and what a test asks of it."""

    load: Load
    prober: Prober

    def __init__(self, cluster: ProcessCluster) -> None:
        self.client = cluster.client
        self.cluster = cluster
        self.addresses: dict[str, str] = {}
        self.outages: list[float] = []
        """The times without a writable leader, in seconds."""
        self._operator = AsyncExitStack()

    @property
    def faults(self) -> Faults:
        return self.cluster.cluster.faults

    # The operator

    async def start_operator(self) -> None:
        await self._operator.enter_async_context(operating_in(self.cluster, new_operator([PostgreSQL()])))

    async def stop_operator(self) -> None:
        await self._operator.aclose()

    # The object

    async def create(self, **spec: Any) -> None:
        wanted = DatabaseSpec(**{"version": "18", "replicas": 3, "synchronous": "strict", **spec})
        await self.client.create(Database(metadata=ObjectMeta(name=NAME, namespace="test"), spec=wanted))

    async def edit(self, **spec: Any) -> None:
        await self.client.patch(Database, NAME, {"spec": spec})

    async def annotate(self, name: str, value: str) -> None:
        await self.client.patch(Database, NAME, {"metadata": {"annotations": {name: value}}})

    async def get(self) -> Database:
        return await self.client.get(Database, NAME)

    async def primary(self) -> str:
        return (await self.get()).status.primary

    async def lock_owner(self) -> str:
        """Return the member that has Patroni's lock, or had it last."""
        return (await self._store()).leader

    async def _store(self) -> Store:
        return Store.of(NAME, await self.client.list(ConfigMap))

    async def wait(self, fact: Callable[[Database], bool]) -> Database:
        def holds(obj: Any) -> bool:
            return obj is not None and fact(obj)

        try:
            found = await self.client.wait_for(Database, NAME, holds, timeout=LIMIT)
        except TimeoutError as error:
            raise AssertionError(f"not reached: {await self._description()}") from error
        assert found is not None
        return found

    async def wait_for_members(self, count: int) -> Database:
        """Wait until the database is ready with so many members, and the engine agrees: a status may be old."""

        def complete(obj: Database) -> bool:
            status = obj.status
            return status.phase is Phase.READY and status.ready_replicas == len(status.members) == count

        while True:
            found, store = await self.wait(complete), await self._store()
            is_synchronous = found.spec.synchronous == "off" or count == 1 or bool(store.synchronous)
            if store.leader == found.status.primary and is_synchronous:
                return found
            await asyncio.sleep(0.1)

    async def _description(self) -> str:
        """Return what is known of the database and its members, for a failed test."""
        status = (await self.get()).status
        lines = [f"{status.phase}: {status.message}; last error: {status.last_error}"]
        for pod in await self.client.list(Pod):
            lines.append(f"{pod.name} {pod.metadata.labels} {pod.metadata.annotations.get('status')}")
            log = self.cluster.log(pod.name, "database", self.restarts(pod.name)).splitlines()
            lines += [line for line in log if not any(text in line for text in _NOISE)][-30:]
        return "\n".join(lines)

    def restarts(self, member: str) -> int:
        return self.cluster.process_pod(member).containers["database"].state.restarts

    # The clients

    async def connect(self) -> None:
        """Prepare the clients; `clients` runs them."""
        login = await self.login()
        host = str((await self.client.get(Service, f"{NAME}-rw")).spec.cluster_ip)
        self.load, self.prober = Load(host, login), Prober(login, lambda: self.addresses)
        await self.load.prepare()

    async def reconnect(self) -> None:
        """Let the clients use the login that the connection Secret has now."""
        self.load.login = self.prober.login = await self.login()
        await self.load.prepare()

    async def login(self) -> Login:
        found = await self.wait(lambda one: bool(one.status.primary))
        secret = await self.client.get(Secret, found.status.connection_secret)
        data = {name: value.decode() for name, value in (secret.data or {}).items()}
        return Login(data["username"], data["password"], data["database"])

    @asynccontextmanager
    async def clients(self) -> AsyncGenerator[None]:
        """Write through the Service and to every member until the block ends; then check what was written."""
        members = [f"{NAME}-{number}" for number in range(3)]
        async with self._following(), self.load.running(), self.prober.running(members):
            await self.load.progress()
            yield
            await self.load.progress()
        assert await self.load.missing() == []
        assert self.prober.violations() == []

    @asynccontextmanager
    async def outage(self, kind: str) -> AsyncGenerator[None]:
        """Measure how long no write is acknowledged from the beginning of the block until after its end."""
        start = time.monotonic()
        yield
        end = (await self.load.progress()).ended
        self.outages.append(self.load.longest_gap(start, end))
        print(f"{kind}: {self.outages[-1]:.1f} s without an acknowledged write", flush=True)

    def check_outages(self) -> None:
        """Print the times without a writable leader, and compare them with the limits."""
        middle, longest = median(self.outages), max(self.outages)
        print(f"{len(self.outages)} outages: median {middle:.1f} s, maximum {longest:.1f} s; ttl {TTL} s")
        assert middle <= TTL + 5
        assert longest <= 2 * TTL

    @asynccontextmanager
    async def _following(self) -> AsyncGenerator[None]:
        """Follow the addresses of the members."""
        task = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _follow(self) -> None:
        while True:
            pods = await self.client.list(Pod)
            self.addresses = {pod.name: pod.status.pod_ip for pod in pods if pod.status.pod_ip}
            await asyncio.sleep(0.2)

    # What breaks

    def key(self, member: str) -> Key:
        return Key(self.cluster.namespace, member)

    async def each(self, fault: Callable[[Key], Coroutine[Any, Any, None]]) -> None:
        """Let a fault hit all members at once."""
        pods = await self.client.list(Pod)
        await asyncio.gather(*(fault(self.key(pod.name)) for pod in pods))

    async def kill_all(self) -> None:
        """Kill all members at once."""
        await asyncio.gather(*(self.kill(pod.name) for pod in await self.client.list(Pod)))

    async def kill(self, member: str) -> None:
        """Kill a member, and wait until it is dead: a write that starts then is acknowledged by another process."""
        restarts = self.restarts(member)
        await self.faults.kill(self.key(member))
        await self.cluster.until(lambda: self.restarts(member) > restarts)

    async def kill_for_long(self, member: str) -> None:
        """Kill a member; it restarts, and reaches the API server only after `faults.unblock_api_server`."""
        await self.faults.block_api_server(self.key(member))
        await self.kill(member)


@asynccontextmanager
async def running_database(*objects: AnyObject, **spec: Any) -> AsyncGenerator[RunningDatabase]:
    """Run a cluster and the operator, create objects and a Database; containers restart at once."""
    async with process_cluster(*local_images(), crash_backoff=0.0) as cluster:
        database = RunningDatabase(cluster)
        await database.start_operator()
        try:
            for one in objects:
                await database.client.create(one)
            await database.create(**spec)
            yield database
        finally:
            await database.stop_operator()
