"""The endpoint of one pod of a service: whether it has one, its addresses, ports and conditions."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final

from konverge.k8s.core.v1 import Container, Node, ObjectReference, Pod, Service, ServicePort
from konverge.k8s.discovery.v1 import Endpoint, EndpointConditions, EndpointPort
from konverge_cluster.workloads.pods.facts import is_being_deleted, is_finished, is_ready

__all__ = [
    "HEADLESS",
    "addresses_of",
    "endpoint_of",
    "families_of",
    "has_address",
    "hostname_of",
    "is_headless",
    "port_of",
    "ports_of",
    "target_of",
]

HEADLESS: Final = "service.kubernetes.io/headless"
_ZONE: Final = "topology.kubernetes.io/zone"
_FAMILIES: Final = ("IPv4", "IPv6")


def is_headless(service: Service) -> bool:
    """Report whether a service has no cluster IP."""
    return service.spec.cluster_ip in (None, "", "None")


def families_of(service: Service) -> list[str]:
    """Return the address types of a service's slices."""
    named = [family for family in service.spec.ip_families if family in _FAMILIES]
    if named:
        return named
    if is_headless(service):
        return list(_FAMILIES)
    return ["IPv6" if ":" in (service.spec.cluster_ip or "") else "IPv4"]


def has_address(pod: Pod, *, with_terminating: bool) -> bool:
    """Report whether a pod can be an endpoint: it is not finished, and has an address."""
    if is_finished(pod) or not (pod.status.pod_ip or pod.status.pod_ips):
        return False
    return with_terminating or not is_being_deleted(pod)


def endpoint_of(pod: Pod, service: Service, *, family: str, node: Node | None) -> Endpoint:
    """Return the endpoint of a pod in a slice."""
    serving, terminating = is_ready(pod), is_being_deleted(pod)
    ready = bool(service.spec.publish_not_ready_addresses) or (serving and not terminating)
    return Endpoint(
        addresses=addresses_of(pod, family),
        conditions=EndpointConditions(ready=ready, serving=serving, terminating=terminating),
        target_ref=target_of(pod),
        node_name=pod.spec.node_name or None,
        zone=node.metadata.labels.get(_ZONE) or None if node is not None else None,
        hostname=hostname_of(pod, service),
    )


def addresses_of(pod: Pod, family: str) -> list[str]:
    """Return the addresses of a pod of one family."""
    parsed = [ipaddress.ip_address(one.ip) for one in pod.status.pod_ips if one.ip]
    return [str(address) for address in parsed if f"IPv{address.version}" == family]


def target_of(pod: Pod) -> ObjectReference:
    """Return the reference to a pod."""
    return ObjectReference(kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)


def hostname_of(pod: Pod, service: Service) -> str | None:
    """Return the hostname of a pod under its service, if it requests one."""
    return pod.spec.hostname or None if pod.spec.subdomain == service.name else None


def ports_of(pod: Pod, service: Service) -> list[EndpointPort]:
    """Return the ports of a service in this pod; those that it does not have are left out."""
    found = ((port, port_of(pod, port)) for port in service.spec.ports)
    return [
        EndpointPort(name=port.name or "", port=number, protocol=port.protocol, app_protocol=port.app_protocol)
        for port, number in found
        if number is not None
    ]


def port_of(pod: Pod, port: ServicePort) -> int | None:
    """Return the number of a service port in a pod: the given number, or that of the named container port."""
    target = port.target_port if port.target_port is not None else port.port
    if isinstance(target, int):
        return target
    beside = [container for container in pod.spec.init_containers if container.restart_policy == "Always"]
    return _named_port([*pod.spec.containers, *beside], target, port.protocol)


def _named_port(containers: Iterable[Container], name: str, protocol: str | None) -> int | None:
    for container in containers:
        for port in container.ports:
            if port.name == name and port.protocol == protocol:
                return port.container_port
    return None
