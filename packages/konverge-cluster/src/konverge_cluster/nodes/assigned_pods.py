"""The pods on each node, as the scheduler sees them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from konverge_cluster.nodes.scheduling.snapshot import PodInfo

__all__ = ["AssignedPods"]


class _ByNode(Mapping[str, Collection[PodInfo]]):
    """Pods by node and uid; empty nodes take no memory."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, PodInfo]] = {}

    def __getitem__(self, node: str) -> Collection[PodInfo]:
        return self._pods[node].values()

    def __iter__(self) -> Iterator[str]:
        return iter(self._pods)

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, node: str, uid: str, pod: PodInfo) -> None:
        self._pods.setdefault(node, {})[uid] = pod

    def remove(self, node: str, uid: str) -> None:
        pods = self._pods.get(node, {})
        pods.pop(uid, None)
        if not pods:
            self._pods.pop(node, None)


class AssignedPods:
    """Pods that are on a node or assumed to be, by node: all of them, and those with affinity to other pods."""

    def __init__(self) -> None:
        self.pods = _ByNode()
        self.pods_with_affinity = _ByNode()
        self._nodes: dict[str, tuple[str, PodInfo]] = {}  # by uid

    def add(self, uid: str, node: str, pod: PodInfo) -> bool:
        """Add or replace a pod; report whether that may change where other pods fit."""
        before = self._nodes.get(uid)
        if before is not None:
            self.remove(uid)
        self._nodes[uid] = (node, pod)
        self.pods.add(node, uid, pod)
        if pod.affinity:
            self.pods_with_affinity.add(node, uid, pod)
        return before is None or (before[1].labels, before[1].terminating) != (pod.labels, pod.terminating)

    def remove(self, uid: str) -> None:
        """Remove a pod, if it is there."""
        node, _ = self._nodes.pop(uid, ("", None))
        self.pods.remove(node, uid)
        self.pods_with_affinity.remove(node, uid)
