"""What is taken on each node, and by whom: requests and addresses."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network

from konverge.objects import Key
from konverge_cluster.nodes.scheduler import Amounts

__all__ = ["Allocations"]


@dataclass
class _Allocation:
    key: Key
    node: str
    requests: Amounts
    address: str = ""


class Allocations:
    """Pods on nodes, by uid.

    Promises: a pod counts from the moment it is given a node, before the server knows; an address is never given to
    two pods that are there at the same time.
    """

    def __init__(self) -> None:
        self._allocations: dict[str, _Allocation] = {}
        self._used: dict[str, Amounts] = {}
        self._addresses: dict[str, str] = {}  # uid by address
        self._next: dict[str, int] = {}  # by node, where to look for a free address first

    @property
    def used(self) -> dict[str, Amounts]:
        """What the pods on each node request."""
        return self._used

    def take(self, uid: str, key: Key, node: str, requests: Amounts, *, address: str = "") -> None:
        """Count a pod on a node; again changes nothing but an address that was not known."""
        stay = self._allocations.get(uid)
        if stay is None:
            stay = self._allocations[uid] = _Allocation(key, node, requests)
            self._count(node, requests, 1)
        if address and not stay.address:
            stay.address = address
            self._addresses[address] = uid

    def leave(self, uid: str) -> bool:
        """Count a pod no more; tell whether it was counted."""
        stay = self._allocations.pop(uid, None)
        if stay is None:
            return False
        self._count(stay.node, stay.requests, -1)
        if self._addresses.get(stay.address) == uid:
            del self._addresses[stay.address]
        return True

    def address(self, uid: str, network: IPv4Network) -> str:
        """Give the address of a pod that is counted: the one it has, else a free one.

        Raises: ValueError when the network has none left.
        """
        stay = self._allocations[uid]
        if not stay.address:
            stay.address = self._free(stay.node, network)
            self._addresses[stay.address] = uid
        return stay.address

    def keys(self, node: str = "") -> list[Key]:
        """Give the keys of the pods on a node, or on all."""
        return [stay.key for stay in self._allocations.values() if node in ("", stay.node)]

    def _free(self, node: str, network: IPv4Network) -> str:
        size = network.num_addresses - 2
        start = self._next.get(node, 1)
        for offset in range(size):
            number = (start + offset - 1) % size + 1
            address = str(network.network_address + number)
            if number > 1 and address not in self._addresses:
                self._next[node] = number + 1
                return address
        raise ValueError(f"node {node} has no address left in {network}: give it fewer pods")

    def _count(self, node: str, requests: Amounts, sign: int) -> None:
        used = self._used.setdefault(node, {})
        for name, amount in requests.items():
            used[name] = used.get(name, 0) + sign * amount
