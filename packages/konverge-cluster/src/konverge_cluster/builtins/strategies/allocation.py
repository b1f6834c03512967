"""What the server gives a service: families, cluster addresses, node ports; and what an update carries over.

The cluster has one family of addresses, IPv4.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any, Final

from konverge_cluster.api.field_errors import FieldError, invalid
from konverge_cluster.builtins.addresses import NODE_PORTS, ServiceAddresses
from konverge_cluster.builtins.validation.services import validate_cluster_addresses

__all__ = [
    "agree_on_addresses",
    "allocate",
    "carry_over",
    "needs_address",
    "needs_health_port",
    "needs_node_ports",
    "problems",
]

Spec = dict[str, Any]

HEADLESS: Final = "None"


def needs_address(spec: Spec) -> bool:
    return bool(spec["type"] != "ExternalName")


def needs_node_ports(spec: Spec) -> bool:
    return spec["type"] in ("NodePort", "LoadBalancer")


def needs_health_port(spec: Spec) -> bool:
    return bool(spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local")


def carry_over(spec: Spec, former: Spec) -> None:
    """Fill in what was given before and the update does not mention."""
    if needs_address(former) and needs_address(spec):
        if not spec.get("clusterIP") and former.get("clusterIP"):
            spec["clusterIP"] = former["clusterIP"]
        if not spec.get("clusterIPs") and spec.get("clusterIP") == former.get("clusterIP") and "clusterIPs" in former:
            spec["clusterIPs"] = list(former["clusterIPs"])
    if needs_node_ports(former) and needs_node_ports(spec):
        _carry_over_ports(spec, former)
    if needs_health_port(former) and needs_health_port(spec) and former.get("healthCheckNodePort"):
        spec.setdefault("healthCheckNodePort", former["healthCheckNodePort"])


def _carry_over_ports(spec: Spec, former: Spec) -> None:
    given = {port.get("name", ""): port.get("nodePort", 0) for port in former.get("ports", ())}
    used = set(given.values()) & {port.get("nodePort", 0) for port in spec.get("ports", ())}
    for port in spec.get("ports", ()):
        number = given.get(port.get("name", ""), 0)
        if not port.get("nodePort") and number and number not in used:
            port["nodePort"] = number
            used.add(number)


def agree_on_addresses(spec: Spec, former: Spec) -> None:
    """The single address and the list say the same; whoever changes one of them changes both."""
    if former.get("clusterIPs") and not spec.get("clusterIPs") and former.get("clusterIP") == spec.get("clusterIP"):
        spec["clusterIPs"] = list(former["clusterIPs"])
    if former.get("clusterIP") != spec.get("clusterIP") and spec.get("clusterIPs") == former.get("clusterIPs"):
        if spec.get("clusterIP"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        else:
            spec.pop("clusterIPs", None)


def allocate(spec: Spec, addresses: ServiceAddresses, former: Spec | None = None) -> None:
    """Give a service what it needs and does not have yet."""
    if needs_address(spec):
        _choose_families(spec, former or {})
        if not (former and needs_address(former)):
            _give_address(spec, addresses)
    if needs_node_ports(spec):
        _give_ports(spec, addresses)
    if needs_health_port(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = addresses.next_port()


def _choose_families(spec: Spec, former: Spec) -> None:
    has_no_pods = spec.get("clusterIP") == HEADLESS and not spec.get("selector")
    if "ipFamilyPolicy" not in spec:
        own = "RequireDualStack" if has_no_pods else "SingleStack"
        spec["ipFamilyPolicy"] = former.get("ipFamilyPolicy", own)
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = former.get("ipFamilies") or ["IPv4"]
    if has_no_pods and spec["ipFamilyPolicy"] != "SingleStack" and len(spec["ipFamilies"]) == 1:
        other = "IPv6" if spec["ipFamilies"][0] == "IPv4" else "IPv4"
        spec["ipFamilies"] = [*spec["ipFamilies"], other]


def _give_address(spec: Spec, addresses: ServiceAddresses) -> None:
    if not spec.get("clusterIPs") and spec["ipFamilies"] == ["IPv4"]:
        spec["clusterIP"] = addresses.next_address()
        spec["clusterIPs"] = [spec["clusterIP"]]


def _give_ports(spec: Spec, addresses: ServiceAddresses) -> None:
    if spec["type"] == "LoadBalancer" and not spec.get("allocateLoadBalancerNodePorts"):
        return
    # Ports of one number share a node port, whatever their protocols.
    wanted = {port["port"]: port["nodePort"] for port in reversed(spec.get("ports", ())) if port.get("nodePort")}
    for port in spec.get("ports", ()):
        if not port.get("nodePort"):
            port["nodePort"] = wanted.setdefault(port["port"], 0) or addresses.next_port()
            wanted[port["port"]] = port["nodePort"]


def problems(
    spec: Spec, addresses: ServiceAddresses, key: str, *, former: Spec | None = None, rehearsal: bool = False
) -> list[FieldError]:
    """What cannot be given: the first thing, as the real server stops there. `key` is the service's own.

    In a rehearsal (dry run) nobody asks whether node ports are to be had.
    """
    if not needs_address(spec):
        return []
    wrong = list(validate_cluster_addresses(spec)) or list(_family_problems(spec))
    if not wrong and not (former and needs_address(former)):
        wrong = list(_address_problems(spec, addresses, key))
    return wrong or list(_port_problems(spec, None if rehearsal else addresses, key))[:1]


def _family_problems(spec: Spec) -> Iterator[FieldError]:
    if spec.get("clusterIP") == HEADLESS and not spec.get("selector"):
        return
    policy = spec.get("ipFamilyPolicy")
    if policy == "RequireDualStack":
        yield invalid("spec.ipFamilyPolicy", policy, "this cluster is not configured for dual-stack services")
    for index, family in enumerate(spec.get("ipFamilies", ())):
        if family == "IPv6":
            yield invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")


def _address_problems(spec: Spec, addresses: ServiceAddresses, key: str) -> Iterator[FieldError]:
    given = spec.get("clusterIPs", [])
    if len(given) != 1 or given == [HEADLESS]:
        return
    address, prefix = given[0], f"failed to allocate IP {given[0]}:"
    if ip_address(address) not in addresses.network:
        why = f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {addresses.network}"
        yield invalid("spec.clusterIPs", given, f"{prefix} {why}")
    elif addresses.holder_of_address(address) not in (None, key):
        yield invalid("spec.clusterIPs", given, f"{prefix} provided IP is already allocated")


def _port_problems(spec: Spec, addresses: ServiceAddresses | None, key: str) -> Iterator[FieldError]:
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
            addresses is not None and addresses.holder_of_port(number) not in (None, key)
        ):
            yield invalid(path, number, "provided port is already allocated")
        taken[number] = port["port"]
