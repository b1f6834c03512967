"""Cluster IPs and node ports of services: which are in use, and which comes next.

The stored services are the only record of what is in use. The next free one comes from a counter that only moves
forward, so two services that are created at the same time never get the same one. A rejected request or a dry run leaks
nothing: its address is free again when the counter wraps around.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final, Protocol

import msgspec

from konverge_cluster.storage import Entry, Storage

__all__ = ["NODE_PORTS", "ServiceIPAllocator", "StoredServiceIPs"]

NODE_PORTS: Final = (30000, 32767)
# The real server reserves the first addresses for services that request a specific one.
_FIRST_DYNAMIC: Final = 256


class ServiceIPAllocator(Protocol):
    """Source of cluster IPs and node ports; `network` is the range of the cluster IPs."""

    @property
    def network(self) -> ipaddress.IPv4Network: ...

    def next_address(self) -> str:
        """Return an address that no service uses.

        Raises: LookupError when all are in use.
        """
        ...

    def next_port(self) -> int:
        """Return a node port that no service uses.

        Raises: LookupError when all are in use.
        """
        ...

    def address_holder(self, address: str) -> str | None:
        """Return the key of the service that uses the address."""
        ...

    def port_holder(self, port: int) -> str | None:
        """Return the key of the service that uses the node port, with any protocol."""
        ...


class StoredServiceIPs:
    """Cluster IPs and node ports, as the stored services use them."""

    def __init__(self, storage: Storage, network: str = "10.96.0.0/16") -> None:
        self._holders = _Holders(storage)
        self._port = NODE_PORTS[0]
        self.use_network(ipaddress.IPv4Network(network))

    def use_network(self, network: ipaddress.IPv4Network) -> None:
        """Allocate from another range from now on."""
        self.network = network
        self._address_offset = min(_FIRST_DYNAMIC, network.num_addresses // 2)

    def next_address(self) -> str:
        used = self._holders.addresses()
        for _ in range(self.network.num_addresses):
            offset = self._address_offset
            # The first address is the network, the second one the API server's service, the last one the broadcast.
            self._address_offset = offset + 1 if offset + 2 < self.network.num_addresses else 2
            address = str(self.network[offset])
            if address not in used:
                return address
        raise LookupError("range is full")

    def next_port(self) -> int:
        used = self._holders.ports()
        low, high = NODE_PORTS
        for _ in range(low, high + 1):
            port = self._port
            self._port = port + 1 if port < high else low
            if port not in used:
                return port
        raise LookupError("range is full")

    def address_holder(self, address: str) -> str | None:
        return self._holders.addresses().get(address)

    def port_holder(self, port: int) -> str | None:
        return self._holders.ports().get(port)


class _Holders:
    """The services that use each address and port, updated incrementally from the change history of the services."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._services = storage.collection(("", "services"))
        self._position = -1
        self._addresses: dict[str, str] = {}
        self._ports: dict[int, str] = {}

    def addresses(self) -> dict[str, str]:
        self._update()
        return self._addresses

    def ports(self) -> dict[int, str]:
        self._update()
        return self._ports

    def _update(self) -> None:
        changes = self._services.changes_from(self._position)
        if changes is None:
            self._read_all()
            return
        for change in changes:
            if change.previous is not None:
                self._remove(change.previous)
            if change.kind != "DELETED":
                self._add(change.entry)
        self._position += len(changes)

    def _read_all(self) -> None:
        self._addresses.clear()
        self._ports.clear()
        for entry in self._services.entries():
            self._add(entry)
        self._position = self._services.position_after(self._storage.revision)

    def _remove(self, entry: Entry) -> None:
        addresses, ports = _addresses_and_ports(entry)
        for address in addresses:
            self._addresses.pop(address, None)
        for port in ports:
            self._ports.pop(port, None)

    def _add(self, entry: Entry) -> None:
        addresses, ports = _addresses_and_ports(entry)
        self._addresses.update(dict.fromkeys(addresses, entry.key))
        self._ports.update(dict.fromkeys(ports, entry.key))


def _addresses_and_ports(entry: Entry) -> tuple[list[str], list[int]]:
    spec: dict[str, Any] = msgspec.json.decode(entry.raw).get("spec", {})
    addresses = [address for address in spec.get("clusterIPs", ()) if address != "None"]
    ports = [port["nodePort"] for port in spec.get("ports", ()) if port.get("nodePort")]
    if spec.get("healthCheckNodePort"):
        ports.append(spec["healthCheckNodePort"])
    return addresses, ports
