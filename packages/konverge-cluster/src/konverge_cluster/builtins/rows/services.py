"""Table rows of services, endpoints, ingresses and network policies."""

from __future__ import annotations

from typing import Any

from konverge_cluster.api.strategy import Document
from konverge_cluster.builtins.rows.formats import NONE, age, join_first, labels_text, selector_text

__all__ = [
    "endpoint_slice_cells",
    "endpoints_cells",
    "ingress_cells",
    "ingress_class_cells",
    "ip_address_cells",
    "network_policy_cells",
    "service_cells",
    "service_cidr_cells",
]


def service_cells(service: Document, now: float) -> list[Any]:
    spec = service["spec"]
    address = (spec.get("clusterIPs") or [NONE])[0]
    ports = ",".join(_port(each) for each in spec.get("ports", ())) or NONE
    cells = [service["metadata"]["name"], spec["type"], address, _external(service), ports]
    return [*cells, age(service, now), labels_text(spec.get("selector"))]


def _port(port: Document) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port['protocol']}"


def _external(service: Document) -> str:
    spec = service["spec"]
    external_ips = spec.get("externalIPs", [])
    match spec["type"]:
        case "ClusterIP" | "NodePort":
            return ",".join(external_ips) or NONE
        case "LoadBalancer":
            ingress = _load_balancer_addresses(service["status"])
            return ",".join([*ingress, *external_ips]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
        case _:
            return "<unknown>"


def _load_balancer_addresses(status: Document) -> list[str]:
    ingresses = status["loadBalancer"].get("ingress", ())
    return sorted({each.get("ip") or each.get("hostname", "") for each in ingresses} - {""})


def endpoints_cells(endpoints: Document, now: float) -> list[Any]:
    addresses = [
        text
        for subset in endpoints.get("subsets", ())
        for port in subset.get("ports") or [None]
        for text in _addresses(subset, port)
    ]
    text = join_first(addresses, empty="") if endpoints.get("subsets") else NONE
    return [endpoints["metadata"]["name"], text, age(endpoints, now)]


def _addresses(subset: Document, port: Document | None) -> list[str]:
    ips = [each["ip"] for each in subset.get("addresses", ())]
    if port is None:
        return ips
    return [f"[{ip}]:{port['port']}" if ":" in ip else f"{ip}:{port['port']}" for ip in ips]


def endpoint_slice_cells(endpoint_slice: Document, now: float) -> list[Any]:
    ports = [str(each.get("port") or each.get("name") or "*") for each in endpoint_slice["ports"] or ()]
    addresses = [address for each in endpoint_slice["endpoints"] or () for address in each["addresses"] or ()]
    cells = [
        endpoint_slice["metadata"]["name"],
        endpoint_slice["addressType"],
        join_first(ports),
        join_first(addresses),
    ]
    return [*cells, age(endpoint_slice, now)]


def ingress_cells(ingress: Document, now: float) -> list[Any]:
    spec = ingress["spec"]
    ports = "80, 443" if spec.get("tls") else "80"
    cells = [ingress["metadata"]["name"], spec.get("ingressClassName", NONE), _hosts(spec.get("rules", []))]
    return [*cells, ",".join(_load_balancer_addresses(ingress["status"])), ports, age(ingress, now)]


def _hosts(rules: list[Document]) -> str:
    hosts: list[str] = []
    more = False
    for rule in rules:
        more = more or len(hosts) == 3
        if not more and rule.get("host"):
            hosts.append(rule["host"])
    text = ",".join(hosts) or "*"
    return f"{text} + {len(rules) - 3} more..." if more else text


def ingress_class_cells(ingress_class: Document, now: float) -> list[Any]:
    metadata, spec = ingress_class["metadata"], ingress_class["spec"]
    default = metadata.get("annotations", {}).get("ingressclass.kubernetes.io/is-default-class") == "true"
    parameters, text = spec.get("parameters"), NONE
    if parameters is not None:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
        text = f"{parameters['kind']}{group}/{parameters['name']}"
    name = f"{metadata['name']} (default)" if default else metadata["name"]
    return [name, spec.get("controller", ""), text, age(ingress_class, now)]


def network_policy_cells(policy: Document, now: float) -> list[Any]:
    return [policy["metadata"]["name"], selector_text(policy["spec"].get("podSelector")), age(policy, now)]


def ip_address_cells(address: Document, now: float) -> list[Any]:
    parent, text = address["spec"].get("parentRef"), NONE
    if parent is not None:
        resource, group = parent.get("resource", ""), parent.get("group", "")
        path = [f"{resource}.{group}".lower() if group else resource.lower()]
        path += [parent["namespace"]] if parent.get("namespace") else []
        text = "/".join([*path, parent.get("name", "")])
    return [address["metadata"]["name"], text, age(address, now)]


def service_cidr_cells(cidr: Document, now: float) -> list[Any]:
    return [cidr["metadata"]["name"], ",".join(cidr["spec"].get("cidrs", ())), age(cidr, now)]
