"""Validation of ingresses, network policies and EndpointSlices."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from konverge.objects.names import dns_subdomain_errors, path_segment_errors
from konverge_cluster.api.field_errors import (
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    too_many,
    unsupported,
)
from konverge_cluster.builtins.validation.labels import validate_label_selector
from konverge_cluster.builtins.validation.services import PROTOCOLS, validate_endpoint_ip
from konverge_cluster.builtins.validation.values import (
    FieldErrors,
    is_ip,
    parse_network,
    port_name_errors,
    regex_error,
    validate_canonical_ip,
    validate_cidr,
    validate_dns_label,
    validate_dns_subdomain,
    validate_domain_prefixed_path,
    validate_immutable,
    validate_ip,
    validate_name,
    validate_port_number,
    validate_qualified_name,
)

__all__ = [
    "validate_endpoint_slice",
    "validate_endpoint_slice_update",
    "validate_ingress",
    "validate_ingress_class",
    "validate_ingress_class_update",
    "validate_ingress_create",
    "validate_network_policy",
    "validate_path_reference",
]

Spec = dict[str, Any]

_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDS: Final = ("/..", "/.")
_CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
_WILDCARD: Final = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_WILDCARD_RULE: Final = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower"
    " case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)
_ADDRESS_TYPES: Final = ("FQDN", "IPv4", "IPv6")


def validate_ingress_create(new: Spec) -> FieldErrors:
    yield from validate_ingress(new)
    annotated = new["metadata"].get("annotations", {}).get(_CLASS_ANNOTATION)
    class_name = new["spec"].get("ingressClassName")
    if annotated is not None and class_name is not None and annotated != class_name:
        text = "must match `ingressClassName` when both are specified"
        yield invalid(f"annotations.{_CLASS_ANNOTATION}", annotated, text)


def validate_ingress(new: Spec) -> FieldErrors:
    spec = new["spec"]
    if not spec.get("rules") and "defaultBackend" not in spec:
        yield invalid("spec", spec.get("rules"), "either `defaultBackend` or `rules` must be specified")
    if "defaultBackend" in spec:
        yield from _validate_backend(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(spec.get("rules", ())):
        yield from _validate_rule(rule, f"spec.rules[{index}]")
    for index, tls in enumerate(spec.get("tls", ())):
        for at, host in enumerate(tls.get("hosts", ())):
            yield from _validate_host(host, f"spec.tls[{index}].hosts[{at}]")
        if tls.get("secretName"):
            yield from validate_dns_subdomain(tls["secretName"], f"spec.tls[{index}].secretName")
    if "ingressClassName" in spec:
        yield from validate_dns_subdomain(spec["ingressClassName"], "spec.ingressClassName")


def _validate_rule(rule: Spec, path: str) -> FieldErrors:
    host = rule.get("host", "")
    if host:
        if is_ip(host):
            yield invalid(f"{path}.host", host, "must be a DNS name, not an IP address")
        yield from _validate_host(host, f"{path}.host")
    if "http" not in rule:
        return
    paths = rule["http"]["paths"] or []
    if not paths:
        yield required(f"{path}.http.paths")
    for index, each in enumerate(paths):
        yield from _validate_path(each, f"{path}.http.paths[{index}]")


def _validate_host(host: str, path: str) -> FieldErrors:
    if "*" not in host:
        yield from validate_dns_subdomain(host, path)
        return
    if len(host) > 253:
        yield invalid(path, host, "must be no more than 253 characters")
    if not re.fullmatch(_WILDCARD, host):
        yield invalid(path, host, regex_error(_WILDCARD_RULE, _WILDCARD, "*.example.com"))


def _validate_path(each: Spec, path: str) -> FieldErrors:
    kind, place = each["pathType"], each.get("path", "")
    if kind is None:
        yield required(f"{path}.pathType", "pathType must be specified")
        return
    if kind in ("Exact", "Prefix"):
        if not place.startswith("/"):
            yield invalid(f"{path}.path", place, "must be an absolute path")
        for sequence in _BAD_SEQUENCES:
            if sequence in place:
                yield invalid(f"{path}.path", place, f"must not contain '{sequence}'")
        for end in _BAD_ENDS:
            if place.endswith(end):
                yield invalid(f"{path}.path", place, f"cannot end with '{end}'")
    elif kind != "ImplementationSpecific":
        yield unsupported(f"{path}.pathType", kind, _PATH_TYPES)
    elif place and not place.startswith("/"):
        yield invalid(f"{path}.path", place, "must be an absolute path")
    yield from _validate_backend(each["backend"], f"{path}.backend")


def _validate_backend(backend: Spec, path: str) -> FieldErrors:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from validate_path_reference(resource, f"{path}.resource")
    elif service is None:
        yield invalid(path, "", "resource or service backend is required")
    else:
        yield from _validate_service_backend(service, path)


def _validate_service_backend(service: Spec, path: str) -> FieldErrors:
    if not service["name"]:
        yield required(f"{path}.service.name")
    else:
        yield from validate_dns_label(service["name"], f"{path}.service.name")
    name, number = service["port"].get("name"), service["port"].get("number")
    if name and number:
        yield invalid(path, "", "cannot set both port name & port number")
    elif name:
        yield from validate_name(name, port_name_errors, f"{path}.service.port.name")
    elif number:
        yield from validate_port_number(number, f"{path}.service.port.number")
    else:
        yield required(path, "port name or number is required")


def validate_path_reference(reference: Spec, path: str) -> FieldErrors:
    """Validate a reference by group, kind and name, each of which must be valid in a URL path."""
    if reference.get("apiGroup") is not None:
        yield from validate_dns_subdomain(reference["apiGroup"], f"{path}.apiGroup")
    for name in ("kind", "name"):
        if not reference.get(name):
            yield required(f"{path}.{name}")
        else:
            yield from validate_name(reference[name], path_segment_errors, f"{path}.{name}")


def validate_ingress_class(new: Spec) -> FieldErrors:
    spec = new["spec"]
    controller = spec.get("controller", "")
    if len(controller) > 250:
        yield too_long("spec.controller", 250)
    yield from validate_domain_prefixed_path(controller, "spec.controller")
    if "parameters" in spec:
        yield from _validate_parameters(spec["parameters"], "spec.parameters")


def _validate_parameters(parameters: Spec, path: str) -> FieldErrors:
    yield from validate_path_reference(parameters, path)
    scope, namespace = parameters["scope"], parameters.get("namespace")
    if scope not in ("Cluster", "Namespace"):
        yield unsupported(f"{path}.scope", scope, ("Cluster", "Namespace"))
    elif scope == "Namespace":
        if namespace is None:
            yield required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
        else:
            yield from validate_dns_label(namespace, f"{path}.namespace")
    elif namespace is not None:
        yield forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")


def validate_ingress_class_update(new: Spec, old: Spec) -> FieldErrors:
    yield from validate_immutable(new["spec"].get("controller"), old["spec"].get("controller"), "spec.controller")
    yield from validate_ingress_class(new)


def validate_network_policy(new: Spec) -> FieldErrors:
    spec = new["spec"]
    yield from validate_label_selector(spec.get("podSelector"), "spec.podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction, ())):
            path = f"spec.{direction}[{index}]"
            for at, port in enumerate(rule.get("ports", ())):
                yield from _validate_policy_port(port, f"{path}.ports[{at}]")
            for at, peer in enumerate(rule.get(peers, ())):
                yield from _validate_peer(peer, f"{path}.{peers}[{at}]")
    types = spec.get("policyTypes", [])
    if len(types) > 2:
        yield invalid("spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for index, kind in enumerate(types):
        if kind not in ("Ingress", "Egress"):
            yield unsupported(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))


def _validate_policy_port(port: Spec, path: str) -> FieldErrors:
    if port["protocol"] not in PROTOCOLS:
        yield unsupported(f"{path}.protocol", port["protocol"], ("TCP", "UDP", "SCTP"))
    first, last = port.get("port"), port.get("endPort")
    if isinstance(first, int):
        yield from validate_port_number(first, f"{path}.port")
        if last is not None:
            if last < first:
                yield invalid(f"{path}.endPort", first, "must be greater than or equal to `port`")
            yield from validate_port_number(last, f"{path}.endPort")
        return
    if last is not None:
        what = "is not specified" if first is None else "is non-numeric"
        yield invalid(f"{path}.endPort", last, f"may not be specified when `port` {what}")
    if first is not None:
        yield from validate_name(first, port_name_errors, f"{path}.port")


def _validate_peer(peer: Spec, path: str) -> FieldErrors:
    for name in ("podSelector", "namespaceSelector"):
        yield from validate_label_selector(peer.get(name), f"{path}.{name}")
    if "ipBlock" in peer:
        yield from _validate_ip_block(peer["ipBlock"], f"{path}.ipBlock")
    if not peer:
        yield required(path, "must specify a peer")
    elif len(peer) > 1 and "ipBlock" in peer:
        yield forbidden(path, "may not specify both ipBlock and another peer")


def _validate_ip_block(block: Spec, path: str) -> FieldErrors:
    if not block["cidr"]:
        yield required(f"{path}.cidr")
        return
    network = parse_network(block["cidr"])
    if network is None:
        yield from validate_cidr(block["cidr"], f"{path}.cidr")
        return
    for index, value in enumerate(block.get("except", ())):
        part = parse_network(value)
        if part is None:
            yield from validate_cidr(value, f"{path}.except[{index}]")
        elif part.version != network.version or part == network or not part.subnet_of(network):  # type: ignore[arg-type]
            yield invalid(f"{path}.except[{index}]", value, "must be a strict subset of `cidr`")


def validate_endpoint_slice(new: Spec) -> FieldErrors:
    kind = new["addressType"]
    if not kind:
        yield required("addressType")
    elif kind not in _ADDRESS_TYPES:
        yield unsupported("addressType", kind, _ADDRESS_TYPES)
        return
    yield from _validate_slice_ports(new["ports"] or [])
    yield from _validate_slice_endpoints(new["endpoints"] or [], kind)


def validate_endpoint_slice_update(new: Spec, old: Spec) -> FieldErrors:
    yield from validate_immutable(new["addressType"], old["addressType"], "addressType")


def _validate_slice_ports(ports: list[Spec]) -> FieldErrors:
    if len(ports) > 20000:
        yield too_many("ports", len(ports), 20000)
        return
    names: set[str] = set()
    for index, port in enumerate(ports):
        path = f"ports[{index}]"
        if port["name"]:
            yield from validate_dns_label(port["name"], f"{path}.name")
        if port["name"] in names:
            yield duplicate(f"{path}.name", port["name"])
        names.add(port["name"])
        if port["protocol"] not in PROTOCOLS:
            yield unsupported(f"{path}.protocol", port["protocol"], PROTOCOLS)
        if "appProtocol" in port:
            yield from validate_qualified_name(port["appProtocol"], f"{path}.appProtocol")


def _validate_slice_endpoints(endpoints: list[Spec], kind: str) -> FieldErrors:
    if len(endpoints) > 1000:
        yield too_many("endpoints", len(endpoints), 1000)
        return
    for index, endpoint in enumerate(endpoints):
        path = f"endpoints[{index}]"
        addresses = endpoint["addresses"] or []
        if not addresses:
            yield required(f"{path}.addresses", "must contain at least 1 address")
        elif len(addresses) > 100:
            yield too_many(f"{path}.addresses", len(addresses), 100)
        yield from _validate_slice_addresses(addresses, kind, f"{path}.addresses")
        if "nodeName" in endpoint:
            yield from validate_dns_subdomain(endpoint["nodeName"], f"{path}.nodeName")
        if "hostname" in endpoint:
            yield from validate_dns_label(endpoint["hostname"], f"{path}.hostname")


def _validate_slice_addresses(addresses: Iterable[str], kind: str, path: str) -> FieldErrors:
    for index, address in enumerate(addresses):
        where = f"{path}[{index}]"
        if kind == "FQDN":
            yield from _validate_domain_name(address, where)
            continue
        errors = list((validate_canonical_ip if kind == "IPv6" else validate_ip)(address, where))
        yield from errors
        if kind in ("IPv4", "IPv6") and not errors:
            if (":" in address) != (kind == "IPv6"):
                yield invalid(path, address, f"must be an {kind} address")
            yield from validate_endpoint_ip(address, where)


def _validate_domain_name(name: str, path: str) -> FieldErrors:
    if not name:
        yield required(path)
        return
    name = name.removesuffix(".")
    errors = dns_subdomain_errors(name)
    if errors:
        yield invalid(path, name, ",".join(errors))
    elif "." not in name:
        yield invalid(path, name, "should be a domain with at least two segments separated by dots")
