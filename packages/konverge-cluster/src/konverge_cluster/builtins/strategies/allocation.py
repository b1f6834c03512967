"""What the server gives a service: families, cluster addresses, node ports; and what an update carries over.

The cluster has one family of addresses, IPv4.
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
    """Fill in what was given before and the update does not mention."""
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
    given = {port.get("name", ""): port.get("nodePort", 0) for port in old.get("ports", ())}
    used = set(given.values()) & {port.get("nodePort", 0) for port in spec.get("ports", ())}
    for port in spec.get("ports", ()):
        number = given.get(port.get("name", ""), 0)
        if not port.get("nodePort") and number and number not in used:
            port["nodePort"] = number
            used.add(number)


def normalize_cluster_ips(spec: Spec, old: Spec) -> None:
    """The single address and the list say the same; whoever changes one of them changes both."""
    if old.get("clusterIPs") and not spec.get("clusterIPs") and old.get("clusterIP") == spec.get("clusterIP"):
        spec["clusterIPs"] = list(old["clusterIPs"])
    if old.get("clusterIP") != spec.get("clusterIP") and spec.get("clusterIPs") == old.get("clusterIPs"):
        if spec.get("clusterIP"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        else:
            spec.pop("clusterIPs", None)


def allocate(spec: Spec, addresses: ServiceIPAllocator, old: Spec | None = None) -> None:
    """Give a service what it needs and does not have yet."""
    if needs_address(spec):
        _default_ip_families(spec, old or {})
        if not (old and needs_address(old)):
            _allocate_cluster_ip(spec, addresses)
    if needs_node_ports(spec):
        _allocate_node_ports(spec, addresses)
    if needs_health_port(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = addresses.next_port()


def _default_ip_families(spec: Spec, old: Spec) -> None:
    has_no_pods = spec.get("clusterIP") == HEADLESS and not spec.get("selector")
    if "ipFamilyPolicy" not in spec:
        own = "RequireDualStack" if has_no_pods else "SingleStack"
        spec["ipFamilyPolicy"] = old.get("ipFamilyPolicy", own)
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = old.get("ipFamilies") or ["IPv4"]
    if has_no_pods and spec["ipFamilyPolicy"] != "SingleStack" and len(spec["ipFamilies"]) == 1:
        other = "IPv6" if spec["ipFamilies"][0] == "IPv4" else "IPv4"
        spec["ipFamilies"] = [*spec["ipFamilies"], other]


def _allocate_cluster_ip(spec: Spec, addresses: ServiceIPAllocator) -> None:
    if not spec.get("clusterIPs") and spec["ipFamilies"] == ["IPv4"]:
        spec["clusterIP"] = addresses.next_address()
        spec["clusterIPs"] = [spec["clusterIP"]]


def _allocate_node_ports(spec: Spec, addresses: ServiceIPAllocator) -> None:
    if spec["type"] == "LoadBalancer" and not spec.get("allocateLoadBalancerNodePorts"):
        return
    # Ports of one number share a node port, whatever their protocols.
    wanted = {port["port"]: port["nodePort"] for port in reversed(spec.get("ports", ())) if port.get("nodePort")}
    for port in spec.get("ports", ()):
        if not port.get("nodePort"):
            port["nodePort"] = wanted.setdefault(port["port"], 0) or addresses.next_port()
            wanted[port["port"]] = port["nodePort"]


def validate_allocation(
    spec: Spec, addresses: ServiceIPAllocator, key: str, *, old: Spec | None = None, dry_run: bool = False
) -> list[FieldError]:
    """What cannot be given: the first thing, as the real server stops there. `key` is the service's own.

    In a dry_run (dry run) nobody asks whether node ports are to be had.
    """
    if not needs_address(spec):
        return []
    wrong = list(validate_cluster_addresses(spec)) or list(_validate_ip_families(spec))
    if not wrong and not (old and needs_address(old)):
        wrong = list(_validate_cluster_ip(spec, addresses, key))
    return wrong or list(_validate_node_ports(spec, None if dry_run else addresses, key))[:1]


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
    given = spec.get("clusterIPs", [])
    if len(given) != 1 or given == [HEADLESS]:
        return
    address, prefix = given[0], f"failed to allocate IP {given[0]}:"
    if ip_address(address) not in addresses.network:
        why = f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {addresses.network}"
        yield invalid("spec.clusterIPs", given, f"{prefix} {why}")
    elif addresses.address_holder(address) not in (None, key):
        yield invalid("spec.clusterIPs", given, f"{prefix} provided IP is already allocated")


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
        # Ports of one number share a node port, whatever their protocols.
        elif taken.get(number, port["port"]) != port["port"] or (
            addresses is not None and addresses.port_holder(number) not in (None, key)
        ):
            yield invalid(path, number, "provided port is already allocated")
        taken[number] = port["port"]
