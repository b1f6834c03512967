"""A cluster that lives, in this process: the embedded API server, its built-in controllers, and nodes that run nothing.

async with EmbeddedCluster(nodes=3) as cluster:
    await cluster.client().create(deployment)
    await cluster.listen(port=8443)                     # for kubectl and everybody else
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from konverge.client import Client, ClientOptions, InProcessTransport
from konverge.manager import Manager
from konverge.objects import wall_clock
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.garbage import GarbageCollector
from konverge_cluster.namespaces import namespace_controllers
from konverge_cluster.nodes import Behavior, SimulatedNodes
from konverge_cluster.workloads import workload_controllers

__all__ = ["EmbeddedCluster"]

_CONTROLLERS = "kube-controller-manager"


class EmbeddedCluster:
    """The embedded API server with everything around it that makes a Deployment ready and an orphan go.

    Promises: inside `async with` the built-in controllers and the nodes run; without `listen` there is no socket, so it
    runs on virtual time as well. Afterwards nothing is left.

    `nodes` is how many there are, `behaviors` how containers on them behave (`program` adds more at any time). `clock`
    is the wall clock in seconds; `seed` makes uids and generated names repeatable. `heartbeat` is how often nodes renew
    their leases, in seconds, 0 for never.
    """

    def __init__(
        self,
        *,
        nodes: int = 3,
        behaviors: Iterable[Behavior] = (),
        clock: Callable[[], float] = wall_clock,
        seed: int | None = None,
        heartbeat: float = 10.0,
        plain: bool = False,
    ) -> None:
        self.server = EmbeddedServer(clock=clock, seed=seed, plain=plain, service_accounts=True)
        self.nodes = SimulatedNodes(self._own_client(), nodes=nodes, heartbeat=heartbeat, lifecycle=True, clock=clock)
        self.nodes.program(*behaviors)
        self._clock = clock
        self._parts = AsyncExitStack()

    def client(self, namespace: str = "default") -> Client:
        """Give a client of it, without a socket."""
        return Client(InProcessTransport(self.server.handle), options=ClientOptions(namespace=namespace))

    def program(self, *behaviors: Behavior) -> None:
        """Say how containers behave from now on; later words count more."""
        self.nodes.program(*behaviors)

    async def listen(self, address: str = "127.0.0.1", port: int = 0) -> None:
        """Listen on a port as well; 0 takes a free one."""
        await self.server.start(address, port)

    def write_kubeconfig(self, path: Path) -> None:
        """Write a kubeconfig of the admin; it listens from `listen` on."""
        self.server.write_kubeconfig(path)

    async def __aenter__(self) -> Self:
        self._parts.push_async_callback(self.server.stop)  # last, when nobody asks it any more
        try:
            await self._parts.enter_async_context(GarbageCollector(self._own_client()).running())
            await self._parts.enter_async_context(self._controllers().running())
            await self._parts.enter_async_context(self.nodes.running())
        except BaseException:
            await self._parts.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._parts.aclose()

    def _own_client(self) -> Client:
        """Give a client for the cluster's own parts, which use what is deprecated because others do."""
        return self.client().without_warnings()

    def _controllers(self) -> Manager:
        manager = Manager(self._own_client(), name=_CONTROLLERS)
        manager.add(
            *namespace_controllers(root_ca=lambda: self.server.authority.certificate.decode(), clock=self._clock)
        )
        manager.add(*workload_controllers(clock=self._clock))
        return manager
