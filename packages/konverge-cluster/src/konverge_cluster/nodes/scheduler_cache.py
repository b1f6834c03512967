"""What the stand-in knows of pods and nodes: fed by the caches in one step with each change, asked by reconcilers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from konverge.cache import Event
from konverge.objects import Key
from konverge_cluster.nodes.allocations import Allocations
from konverge_cluster.nodes.scheduler import NodeInfo, Unschedulable, amounts, select_node, requests_of

__all__ = ["SchedulerCache"]

_OVER = ("Succeeded", "Failed")


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
    """Who is where, which nodes there are, and which pods wait for one.

    `pod_changed` and `node_changed` are mappers: they answer the pods that wait, when one of them may fit now.
    """

    def __init__(self) -> None:
        self.ledger = Allocations()
        self._seats: dict[str, NodeInfo] = {}
        self._waiting: dict[Key, None] = {}

    def pod_changed(self, event: Event) -> Iterable[Key]:
        """Take note of a pod; give the pods that wait when it left room."""
        entry = event.entry
        pod = entry.read(_Pod)
        status = pod.status or _PodStatus()
        if event.new is None:
            self._waiting.pop(entry.key, None)
        if event.new is None or status.phase in _OVER:
            return list(self._waiting) if self.ledger.leave(entry.uid) else ()
        if pod.spec.nodeName:
            self._waiting.pop(entry.key, None)
            own = "" if pod.spec.hostNetwork else status.podIP
            self.ledger.take(entry.uid, entry.key, pod.spec.nodeName, _requests(pod.spec), address=own)
        return ()

    def node_changed(self, event: Event) -> Iterable[Key]:
        """Take note of a node; give the pods that wait when it is another one to them, and its own when it goes."""
        name = event.key.name
        if event.new is None:
            self._seats.pop(name, None)
            return self.ledger.keys(name)
        seat, before = _seat(event.new.read(_Node)), self._seats.get(name)
        self._seats[name] = seat
        own = self.ledger.keys(name) if before is None else []
        return [*own, *self._waiting] if seat != before else ()

    def has_node(self, name: str) -> bool:
        """Tell whether there is such a node."""
        return name in self._seats

    def place(self, uid: str, key: Key, spec: dict[str, Any]) -> str | Unschedulable:
        """Choose a node for a pod, and count it there; one that fits nowhere waits."""
        chosen = select_node(spec, self._seats.values(), self.ledger.used)
        if isinstance(chosen, Unschedulable):
            self._waiting[key] = None
        else:
            self._waiting.pop(key, None)
            self.ledger.take(uid, key, chosen, requests_of(spec))
        return chosen


def _requests(spec: _PodSpec) -> dict[str, int]:
    parts = {"containers": spec.containers, "initContainers": spec.initContainers or []}
    return requests_of({**parts, "overhead": spec.overhead or {}})


def _seat(node: _Node) -> NodeInfo:
    spec, status = node.spec or _NodeSpec(), node.status or _NodeStatus()
    return NodeInfo(
        node.metadata.name,
        node.metadata.labels or {},
        tuple(spec.taints or ()),
        spec.unschedulable,
        amounts(status.allocatable or {}),
    )
