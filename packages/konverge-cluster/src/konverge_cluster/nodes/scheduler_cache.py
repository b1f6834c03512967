"""The scheduler's view of pods and nodes. The informers update it with each event; reconcilers read it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from konverge.cache import Event
from konverge.objects import Key
from konverge_cluster.nodes.allocations import Allocations
from konverge_cluster.nodes.assigned_pods import AssignedPods
from konverge_cluster.nodes.scheduler import Unschedulable, select_node
from konverge_cluster.nodes.scheduling.requests import amounts
from konverge_cluster.nodes.scheduling.snapshot import NodeInfo, PodInfo, Snapshot

__all__ = ["SchedulerCache"]

_TERMINAL_PHASES = ("Succeeded", "Failed")


class _PodSpec(msgspec.Struct):
    containers: list[dict[str, Any]]
    nodeName: str = ""  # noqa: N815
    initContainers: list[dict[str, Any]] | None = None  # noqa: N815
    overhead: dict[str, Any] | None = None
    affinity: dict[str, Any] | None = None
    hostNetwork: bool = False  # noqa: N815


class _PodStatus(msgspec.Struct):
    phase: str = ""
    podIP: str = ""  # noqa: N815


class _Metadata(msgspec.Struct):
    name: str
    labels: dict[str, str] | None = None
    deletionTimestamp: str = ""  # noqa: N815


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _PodSpec
    status: _PodStatus | None = None


class _Namespace(msgspec.Struct):
    metadata: _Metadata


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
    """Pods on nodes, the nodes, the labels of namespaces, and the pods that wait for a node.

    `pod_changed`, `node_changed` and `namespace_changed` are mappers: they return the waiting pods that may fit now.
    """

    def __init__(self) -> None:
        self.allocations = Allocations()
        self._pods = AssignedPods()
        self._nodes: dict[str, NodeInfo] = {}
        self._namespaces: dict[str, dict[str, str]] = {}
        self._waiting: dict[Key, PodInfo] = {}

    def pod_changed(self, event: Event) -> Iterable[Key]:
        """Record a change of a pod; return the waiting pods that may fit since then."""
        entry = event.entry
        pod = entry.read(_Pod)
        status = pod.status or _PodStatus()
        if event.new is None:
            self._waiting.pop(entry.key, None)
        if event.new is None or status.phase in _TERMINAL_PHASES:
            self._pods.remove(entry.uid)
            return list(self._waiting) if self.allocations.remove(entry.uid) else ()
        if not pod.spec.nodeName:
            return ()
        self._waiting.pop(entry.key, None)
        own = "" if pod.spec.hostNetwork else status.podIP
        info = _pod_info(entry.key.namespace, pod)
        self.allocations.add(entry.uid, entry.key, pod.spec.nodeName, info.requests, address=own)
        return self._dependent() if self._pods.add(entry.uid, pod.spec.nodeName, info) else ()

    def namespace_changed(self, event: Event) -> Iterable[Key]:
        """Record the labels of a namespace; return the waiting pods that may fit since then."""
        name = event.key.name
        if event.new is None:
            self._namespaces.pop(name, None)
            return ()
        before = self._namespaces.get(name)
        self._namespaces[name] = event.new.read(_Namespace).metadata.labels or {}
        return self._dependent() if self._namespaces[name] != before else ()

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

    def node(self, name: str) -> NodeInfo | None:
        """Return a node, None if it does not exist."""
        return self._nodes.get(name)

    def schedule(self, uid: str, key: Key, pod: PodInfo) -> str | Unschedulable:
        """Select a node for a pod and assume it there; a pod that fits nowhere waits."""
        selected = select_node(pod, self._snapshot())
        if isinstance(selected, Unschedulable):
            self._waiting[key] = pod
        else:
            self._waiting.pop(key, None)
            self.allocations.add(uid, key, selected, pod.requests)
            self._pods.add(uid, selected, pod)
        return selected

    def forget(self, uid: str) -> None:
        """Undo the assumption that a pod is on a node."""
        self.allocations.remove(uid)
        self._pods.remove(uid)

    def _snapshot(self) -> Snapshot:
        pods = self._pods
        nodes = list(self._nodes.values())
        return Snapshot(nodes, self.allocations.used, pods.pods, pods.pods_with_affinity, self._namespaces)

    def _dependent(self) -> list[Key]:
        return [key for key, pod in self._waiting.items() if pod.waits_for_pods]


def _pod_info(namespace: str, pod: _Pod) -> PodInfo:
    spec = pod.spec
    parts = {"containers": spec.containers, "initContainers": spec.initContainers, "overhead": spec.overhead}
    return PodInfo(
        namespace,
        {**parts, "affinity": spec.affinity},
        pod.metadata.labels or {},
        bool(pod.metadata.deletionTimestamp),
    )


def _node_info(node: _Node) -> NodeInfo:
    spec, status = node.spec or _NodeSpec(), node.status or _NodeStatus()
    return NodeInfo(
        node.metadata.name,
        node.metadata.labels or {},
        tuple(spec.taints or ()),
        spec.unschedulable,
        amounts(status.allocatable or {}),
    )
