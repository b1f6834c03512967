"""The objects that a kubelet writes for its node: Node, conditions, Lease."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Final

from konverge.objects import MicroTime
from konverge_cluster.nodes.container_states import format_time

__all__ = ["CAPACITY", "LEASE_SECONDS", "SimulatedNode", "node_lease", "node_object", "ready_conditions"]

CAPACITY: Final = {"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"}
LEASE_SECONDS: Final = 40
_VERSION: Final = "v1.36.0"
_POD_NETWORK: Final = IPv4Network("10.64.0.0/10")
_FIRST_HOST: Final = IPv4Address("172.30.0.2")
_READY: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


@dataclass
class SimulatedNode:
    """A node that exists only as an object. `down_since` is when it was stopped, None while it runs.

    `address` is its IP address, by default one that follows from the index.
    """

    name: str
    index: int
    capacity: Mapping[str, str] = field(default_factory=lambda: dict(CAPACITY))
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    down_since: datetime | None = None
    address: str = ""

    @property
    def host(self) -> str:
        """The IP address of the node."""
        return self.address or str(_FIRST_HOST + self.index)

    @property
    def network(self) -> IPv4Network:
        """The range of the IP addresses of its pods."""
        size = 2 ** (32 - 22)
        return IPv4Network((int(_POD_NETWORK.network_address) + self.index * size, 22))


def node_object(node: SimulatedNode, now: datetime) -> dict[str, Any]:
    """Return the Node object as it is registered: with its status, ready from the start."""
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        "konverge.dev/simulated": "true",
        **node.labels,
    }
    network = str(node.network)
    spec: dict[str, Any] = {"podCIDR": network, "podCIDRs": [network], "providerID": f"konverge://{node.name}"}
    if node.taints:
        spec["taints"] = [dict(one) for one in node.taints]
    status = {
        "capacity": dict(node.capacity),
        "allocatable": dict(node.capacity),
        "addresses": [
            {"type": "InternalIP", "address": node.host},
            {"type": "Hostname", "address": node.name},
        ],
        "conditions": ready_conditions([], now),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": _info(node.name),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": labels, "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
        "spec": spec,
        "status": status,
    }


def _info(name: str) -> dict[str, str]:
    return {
        "architecture": "amd64",
        "operatingSystem": "linux",
        "osImage": "konverge simulated node",
        "kernelVersion": "0.0.0",
        "containerRuntimeVersion": "konverge://1.0.0",
        "kubeletVersion": _VERSION,
        "kubeProxyVersion": "",
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
    }


def ready_conditions(present: list[Mapping[str, Any]], now: datetime) -> list[dict[str, Any]]:
    """Return the conditions that the kubelet of a healthy node reports, merged into `present`."""
    conditions = {one["type"]: dict(one) for one in present}
    for type_, status, reason, message in _READY:
        old = conditions.get(type_, {})
        since = old.get("lastTransitionTime") if old.get("status") == status else None
        conditions[type_] = {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": format_time(now),
            "lastTransitionTime": since or format_time(now),
        }
    return list(conditions.values())


def node_lease(node: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the lease that a kubelet renews for its node."""
    metadata = node["metadata"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": metadata["name"], "namespace": "kube-node-lease", "ownerReferences": [owner]},
        "spec": {
            "holderIdentity": metadata["name"],
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": MicroTime.of(now).to_wire(),
        },
    }
