"""What filters and scores read: the pod, the nodes, and the pods that are on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from konverge_cluster.nodes.scheduling.requests import Amounts, requests_of
from konverge_cluster.nodes.scheduling.terms import HostPort, PodAffinity, host_ports_of

if TYPE_CHECKING:
    from konverge_cluster.nodes.scheduling.volumes import PodVolumes

__all__ = ["MAX_SCORE", "Filter", "NodeCheck", "NodeInfo", "PodInfo", "PodRejected", "Rejection", "Score", "Snapshot"]

MAX_SCORE: Final = 100


@dataclass(frozen=True)
class NodeInfo:
    """The properties of a node that the scheduler uses."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, Any], ...] = ()
    unschedulable: bool = False
    allocatable: Amounts = field(default_factory=dict)


@dataclass(eq=False)
class PodInfo:
    """The properties of a pod that the scheduler uses; what is derived from its spec is computed once."""

    namespace: str
    spec: Mapping[str, Any]
    labels: Mapping[str, str] = field(default_factory=dict)
    terminating: bool = False
    volumes: PodVolumes | None = None  # of a pod with claims that is to be scheduled

    @cached_property
    def requests(self) -> Amounts:
        """The resources that it requests."""
        return requests_of(self.spec)

    @cached_property
    def affinity(self) -> PodAffinity:
        """Its affinity and anti-affinity to other pods."""
        return PodAffinity.of(self.spec, self.namespace)

    @cached_property
    def host_ports(self) -> tuple[HostPort, ...]:
        """The ports of the node that it needs."""
        return host_ports_of(self.spec)

    @property
    def waits_for_pods(self) -> bool:
        """Whether pods that come, go or change their labels may change where it fits."""
        return bool(self.affinity or self.spec.get("topologySpreadConstraints"))


@dataclass(frozen=True)
class Snapshot:
    """The state of the cluster for one decision.

    `used` is the sum of requests on each node, `pods` are the pods on each node, `pods_with_affinity` those with
    affinity or anti-affinity to pods, `namespaces` the labels of each namespace.
    """

    nodes: Sequence[NodeInfo]
    used: Mapping[str, Amounts] = field(default_factory=dict)
    pods: Mapping[str, Collection[PodInfo]] = field(default_factory=dict)
    pods_with_affinity: Mapping[str, Collection[PodInfo]] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, nodes: Sequence[NodeInfo], pods: Mapping[str, Collection[PodInfo]], **more: Any) -> Snapshot:
        """Return a snapshot of these pods on these nodes; what else it holds follows from them."""
        used: dict[str, Amounts] = {}
        for name, every in pods.items():
            amounts = used.setdefault(name, {})
            for pod in every:
                for resource, amount in pod.requests.items():
                    amounts[resource] = amounts.get(resource, 0) + amount
        affine = {name: [pod for pod in every if pod.affinity] for name, every in pods.items()}
        return cls(nodes, used, pods, affine, **more)


@dataclass(frozen=True)
class Rejection:
    """Why a node does not fit. `resolvable` means that it might fit if pods left it (preemption)."""

    reason: str
    resolvable: bool = False


class PodRejected(Exception):
    """Raised by a filter for a pod that fits on no node, with the reason."""


NodeCheck: TypeAlias = Callable[[NodeInfo], Sequence[Rejection]]
Filter: TypeAlias = Callable[[PodInfo, Snapshot], NodeCheck | None]
"""Prepares a check for a pod; None if every node fits. Raises: PodRejected."""
Score: TypeAlias = Callable[[PodInfo, Snapshot, Sequence[NodeInfo]], Mapping[str, int] | None]
"""Returns a score from 0 to MAX_SCORE for each of the nodes; None if all are equal."""
