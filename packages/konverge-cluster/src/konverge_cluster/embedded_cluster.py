"""A whole cluster in this process: the embedded API server, its built-in controllers, and simulated nodes.

async with EmbeddedCluster(nodes=3) as cluster:
    await cluster.client().create(deployment)
    await cluster.listen(port=8443)                     # for kubectl and other programs
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from konverge.client import Client, ClientOptions, InProcessTransport
from konverge.controller import Controller
from konverge.manager import Manager
from konverge.objects import wall_clock
from konverge_cluster.credentials import credential_controllers
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.event_limits import EVENT_LIMITS
from konverge_cluster.garbage import GarbageCollector
from konverge_cluster.namespaces import namespace_controllers
from konverge_cluster.node_lifecycle import node_lifecycle_controllers
from konverge_cluster.nodes import Behavior, SimulatedNodes
from konverge_cluster.pod_gc import pod_gc_controller
from konverge_cluster.pod_streams import pod_stream_handlers
from konverge_cluster.processes.fault_requests import FAULTS_PATH, FaultRequests
from konverge_cluster.processes.faults import Faults
from konverge_cluster.processes.networks import LoopbackNetwork
from konverge_cluster.processes.runtime import Processes
from konverge_cluster.processes.service_proxy import ServiceProxy
from konverge_cluster.role_aggregation import role_aggregation_controller
from konverge_cluster.taint_eviction import taint_eviction_controller
from konverge_cluster.volumes import create_default_class, provisioner_controllers, volume_controllers
from konverge_cluster.workloads import workload_controllers

__all__ = ["EmbeddedCluster"]

_CONTROLLERS = "kube-controller-manager"


class EmbeddedCluster:
    """The embedded API server with the built-in controllers, garbage collection and simulated nodes.

    A Deployment becomes ready, dependents of a deleted owner are removed, and claims get volumes from a simulated
    provisioner (the storage class `standard` exists from the start).

    Promises: inside `async with` the controllers and the nodes run. Without `listen` there is no socket, so a cluster
    also runs on virtual time. After `async with` no task, socket or file is left.

    `nodes` is the number of nodes. `behaviors` define how containers on them behave (`program` adds more at any time).
    `clock` is the wall clock in seconds. `seed` makes uids and generated names repeatable. `heartbeat` is the interval
    in seconds at which nodes renew their leases, 0 for never. `feature_gates` and `rbac` are those of `EmbeddedServer`.
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
        feature_gates: Iterable[str] = (),
        runtime: Processes | None = None,
        rbac: bool = True,
    ) -> None:
        self.server = EmbeddedServer(
            clock=clock, seed=seed, plain=plain, service_accounts=True, feature_gates=feature_gates, rbac=rbac
        )
        self.nodes = SimulatedNodes(self._own_client(), nodes=nodes, heartbeat=heartbeat, clock=clock)
        self.nodes.program(*behaviors)
        self.runtime = runtime
        self.service_proxy: ServiceProxy | None = None
        self.server.api.actions |= pod_stream_handlers(runtime)
        if runtime is not None:
            runtime.api_server = self._address
            runtime.sign_client = lambda name, groups: self.server.authority.sign(name, groups=groups)
            self.server.api.async_pages[FAULTS_PATH] = FaultRequests(lambda: self.faults).handle
            self.nodes.use_runtime(runtime)
        self._clock = clock
        self._heartbeat = heartbeat
        self._parts = AsyncExitStack()

    def client(self, namespace: str = "default") -> Client:
        """Return a client of this cluster, without a socket."""
        return Client(InProcessTransport(self.server.handle), options=ClientOptions(namespace=namespace))

    def program(self, *behaviors: Behavior) -> None:
        """Add behaviors of containers; later behaviors win."""
        self.nodes.program(*behaviors)

    @property
    def faults(self) -> Faults:
        """The faults of process nodes.

        Raises: RuntimeError without a runtime, or outside of `async with`.
        """
        if self.runtime is None or self.service_proxy is None:
            raise RuntimeError("only a running cluster with process nodes has faults: pass runtime=Processes(images)")
        return Faults(self.runtime, self.nodes, self._own_client(), self.service_proxy)

    async def listen(self, address: str = "127.0.0.1", port: int = 0) -> None:
        """Also listen on a port; 0 selects a free one."""
        await self.server.start(address, port)

    def write_kubeconfig(self, path: str | os.PathLike[str]) -> None:
        """Write a kubeconfig of the admin; call `listen` first."""
        self.server.write_kubeconfig(path)

    def _address(self) -> tuple[str, int] | None:
        """Return the address of the API server for processes, None while it does not listen."""
        try:
            found = urlsplit(self.server.url)
        except RuntimeError:
            return None
        return (found.hostname, found.port) if found.hostname and found.port else None

    async def __aenter__(self) -> Self:
        self._parts.push_async_callback(self.server.stop)  # runs last, after all its clients have stopped
        try:
            if self.runtime is not None:
                self._use_addresses(self._parts.enter_context(self.runtime.claim()))
            await create_default_class(self._own_client())
            await self._parts.enter_async_context(GarbageCollector(self._own_client()).running())
            await self._parts.enter_async_context(self._controllers().running())
            await self._parts.enter_async_context(self.nodes.running())
            if self.runtime is not None:
                self.service_proxy = self._create_service_proxy(self.runtime)
                await self._parts.enter_async_context(self.service_proxy.running(self._own_client()))
        except BaseException:
            await self._parts.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._parts.aclose()

    def _use_addresses(self, network: LoopbackNetwork) -> None:
        self.server.use_loopback_services(network.services)
        for node in self.nodes.nodes.values():
            node.address = network.host(node.index)

    def _create_service_proxy(self, runtime: Processes) -> ServiceProxy:
        hosts = [node.host for node in self.nodes.nodes.values()]
        return ServiceProxy(hosts, api_server=runtime.api_server, is_blocked=runtime.service_blocks.is_blocked)

    def _own_client(self) -> Client:
        """Return a client for the built-in controllers, which handle deprecated resources too: it logs no warnings."""
        return self.client().without_warnings()

    def builtin_controllers(self) -> tuple[Controller[Any], ...]:
        """Return the built-in controllers of this cluster; override it to leave some out, or to add others."""
        return (
            *namespace_controllers(root_ca=lambda: self.server.authority.certificate.decode(), clock=self._clock),
            role_aggregation_controller(),
            *workload_controllers(clock=self._clock),
            *node_lifecycle_controllers(clock=self._clock, require_lease=not self._heartbeat),
            taint_eviction_controller(self._clock),
            pod_gc_controller(self._clock),
            *credential_controllers(
                authority=lambda: self.server.authority, generate=self.server.authenticator.tokens.generate_for_secret
            ),
            *volume_controllers(clock=self._clock),
            *provisioner_controllers(clock=self._clock),
        )

    def _controllers(self) -> Manager:
        manager = Manager(self._own_client(), name=_CONTROLLERS)
        manager.limit_events(EVENT_LIMITS)
        manager.skip_permission_check()
        manager.add(*self.builtin_controllers())
        return manager
