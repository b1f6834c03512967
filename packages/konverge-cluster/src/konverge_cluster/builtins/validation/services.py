"""Validation of services and endpoints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from konverge_cluster.api.field_errors import duplicate, forbidden, invalid, required, unsupported
from konverge_cluster.builtins.defaults.networking import accepts_external_traffic
from konverge_cluster.builtins.validation.labels import validate_labels
from konverge_cluster.builtins.validation.values import (
    FieldErrors,
    is_ip,
    parse_ip,
    validate_cidr,
    validate_dns_label,
    validate_dns_subdomain,
    validate_enum,
    validate_ip,
    validate_port_number,
    validate_port_number_or_name,
    validate_qualified_name,
)

__all__ = [
    "LOOPBACK_DETAIL",
    "PROTOCOLS",
    "validate_cluster_addresses",
    "validate_endpoint_ip",
    "validate_endpoints",
    "validate_load_balancer_status",
    "validate_service",
    "validate_service_update",
]

Spec = dict[str, Any]

LOOPBACK_DETAIL: Final = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILY_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_ONLY_BALANCED: Final = "may only be used when `type` is 'LoadBalancer'"
_SECONDS_OF_A_DAY: Final = 86400


def validate_service(new: dict[str, Any]) -> FieldErrors:
    spec = new["spec"]
    kind, ports = spec["type"], spec.get("ports", [])
    headless = _is_headless(spec)
    if not ports and not headless and kind != "ExternalName":
        yield required("spec.ports")
    yield from _validate_type(spec, headless=headless)
    names: set[str] = set()
    for index, port in enumerate(ports):
        yield from _validate_port(port, names, f"spec.ports[{index}]", needs_name=len(ports) > 1)
    yield from validate_labels(spec.get("selector"), "spec.selector")
    yield from _validate_affinity(spec)
    yield from validate_cluster_addresses(spec)
    for index, address in enumerate(spec.get("externalIPs", ())):
        path = f"spec.externalIPs[{index}]"
        yield from list(validate_ip(address, path)) or validate_endpoint_ip(address, path)
    yield from validate_enum(kind, _TYPES, "spec.type")
    yield from _validate_node_ports(kind, ports)
    yield from _validate_unique_ports(ports)
    yield from _validate_load_balancer(spec)
    yield from _validate_traffic_policies(spec)


def _is_headless(spec: Spec) -> bool:
    return bool(spec.get("clusterIPs", [])[:1] == ["None"])


def _validate_type(spec: Spec, *, headless: bool) -> FieldErrors:
    kind = spec["type"]
    if kind in ("LoadBalancer", "NodePort") and headless:
        yield invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind != "ExternalName":
        return
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            yield forbidden(f"spec.{name}", "may not be set for ExternalName services")
    external = spec.get("externalName", "").removesuffix(".")
    if external:
        yield from validate_dns_subdomain(external, "spec.externalName")
    else:
        yield required("spec.externalName")


def _validate_port(port: Spec, names: set[str], path: str, *, needs_name: bool) -> FieldErrors:
    name = port.get("name", "")
    if name:
        yield from validate_dns_label(name, f"{path}.name")
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
    elif needs_name:
        yield required(f"{path}.name")
    yield from validate_port_number(port["port"], f"{path}.port")
    yield from validate_enum(port["protocol"], PROTOCOLS, f"{path}.protocol")
    yield from validate_port_number_or_name(port["targetPort"], f"{path}.targetPort")
    if "appProtocol" in port:
        yield from validate_qualified_name(port["appProtocol"], f"{path}.appProtocol")


def _validate_affinity(spec: Spec) -> FieldErrors:
    yield from validate_enum(spec["sessionAffinity"], ("ClientIP", "None"), "spec.sessionAffinity")
    if spec["sessionAffinity"] == "ClientIP":
        seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
        if not 0 < seconds <= _SECONDS_OF_A_DAY:
            path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            yield invalid(path, seconds, f"must be greater than 0 and less than {_SECONDS_OF_A_DAY}")


def validate_cluster_addresses(spec: Spec) -> FieldErrors:
    """Validate the cluster IPs of a service, against each other and against its IP families."""
    if spec["type"] == "ExternalName":
        return
    first, cluster_ips = spec.get("clusterIP", ""), spec.get("clusterIPs", [])
    if first and not cluster_ips:
        yield required("spec.clusterIPs")
    elif first and cluster_ips[0] != first:
        yield invalid("spec.clusterIPs", cluster_ips, "first value must match `clusterIP`")
    elif cluster_ips and not first:
        yield invalid("spec.clusterIPs", cluster_ips, "must be empty when `clusterIP` is not specified")
    yield from _validate_families(spec)
    errors = list(_validate_addresses(cluster_ips))
    yield from errors
    if len(cluster_ips) > 2:
        yield invalid("spec.clusterIPs", cluster_ips, "may only hold up to 2 values")
    if not errors:
        yield from _validate_address_families(cluster_ips, spec.get("ipFamilies", []))


def _validate_families(spec: Spec) -> FieldErrors:
    families = spec.get("ipFamilies", [])
    for index, family in enumerate(families):
        if family not in ("IPv4", "IPv6"):
            yield unsupported(f"spec.ipFamilies[{index}]", family, ("IPv4", "IPv6"))
        if family in families[:index]:
            yield duplicate(f"spec.ipFamilies[{index}]", family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        yield unsupported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES)


def _validate_addresses(cluster_ips: list[str]) -> FieldErrors:
    for index, address in enumerate(cluster_ips):
        if index == 0 and address == "None":
            if len(cluster_ips) > 1:
                yield invalid("spec.clusterIPs", cluster_ips, "'None' must be the first and only value")
        else:
            yield from validate_ip(address, f"spec.clusterIPs[{index}]")


def _validate_address_families(cluster_ips: list[str], families: list[str]) -> FieldErrors:
    versions = [":" in address for address in cluster_ips]
    if len(cluster_ips) > 1 and len(set(versions)) != 2:
        yield invalid("spec.clusterIPs", cluster_ips, "may specify no more than one IP for each IP family")
    if cluster_ips[:1] == ["None"]:
        return
    for index, (address, family) in enumerate(zip(cluster_ips, families, strict=False)):
        if (family == "IPv6") != (":" in address) and family in ("IPv4", "IPv6"):
            text = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield invalid(f"spec.clusterIPs[{index}]", address, text)


def _validate_node_ports(kind: str, ports: list[Spec]) -> FieldErrors:
    if kind == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                yield forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        number = port.get("nodePort", 0)
        if number and (port["protocol"], number) in seen:
            yield duplicate(f"spec.ports[{index}].nodePort", number)
        seen.add((port["protocol"], number))


def _validate_unique_ports(ports: list[Spec]) -> FieldErrors:
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        identity = (port["protocol"], port["port"])
        if identity in seen:
            value = {"Name": "", "Protocol": identity[0], "AppProtocol": None, "Port": identity[1]}
            yield duplicate(f"spec.ports[{index}]", {**value, "TargetPort": 0, "NodePort": 0})
        seen.add(identity)


def _validate_load_balancer(spec: Spec) -> FieldErrors:
    balanced = spec["type"] == "LoadBalancer"
    ranges = spec.get("loadBalancerSourceRanges", ())
    if ranges and not balanced:
        yield forbidden("spec.LoadBalancerSourceRanges", _ONLY_BALANCED)
    for index, value in enumerate(ranges):
        yield from validate_cidr(value.strip(), f"spec.LoadBalancerSourceRanges[{index}]")
    if "allocateLoadBalancerNodePorts" in spec and not balanced:
        yield forbidden("spec.allocateLoadBalancerNodePorts", _ONLY_BALANCED)
    if "loadBalancerClass" in spec:
        if balanced:
            yield from validate_qualified_name(spec["loadBalancerClass"], "spec.loadBalancerClass")
        else:
            yield forbidden("spec.loadBalancerClass", _ONLY_BALANCED)


def _validate_traffic_policies(spec: Spec) -> FieldErrors:
    policy = spec.get("externalTrafficPolicy")
    path = "spec.externalTrafficPolicy"
    if not accepts_external_traffic(spec):
        if policy:
            yield invalid(path, policy, "may only be set for externally-accessible services")
    else:
        yield from validate_enum(policy, ("Cluster", "Local"), path)
    yield from _validate_health_port(spec)
    internal = spec.get("internalTrafficPolicy")
    if internal is not None and internal not in ("Cluster", "Local"):
        yield unsupported("spec.internalTrafficPolicy", internal, ("Cluster", "Local"))
    allowed = ("PreferClose", "PreferSameZone", "PreferSameNode")
    if "trafficDistribution" in spec and spec["trafficDistribution"] not in allowed:
        yield unsupported("spec.trafficDistribution", spec["trafficDistribution"], allowed)


def _validate_health_port(spec: Spec) -> FieldErrors:
    port = spec.get("healthCheckNodePort", 0)
    path = "spec.healthCheckNodePort"
    if spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local":
        yield from validate_port_number(port, path)
    elif port:
        text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid(path, port, text)


def validate_service_update(new: dict[str, Any], old: dict[str, Any]) -> FieldErrors:
    spec, old_spec = new["spec"], old["spec"]
    if "ExternalName" not in (spec["type"], old_spec["type"]):
        yield from _validate_address_changes(spec.get("clusterIPs", []), old_spec.get("clusterIPs", []))
    if spec["type"] == old_spec["type"] == "LoadBalancer":
        old_class = old_spec.get("loadBalancerClass")
        if spec.get("loadBalancerClass") != old_class:
            yield invalid("spec.loadBalancerClass", spec.get("loadBalancerClass"), "may not change once set")
    yield from validate_service(new)


def _validate_address_changes(new: list[str], old: list[str]) -> FieldErrors:
    if new[:1] == old[:1] == ["None"]:
        return
    if len(new) == len(old):
        for index, address in enumerate(old):
            if address != new[index]:
                yield invalid(f"spec.clusterIPs[{index}]", new, "may not change once set")
    elif not new:
        yield invalid("spec.clusterIPs[0]", new, "primary clusterIP can not be unset")
    elif old and new[0] != old[0]:
        yield invalid("spec.clusterIPs[0]", new, "may not change once set")


def validate_load_balancer_status(status: Spec, spec: Spec) -> FieldErrors:
    ingresses = status["loadBalancer"].get("ingress", ())
    path = "status.loadBalancer.ingress"
    if ingresses and spec["type"] != "LoadBalancer":
        yield forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    for index, ingress in enumerate(ingresses):
        where = f"{path}[{index}]"
        if ingress.get("ip"):
            yield from validate_ip(ingress["ip"], f"{where}.ip")
        elif "ipMode" in ingress:
            yield forbidden(f"{where}.ipMode", "may not be specified when `ip` is not set")
        if ingress.get("ip") and ingress["ipMode"] not in ("Proxy", "VIP"):
            yield unsupported(f"{where}.ipMode", ingress["ipMode"], ("Proxy", "VIP"))
        host = ingress.get("hostname", "")
        if host:
            yield from validate_dns_subdomain(host, f"{where}.hostname")
            if is_ip(host):
                yield invalid(f"{where}.hostname", host, "must be a DNS name, not an IP address")


def validate_endpoint_ip(address: str, path: str) -> FieldErrors:
    """Validate an address that a pod can have."""
    parsed = parse_ip(address)
    if parsed is None:
        yield invalid(path, address, "must be a valid IP address")
        return
    if parsed.is_unspecified:
        yield invalid(path, address, f"may not be unspecified ({address})")
    if parsed.is_loopback:
        yield invalid(path, address, LOOPBACK_DETAIL)
    if parsed.is_link_local:
        yield invalid(path, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if address.startswith("224.0.0.") or address.lower().startswith("ff02:"):
        yield invalid(path, address, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


def validate_endpoints(subsets: Iterable[Spec]) -> FieldErrors:
    for index, subset in enumerate(subsets):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield required(path, "must specify `addresses` or `notReadyAddresses`")
        for name in ("addresses", "notReadyAddresses"):
            for at, address in enumerate(subset.get(name, ())):
                yield from _validate_endpoint_address(address, f"{path}.{name}[{at}]")
        ports = subset.get("ports", ())
        for at, port in enumerate(ports):
            yield from _validate_endpoint_port(port, f"{path}.ports[{at}]", needs_name=len(ports) > 1)


def _validate_endpoint_address(address: Spec, path: str) -> FieldErrors:
    yield from validate_ip(address["ip"], f"{path}.ip")
    if address.get("hostname"):
        yield from validate_dns_label(address["hostname"], f"{path}.hostname")
    if "nodeName" in address:
        yield from validate_dns_subdomain(address["nodeName"], f"{path}.nodeName")
    yield from validate_endpoint_ip(address["ip"], f"{path}.ip")


def _validate_endpoint_port(port: Spec, path: str, *, needs_name: bool) -> FieldErrors:
    if port.get("name"):
        yield from validate_dns_label(port["name"], f"{path}.name")
    elif needs_name:
        yield required(f"{path}.name")
    yield from validate_port_number(port["port"], f"{path}.port")
    yield from validate_enum(port["protocol"], PROTOCOLS, f"{path}.protocol")
    if "appProtocol" in port:
        yield from validate_qualified_name(port["appProtocol"], f"{path}.appProtocol")
