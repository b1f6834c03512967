"""Resource accounting: the requests and IP addresses that pods hold on each node."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network

from konverge.objects import Key
from konverge_cluster.nodes.scheduling.requests import Amounts

__all__ = ["Allocations"]


@dataclass
class _Allocation:
    key: Key
    node: str
    requests: Amounts
    address: str = ""


class Allocations:
    """Pods on nodes, by uid.

    Promises: a pod counts from the moment it is assumed to be on a node, before the server has stored the binding; two
    existing pods never share an address.
    """

    def __init__(self) -> None:
        self._allocations: dict[str, _Allocation] = {}
        self._used: dict[str, Amounts] = {}
        self._addresses: dict[str, str] = {}  # uid by address
        self._next: dict[str, int] = {}  # by node, the first address to try

    @property
    def used(self) -> dict[str, Amounts]:
        """The sum of requests of the pods on each node."""
        return self._used

    def add(self, uid: str, key: Key, node: str, requests: Amounts, *, address: str = "") -> None:
        """Count a pod on a node. Adding it again only records an address that was unknown."""
        allocation = self._allocations.get(uid)
        if allocation is None:
            allocation = self._allocations[uid] = _Allocation(key, node, requests)
            self._count(node, requests, 1)
        if address and not allocation.address:
            allocation.address = address
            self._addresses[address] = uid

    def remove(self, uid: str) -> bool:
        """Stop counting a pod; report whether it was counted."""
        allocation = self._allocations.pop(uid, None)
        if allocation is None:
            return False
        self._count(allocation.node, allocation.requests, -1)
        if self._addresses.get(allocation.address) == uid:
            del self._addresses[allocation.address]
        return True

    def address(self, uid: str, network: IPv4Network) -> str:
        """Return the address of a counted pod: the one it has, else a free one.

        Raises: ValueError when the network has none left.
        """
        allocation = self._allocations[uid]
        if not allocation.address:
            allocation.address = self._free_address(allocation.node, network)
            self._addresses[allocation.address] = uid
        return allocation.address

    def keys(self, node: str = "") -> list[Key]:
        """Return the keys of the pods on a node, or on all nodes."""
        return [allocation.key for allocation in self._allocations.values() if node in ("", allocation.node)]

    def _free_address(self, node: str, network: IPv4Network) -> str:
        size = network.num_addresses - 2
        start = self._next.get(node, 1)
        for offset in range(size):
            number = (start + offset - 1) % size + 1
            address = str(network.network_address + number)
            if number > 1 and address not in self._addresses:
                self._next[node] = number + 1
                return address
        raise ValueError(f"node {node} has no address left in {network}: schedule fewer pods on it")

    def _count(self, node: str, requests: Amounts, sign: int) -> None:
        used = self._used.setdefault(node, {})
        for name, amount in requests.items():
            used[name] = used.get(name, 0) + sign * amount
