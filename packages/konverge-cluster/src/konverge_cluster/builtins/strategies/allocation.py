"""Allocation of IP families, cluster IPs and node ports of services, and what updates preserve of them.

The cluster has one IP family, IPv4.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any, Final

from konverge_cluster.api.field_errors import FieldError, invalid
from konverge_cluster.builtins.addresses import NODE_PORTS, ServiceIPAllocator
from konverge_cluster.builtins.validation.services import validate_cluster_addresses

__all__ = [
    "allocate",
    "needs_address",
    "needs_health_port",
    "needs_node_ports",
    "normalize_cluster_ips",
    "patch_allocated_values",
    "validate_allocation",
]

Spec = dict[str, Any]

HEADLESS: Final = "None"


def needs_address(spec: Spec) -> bool:
    return bool(spec["type"] != "ExternalName")


def needs_node_ports(spec: Spec) -> bool:
    return spec["type"] in ("NodePort", "LoadBalancer")


def needs_health_port(spec: Spec) -> bool:
    return bool(spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local")


def patch_allocated_values(spec: Spec, old: Spec) -> None:
    """Restore allocated values that an update omits."""
    if needs_address(old) and needs_address(spec):
        if not spec.get("clusterIP") and old.get("clusterIP"):
            spec["clusterIP"] = old["clusterIP"]
        if not spec.get("clusterIPs") and spec.get("clusterIP") == old.get("clusterIP") and "clusterIPs" in old:
            spec["clusterIPs"] = list(old["clusterIPs"])
    if needs_node_ports(old) and needs_node_ports(spec):
        _patch_node_ports(spec, old)
    if needs_health_port(old) and needs_health_port(spec) and old.get("healthCheckNodePort"):
        spec.setdefault("healthCheckNodePort", old["healthCheckNodePort"])


def _patch_node_ports(spec: Spec, old: Spec) -> None:
    old_ports = {port.get("name", ""): port.get("nodePort", 0) for port in old.get("ports", ())}
    used = set(old_ports.values()) & {port.get("nodePort", 0) for port in spec.get("ports", ())}
    for port in spec.get("ports", ()):
        number = old_ports.get(port.get("name", ""), 0)
        if not port.get("nodePort") and number and number not in used:
            port["nodePort"] = number
            used.add(number)


def normalize_cluster_ips(spec: Spec, old: Spec) -> None:
    """Keep clusterIP and clusterIPs equal: a change of one of them changes both."""
    if old.get("clusterIPs") and not spec.get("clusterIPs") and old.get("clusterIP") == spec.get("clusterIP"):
        spec["clusterIPs"] = list(old["clusterIPs"])
    if old.get("clusterIP") != spec.get("clusterIP") and spec.get("clusterIPs") == old.get("clusterIPs"):
        if spec.get("clusterIP"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        else:
            spec.pop("clusterIPs", None)


def allocate(spec: Spec, addresses: ServiceIPAllocator, old: Spec | None = None) -> None:
    """Allocate the addresses and ports that a service needs and does not have."""
    if needs_address(spec):
        _default_ip_families(spec, old or {})
        if not (old and needs_address(old)):
            _allocate_cluster_ip(spec, addresses)
    if needs_node_ports(spec):
        _allocate_node_ports(spec, addresses)
    if needs_health_port(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = addresses.next_port()


def _default_ip_families(spec: Spec, old: Spec) -> None:
    has_no_selector = spec.get("clusterIP") == HEADLESS and not spec.get("selector")
    if "ipFamilyPolicy" not in spec:
        default = "RequireDualStack" if has_no_selector else "SingleStack"
        spec["ipFamilyPolicy"] = old.get("ipFamilyPolicy", default)
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = old.get("ipFamilies") or ["IPv4"]
    if has_no_selector and spec["ipFamilyPolicy"] != "SingleStack" and len(spec["ipFamilies"]) == 1:
        other = "IPv6" if spec["ipFamilies"][0] == "IPv4" else "IPv4"
        spec["ipFamilies"] = [*spec["ipFamilies"], other]


def _allocate_cluster_ip(spec: Spec, addresses: ServiceIPAllocator) -> None:
    if not spec.get("clusterIPs") and spec["ipFamilies"] == ["IPv4"]:
        spec["clusterIP"] = addresses.next_address()
        spec["clusterIPs"] = [spec["clusterIP"]]


def _allocate_node_ports(spec: Spec, addresses: ServiceIPAllocator) -> None:
    if spec["type"] == "LoadBalancer" and not spec.get("allocateLoadBalancerNodePorts"):
        return
    # Ports with the same number share a node port, regardless of their protocols.
    node_ports = {port["port"]: port["nodePort"] for port in reversed(spec.get("ports", ())) if port.get("nodePort")}
    for port in spec.get("ports", ()):
        if not port.get("nodePort"):
            port["nodePort"] = node_ports.setdefault(port["port"], 0) or addresses.next_port()
            node_ports[port["port"]] = port["nodePort"]


def validate_allocation(
    spec: Spec, addresses: ServiceIPAllocator, key: str, *, old: Spec | None = None, dry_run: bool = False
) -> list[FieldError]:
    """Return the errors of the first value that cannot be allocated; the real server stops there too.

    `key` is the key of the service. A dry run does not check whether node ports are free.
    """
    if not needs_address(spec):
        return []
    errors = list(validate_cluster_addresses(spec)) or list(_validate_ip_families(spec))
    if not errors and not (old and needs_address(old)):
        errors = list(_validate_cluster_ip(spec, addresses, key))
    return errors or list(_validate_node_ports(spec, None if dry_run else addresses, key))[:1]


def _validate_ip_families(spec: Spec) -> Iterator[FieldError]:
    if spec.get("clusterIP") == HEADLESS and not spec.get("selector"):
        return
    policy = spec.get("ipFamilyPolicy")
    if policy == "RequireDualStack":
        yield invalid("spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services")
    for index, family in enumerate(spec.get("ipFamilies", ())):
        if family == "IPv6":
            yield invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")


def _validate_cluster_ip(spec: Spec, addresses: ServiceIPAllocator, key: str) -> Iterator[FieldError]:
    cluster_ips = spec.get("clusterIPs", [])
    if len(cluster_ips) != 1 or cluster_ips == [HEADLESS]:
        return
    address, prefix = cluster_ips[0], f"failed to allocate IP {cluster_ips[0]}:"
    if ip_address(address) not in addresses.network:
        detail = f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {addresses.network}"
        yield invalid("spec.clusterIPs", cluster_ips, f"{prefix} {detail}")
    elif addresses.address_holder(address) not in (None, key):
        yield invalid("spec.clusterIPs", cluster_ips, f"{prefix} provided IP is already allocated")


def _validate_node_ports(spec: Spec, addresses: ServiceIPAllocator | None, key: str) -> Iterator[FieldError]:
    if not needs_node_ports(spec):
        return
    low, high = NODE_PORTS
    taken: dict[int, int] = {}
    for index, port in enumerate(spec.get("ports", ())):
        number = port.get("nodePort", 0)
        path = f"spec.ports[{index}].nodePort"
        if not number:
            continue
        if addresses is not None and not low <= number <= high:
            text = f"provided port is not in the valid range. The range of valid ports is {low}-{high}"
            yield invalid(path, number, text)
        # Ports with the same number share a node port, regardless of their protocols.
        elif taken.get(number, port["port"]) != port["port"] or (
            addresses is not None and addresses.port_holder(number) not in (None, key)
        ):
            yield invalid(path, number, "provided port is already allocated")
        taken[number] = port["port"]
