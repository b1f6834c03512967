"""The scheduler's view of pods and nodes. The informers update it with each event; reconcilers read it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from konverge.cache import Event
from konverge.objects import Key
from konverge_cluster.nodes.allocations import Allocations
from konverge_cluster.nodes.scheduler import NodeInfo, Unschedulable, amounts, requests_of, select_node

__all__ = ["SchedulerCache"]

_TERMINAL_PHASES = ("Succeeded", "Failed")


class _PodSpec(msgspec.Struct):
    containers: list[dict[str, Any]]
    nodeName: str = ""  # noqa: N815
    initContainers: list[dict[str, Any]] | None = None  # noqa: N815
    overhead: dict[str, Any] | None = None
    hostNetwork: bool = False  # noqa: N815


class _PodStatus(msgspec.Struct):
    phase: str = ""
    podIP: str = ""  # noqa: N815


class _Pod(msgspec.Struct):
    spec: _PodSpec
    status: _PodStatus | None = None


class _Metadata(msgspec.Struct):
    name: str
    labels: dict[str, str] | None = None


class _NodeSpec(msgspec.Struct):
    taints: list[dict[str, Any]] | None = None
    unschedulable: bool = False


class _NodeStatus(msgspec.Struct):
    allocatable: dict[str, Any] | None = None


class _Node(msgspec.Struct):
    metadata: _Metadata
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


class SchedulerCache:
    """Allocations of pods, the nodes, and the pods that wait for a node.

    `pod_changed` and `node_changed` are mappers: they return the waiting pods when one of them may fit now.
    """

    def __init__(self) -> None:
        self.allocations = Allocations()
        self._nodes: dict[str, NodeInfo] = {}
        self._waiting: dict[Key, None] = {}

    def pod_changed(self, event: Event) -> Iterable[Key]:
        """Record a change of a pod; return the waiting pods if it freed resources."""
        entry = event.entry
        pod = entry.read(_Pod)
        status = pod.status or _PodStatus()
        if event.new is None:
            self._waiting.pop(entry.key, None)
        if event.new is None or status.phase in _TERMINAL_PHASES:
            return list(self._waiting) if self.allocations.remove(entry.uid) else ()
        if pod.spec.nodeName:
            self._waiting.pop(entry.key, None)
            own = "" if pod.spec.hostNetwork else status.podIP
            self.allocations.add(entry.uid, entry.key, pod.spec.nodeName, _requests(pod.spec), address=own)
        return ()

    def node_changed(self, event: Event) -> Iterable[Key]:
        """Record a change of a node; return the waiting pods if it matters to them, and its own if it is deleted."""
        name = event.key.name
        if event.new is None:
            self._nodes.pop(name, None)
            return self.allocations.keys(name)
        node, before = _node_info(event.new.read(_Node)), self._nodes.get(name)
        self._nodes[name] = node
        own = self.allocations.keys(name) if before is None else []
        return [*own, *self._waiting] if node != before else ()

    def has_node(self, name: str) -> bool:
        """Report whether a node exists."""
        return name in self._nodes

    def schedule(self, uid: str, key: Key, spec: dict[str, Any]) -> str | Unschedulable:
        """Select a node for a pod and assume it there; a pod that fits nowhere waits."""
        selected = select_node(spec, self._nodes.values(), self.allocations.used)
        if isinstance(selected, Unschedulable):
            self._waiting[key] = None
        else:
            self._waiting.pop(key, None)
            self.allocations.add(uid, key, selected, requests_of(spec))
        return selected


def _requests(spec: _PodSpec) -> dict[str, int]:
    parts = {"containers": spec.containers, "initContainers": spec.initContainers or []}
    return requests_of({**parts, "overhead": spec.overhead or {}})


def _node_info(node: _Node) -> NodeInfo:
    spec, status = node.spec or _NodeSpec(), node.status or _NodeStatus()
    return NodeInfo(
        node.metadata.name,
        node.metadata.labels or {},
        tuple(spec.taints or ()),
        spec.unschedulable,
        amounts(status.allocatable or {}),
    )
