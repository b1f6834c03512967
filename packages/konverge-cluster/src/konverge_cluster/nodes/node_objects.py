"""Nodes that are not there: what a kubelet would register and report of each."""

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
_PODS: Final = IPv4Network("10.64.0.0/10")
_HOSTS: Final = IPv4Address("172.30.0.2")
_WELL: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


@dataclass
class SimulatedNode:
    """A node that is played. `down_since` is since when it is, None while it is there."""

    name: str
    index: int
    capacity: Mapping[str, str] = field(default_factory=lambda: dict(CAPACITY))
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    down_since: datetime | None = None

    @property
    def host(self) -> str:
        """The address of the node."""
        return str(_HOSTS + self.index)

    @property
    def network(self) -> IPv4Network:
        """Where the addresses of its pods come from."""
        size = 2 ** (32 - 22)
        return IPv4Network((int(_PODS.network_address) + self.index * size, 22))


def node_object(machine: SimulatedNode, now: datetime) -> dict[str, Any]:
    """Write the node as it is registered: with its status, ready from the first moment."""
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/os": "linux",
        "konverge.dev/stand-in": "true",
        **machine.labels,
    }
    network = str(machine.network)
    spec: dict[str, Any] = {"podCIDR": network, "podCIDRs": [network], "providerID": f"konverge://{machine.name}"}
    if machine.taints:
        spec["taints"] = [dict(one) for one in machine.taints]
    status = {
        "capacity": dict(machine.capacity),
        "allocatable": dict(machine.capacity),
        "addresses": [
            {"type": "InternalIP", "address": machine.host},
            {"type": "Hostname", "address": machine.name},
        ],
        "conditions": ready_conditions([], now),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": _info(machine.name),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine.name, "labels": labels, "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
        "spec": spec,
        "status": status,
    }


def _info(name: str) -> dict[str, str]:
    return {
        "architecture": "amd64",
        "operatingSystem": "linux",
        "osImage": "konverge node stand-in",
        "kernelVersion": "0.0.0",
        "containerRuntimeVersion": "konverge://1.0.0",
        "kubeletVersion": _VERSION,
        "kubeProxyVersion": "",
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
    }


def ready_conditions(present: list[Mapping[str, Any]], now: datetime) -> list[dict[str, Any]]:
    """Write the conditions that a kubelet reports of a node that is well, among those that others keep."""
    kept = {one["type"]: dict(one) for one in present}
    for type_, status, reason, message in _WELL:
        old = kept.get(type_, {})
        since = old.get("lastTransitionTime") if old.get("status") == status else None
        kept[type_] = {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": format_time(now),
            "lastTransitionTime": since or format_time(now),
        }
    return list(kept.values())


def node_lease(node: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Write the lease by which a kubelet says that it is there."""
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
