"""The stand-in for nodes: a scheduler and kubelets that run nothing, for a control plane that has none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from konverge.client import Client
from konverge.controller import Controller, controller_for
from konverge.errors import AlreadyExists, ServerError, TooManyRequests, TransportError
from konverge.k8s.coordination.v1 import Lease
from konverge.manager import Manager
from konverge.objects import Key, Unstructured, wall_clock
from konverge.triggers import Channel, anything
from konverge_cluster.clock import Clock, moment
from konverge_cluster.nodes.behaviors import Behavior, Program
from konverge_cluster.nodes.node_objects import CAPACITY, SimulatedNode, node_object
from konverge_cluster.nodes.scheduler_cache import SchedulerCache
from konverge_cluster.nodes.pod_reconciler import PODS, PodReconciler
from konverge_cluster.nodes.node_reconciler import NODES, NodeReconciler

__all__ = ["SimulatedNodes"]

_TRIES: Final = 6


class SimulatedNodes:
    """Nodes that run nothing, and whose pods behave as they are told to.

    Promises: a pod that fits gets a node, and goes through all that a kubelet would report of it; pods that are told to
    behave in some way do so from then on, those that are there already included; pods and nodes of others are left
    alone; a stand-in that is started anew goes on where the last one stopped.

    `nodes` is how many there are, or the machines themselves. `heartbeat` is how often each renews its lease, in
    seconds, 0 for never. `lifecycle` says whether it also does what a kube-controller-manager does for nodes: leave it
    off beside a real one. `schedules` says whether it gives nodes to pods. `clock` is the cluster's, in seconds.

        stand_in = SimulatedNodes(client, nodes=3)
        stand_in.program(Behavior(image="bad:*", never_ready=True))
        async with stand_in.running():
            ...
    """

    def __init__(
        self,
        client: Client,
        *,
        nodes: int | Iterable[SimulatedNode] = 3,
        heartbeat: float = 10.0,
        lifecycle: bool = False,
        schedules: bool = True,
        clock: Clock = wall_clock,
        capacity: Mapping[str, str] | None = None,
    ) -> None:
        made = _nodes(nodes, capacity or {}) if isinstance(nodes, int) else nodes
        self.machines = {machine.name: machine for machine in made}
        self._client = client
        self._clock = clock
        self._program = Program()
        self._placing = SchedulerCache()
        self._heartbeat = heartbeat
        self._lifecycle = lifecycle
        self._schedules = schedules
        self._pods = Channel("the program of the nodes")
        self._nodes = Channel("the coming and going of nodes")

    # Telling it what happens

    def program(self, *behaviors: Behavior) -> None:
        """Let containers behave so from now on; what is told later counts over what was told before."""
        self._program.add(*behaviors)
        self._wake()

    def forget(self) -> None:
        """Let all containers behave as usual again."""
        self._program.clear()
        self._wake()

    def stop_node(self, node: str) -> None:
        """Let a node go down_since: it reports nothing any more, and what happens to its pods nobody knows.

        Raises: ValueError when there is no such node.
        """
        self._node(node).down_since = moment(self._clock)
        self._nodes.put(Key("", node))

    def start_node(self, node: str) -> None:
        """Let a node come back, with the pods that it had."""
        self._node(node).down_since = None
        self._nodes.put(Key("", node))
        self._wake(node)

    # Running

    def controllers(self) -> tuple[Controller[Any], ...]:
        """Give the controllers, of pods and of nodes, for a manager; the nodes must be registered."""
        pods = PodReconciler(
            self.machines,
            self._program,
            self._placing,
            clock=self._clock,
            schedules=self._schedules,
            lifecycle=self._lifecycle,
        )
        of_pods = (
            controller_for(PODS)
            .named("kubelet")
            .predicate(anything)
            .watches(PODS, self._placing.pod_changed)
            .watches(NODES, self._placing.node_changed)
            .channel(self._pods)
            .max_concurrent_reconciles(16)
            .needs(PODS, "delete")
            .needs(PODS, "patch", subresource="status")
            .needs(PODS, "create", subresource="binding")
        )
        nodes = NodeReconciler(self.machines, clock=self._clock, heartbeat=self._heartbeat, lifecycle=self._lifecycle)
        of_nodes = controller_for(NODES).named("node").channel(self._nodes).needs(Lease, "create", "patch")
        of_nodes.needs(NODES, "create", "patch").needs(PODS, "list", "delete")
        return (of_pods.build(pods), of_nodes.build(nodes))

    async def register(self) -> None:
        """Register the nodes, as kubelets do when they start; those that are there already stay as they are.

        A server that is in trouble is asked again for about a minute.
        """
        for machine in self.machines.values():
            for attempt in range(_TRIES):
                try:
                    await self._register(machine)
                    break
                except (ServerError, TooManyRequests, TransportError):
                    if attempt == _TRIES - 1:
                        raise
                    await asyncio.sleep(2.0**attempt)

    async def _register(self, machine: SimulatedNode) -> None:
        client = self._client.using(field_manager="kubelet")
        with suppress(AlreadyExists):
            await client.create(Unstructured(node_object(machine, moment(self._clock))))

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[SimulatedNodes]:
        """Register the nodes and play them while the block runs."""
        await self.register()
        manager = Manager(self._client, name="konverge-nodes", grace=2.0)
        manager.add(*self.controllers())
        async with manager.running():
            yield self

    def _wake(self, node: str = "") -> None:
        for key in self._placing.ledger.keys(node):
            self._pods.put(key)

    def _node(self, name: str) -> SimulatedNode:
        if name not in self.machines:
            raise ValueError(f"there is no node {name!r} (there are: {', '.join(self.machines) or 'none'})")
        return self.machines[name]


def _nodes(count: int, capacity: Mapping[str, str]) -> list[SimulatedNode]:
    return [SimulatedNode(f"node-{index + 1}", index, {**CAPACITY, **capacity}) for index in range(count)]
