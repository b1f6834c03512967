"""Simulated nodes: a scheduler and kubelets that start no containers, for a control plane without nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

from konverge.client import Client
from konverge.controller import Controller, controller_for
from konverge.errors import AlreadyExists, ServerError, TooManyRequests, TransportError
from konverge.k8s.coordination.v1 import Lease
from konverge.k8s.core.v1 import (
    ConfigMap,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    Secret,
    ServiceAccount,
)
from konverge.k8s.storage.v1 import StorageClass
from konverge.manager import Manager
from konverge.objects import Key, Kind, Unstructured, kind_of, wall_clock
from konverge.triggers import Channel, Mapper, anything, to_keys
from konverge_cluster.clock import Clock, utc_now
from konverge_cluster.event_limits import EVENT_LIMITS
from konverge_cluster.nodes.behaviors import Behavior, Program
from konverge_cluster.nodes.node_objects import CAPACITY, SimulatedNode, node_object
from konverge_cluster.nodes.node_reconciler import NODES, NodeReconciler
from konverge_cluster.nodes.pod_reconciler import PODS, PodReconciler
from konverge_cluster.nodes.pod_runtime import PodRuntime
from konverge_cluster.nodes.scheduler_cache import SchedulerCache
from konverge_cluster.nodes.volume_binder import VolumeBinder
from konverge_cluster.nodes.volume_expansion import volume_expansion_controller
from konverge_cluster.volumes.bindings import VOLUMES_BY_CLAIM, claims_of_volume
from konverge_cluster.volumes.pod_claims import PODS_BY_CLAIM, claims_of_pod

__all__ = ["SimulatedNodes"]

_ATTEMPTS: Final = 40
_LONGEST_WAIT: Final = 7.0  # a kubelet waits as long at most


class SimulatedNodes:
    """Nodes that run nothing. Their pods follow the behaviors that were programmed.

    Promises:

    - a pod that fits is bound to a node and goes through every status that a kubelet would report;
    - a programmed behavior applies from then on, also to pods that already exist;
    - pods and nodes of others are left alone;
    - after a restart the pods continue from the status that was written last.

    `nodes` is their number, or the nodes themselves. `heartbeat` is the interval of lease renewals, in seconds, 0 for
    never: then a Lease is only written when a node stops. `schedules` adds the scheduler. `clock` is the clock of the
    cluster, in seconds. What follows when a node stops is the work of a kube-controller-manager, or of
    `konverge_cluster.node_lifecycle`, `konverge_cluster.taint_eviction` and `konverge_cluster.pod_gc`.

            nodes = SimulatedNodes(client, nodes=3)
            nodes.program(Behavior(image="bad:*", never_ready=True))
            async with nodes.running():
            ...
    """

    def __init__(
        self,
        client: Client,
        *,
        nodes: int | Iterable[SimulatedNode] = 3,
        heartbeat: float = 10.0,
        schedules: bool = True,
        clock: Clock = wall_clock,
        capacity: Mapping[str, str] | None = None,
    ) -> None:
        created = _create_nodes(nodes, capacity or {}) if isinstance(nodes, int) else nodes
        self.nodes = {node.name: node for node in created}
        self._client = client
        self._clock = clock
        self._program = Program()
        self._scheduler_cache = SchedulerCache()
        self._volumes = VolumeBinder(clock)
        self._heartbeat = heartbeat
        self._schedules = schedules
        self._pod_channel = Channel("behaviors of simulated nodes")
        self._node_channel = Channel("starts and stops of simulated nodes")
        self._runtime: PodRuntime | None = None

    def use_runtime(self, runtime: PodRuntime) -> None:
        """Let a runtime run the pods that it can run; the others are simulated. Call it before `running`."""
        self._runtime = runtime

    # Behavior

    def program(self, *behaviors: Behavior) -> None:
        """Apply behaviors to containers from now on; later behaviors win."""
        self._program.add(*behaviors)
        self._enqueue()

    def clear_program(self) -> None:
        """Remove all programmed behaviors."""
        self._program.clear()
        self._enqueue()

    def stop_node(self, node: str) -> None:
        """Stop a node: it reports nothing any more, and the state of its pods is unknown.

        Raises: ValueError when there is no such node.
        """
        self._node(node).down_since = utc_now(self._clock)
        self._node_channel.put(Key("", node))

    def start_node(self, node: str) -> None:
        """Start a stopped node again, with the pods that it had."""
        self._node(node).down_since = None
        self._node_channel.put(Key("", node))
        self._enqueue(node)

    # Running

    def controllers(self) -> tuple[Controller[Any], ...]:
        """Return the controllers of pods and nodes, for a manager; the nodes must be registered."""
        pods = PodReconciler(
            self.nodes,
            self._program,
            self._scheduler_cache,
            self._volumes,
            clock=self._clock,
            schedules=self._schedules,
        )
        pod_controller = (
            controller_for(PODS)
            .named("kubelet")
            .predicate(anything)
            .watches(PODS, self._scheduler_cache.pod_changed)
            .watches(NODES, self._scheduler_cache.node_changed)
            .watches(Namespace, self._scheduler_cache.namespace_changed)
            .watches(PODS, self._volumes.pod_changed)
            .watches(PersistentVolumeClaim, self._volumes.claim_changed)
            .watches(PersistentVolume, self._volumes.volume_changed)
            .watches(StorageClass, self._volumes.class_changed)
            .index(PersistentVolume, VOLUMES_BY_CLAIM, claims_of_volume)
            .index(PODS, PODS_BY_CLAIM, claims_of_pod)
            .channel(self._pod_channel)
            .max_concurrent_reconciles(16)
            .needs(PODS, "delete")
            .needs(PODS, "patch", subresource="status")
            .needs(PODS, "create", subresource="binding")
            .needs(PersistentVolumeClaim, "patch")
            .needs(PersistentVolume, "patch")
        )
        if self._runtime is not None:
            pods.runtime = runtime = self._runtime
            for kind in (kind_of(ConfigMap), kind_of(Secret)):
                pod_controller.watches(kind, _to_readers(runtime, kind))
            pod_controller.needs(ServiceAccount, "create", subresource="token")
        nodes = NodeReconciler(self.nodes, clock=self._clock, heartbeat=self._heartbeat)
        node_controller = (
            controller_for(NODES).named("node").channel(self._node_channel).needs(Lease, "create", "patch", "delete")
        )
        node_controller.needs(NODES, "create", "patch")
        return (pod_controller.build(pods), node_controller.build(nodes), volume_expansion_controller(self.nodes))

    async def register(self) -> None:
        """Create the Node objects, as kubelets do when they start; existing ones are left unchanged.

        Server errors are retried for about four minutes.
        """
        for node in self.nodes.values():
            for attempt in range(_ATTEMPTS):
                try:
                    await self._register(node)
                    break
                except (ServerError, TooManyRequests, TransportError):
                    if attempt == _ATTEMPTS - 1:
                        raise
                    await asyncio.sleep(min(2.0**attempt, _LONGEST_WAIT))

    async def _register(self, node: SimulatedNode) -> None:
        client = self._client.using(field_manager="kubelet")
        with suppress(AlreadyExists):
            await client.create(Unstructured(node_object(node, utc_now(self._clock))))

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[SimulatedNodes]:
        """Register the nodes and run their controllers while the block runs."""
        await self.register()
        manager = Manager(self._client, name="konverge-nodes", grace=2.0)
        manager.limit_events(EVENT_LIMITS)
        manager.add(*self.controllers())
        async with AsyncExitStack() as stack:
            if self._runtime is not None:
                await stack.enter_async_context(self._runtime.running(self._pod_channel.put))
            await stack.enter_async_context(manager.running())
            yield self

    def _enqueue(self, node: str = "") -> None:
        for key in self._scheduler_cache.allocations.keys(node):
            self._pod_channel.put(key)

    def _node(self, name: str) -> SimulatedNode:
        if name not in self.nodes:
            raise ValueError(f"there is no node {name!r} (there are: {', '.join(self.nodes) or 'none'})")
        return self.nodes[name]


def _create_nodes(count: int, capacity: Mapping[str, str]) -> list[SimulatedNode]:
    return [SimulatedNode(f"node-{index + 1}", index, {**CAPACITY, **capacity}) for index in range(count)]


def _to_readers(runtime: PodRuntime, kind: Kind) -> Mapper:
    def readers(obj: Unstructured) -> Iterable[Key]:
        return runtime.readers(kind.kind, obj.key)

    return to_keys(readers, kind)
