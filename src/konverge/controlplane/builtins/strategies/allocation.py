"""What the server gives a service: families, cluster addresses, node ports; and what an update carries over.

The cluster has one family of addresses, IPv4.
"""

from __future__ import annotations

from typing import Any, Final

from konverge.controlplane.builtins.addresses import ServiceAddresses

__all__ = [
    "agree_on_addresses",
    "allocate",
    "carry_over",
    "needs_address",
    "needs_health_port",
    "needs_node_ports",
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
    given = spec.get("clusterIPs") or []
    if not given and spec["ipFamilies"] == ["IPv4"]:
        given = [addresses.next_address()]
    if given:
        spec["clusterIPs"], spec["clusterIP"] = given, given[0]


def _give_ports(spec: Spec, addresses: ServiceAddresses) -> None:
    if spec["type"] == "LoadBalancer" and not spec.get("allocateLoadBalancerNodePorts"):
        return
    # Ports of one number share a node port, whatever their protocols.
    wanted = {port["port"]: port["nodePort"] for port in reversed(spec.get("ports", ())) if port.get("nodePort")}
    for port in spec.get("ports", ()):
        if not port.get("nodePort"):
            port["nodePort"] = wanted.setdefault(port["port"], 0) or addresses.next_port()
            wanted[port["port"]] = port["nodePort"]
