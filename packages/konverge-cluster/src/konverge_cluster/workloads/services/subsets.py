"""Endpoints: all addresses of a service in one object, grouped by the ports that they offer. At most a thousand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from konverge.k8s.core.v1 import EndpointAddress, EndpointPort, EndpointSubset, Pod, Service
from konverge_cluster.workloads.pods.facts import is_ready
from konverge_cluster.workloads.services.endpoints import (
    HEADLESS,
    addresses_of,
    families_of,
    has_address,
    hostname_of,
    is_headless,
    port_of,
    target_of,
)

__all__ = ["MANAGED_BY", "MANAGER", "OVER_CAPACITY", "labels_of", "subsets_of", "truncated"]

MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
MANAGER: Final = "endpoint-controller"
OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
_MOST: Final = 1000

_Port: TypeAlias = tuple[str, int, str, str]
_Members: TypeAlias = tuple[tuple[str, str, bool], ...]


def labels_of(service: Service) -> dict[str, str]:
    """Give the labels of a service's Endpoints."""
    labels = {name: value for name, value in service.metadata.labels.items() if name != HEADLESS}
    return labels | ({HEADLESS: ""} if is_headless(service) else {}) | {MANAGED_BY: MANAGER}


def subsets_of(service: Service, pods: Iterable[Pod]) -> list[EndpointSubset]:
    """Group the pods behind a service: those that offer the same ports make one subset."""
    tolerant = bool(service.spec.publish_not_ready_addresses)
    family = families_of(service)[0]
    members: defaultdict[_Port | None, dict[tuple[str, str], bool]] = defaultdict(dict)
    known: dict[tuple[str, str], EndpointAddress] = {}
    for pod in pods:
        found = addresses_of(pod, family) if has_address(pod, with_terminating=tolerant) else []
        if not found:
            continue
        address = _address(found[0], pod, service)
        key = (address.ip, pod.uid)
        known[key] = address
        for port in _ports(pod, service):
            members[port][key] = tolerant or is_ready(pod)
    return _packed(members, known)


def truncated(subsets: Sequence[EndpointSubset]) -> tuple[list[EndpointSubset], bool]:
    """Cut subsets to what one object may hold, ready addresses before others; tell whether that was necessary."""
    ready = sum(len(subset.addresses) for subset in subsets)
    waiting = sum(len(subset.not_ready_addresses) for subset in subsets)
    if ready + waiting <= _MOST:
        return list(subsets), False
    cut_ready = ready > _MOST
    room, whole = (_MOST, ready) if cut_ready else (_MOST - ready, waiting)
    left = room
    result = []
    for subset in subsets:
        count = len(subset.addresses) if cut_ready else len(subset.not_ready_addresses)
        share = min(-(-count * room // whole), left)
        left -= min(share, count)
        result.append(
            EndpointSubset(
                addresses=subset.addresses[:share] if cut_ready else subset.addresses,
                not_ready_addresses=[] if cut_ready else subset.not_ready_addresses[:share],
                ports=subset.ports,
            )
        )
    return result, True


def _address(ip: str, pod: Pod, service: Service) -> EndpointAddress:
    return EndpointAddress(
        ip=ip,
        node_name=pod.spec.node_name or None,
        target_ref=target_of(pod),
        hostname=hostname_of(pod, service),
    )


def _ports(pod: Pod, service: Service) -> list[_Port | None]:
    """Give the ports of a service that a pod has; None is the one of a headless service without any."""
    if not service.spec.ports:
        return [None] if service.spec.cluster_ip == "None" else []
    found = ((port, port_of(pod, port)) for port in service.spec.ports)
    return [
        (port.name or "", number, port.protocol or "", port.app_protocol or "")
        for port, number in found
        if number is not None
    ]


def _packed(
    members: dict[_Port | None, dict[tuple[str, str], bool]], known: dict[tuple[str, str], EndpointAddress]
) -> list[EndpointSubset]:
    together: defaultdict[_Members, list[_Port]] = defaultdict(list)
    for port, offering in members.items():
        ports = together[tuple(sorted((*key, ready) for key, ready in offering.items()))]
        if port is not None:
            ports.append(port)
    return [_subset(who, ports, known) for who, ports in sorted(together.items(), key=lambda item: sorted(item[1]))]


def _subset(who: _Members, ports: Sequence[_Port], known: dict[tuple[str, str], EndpointAddress]) -> EndpointSubset:
    return EndpointSubset(
        addresses=[known[ip, uid] for ip, uid, ready in who if ready],
        not_ready_addresses=[known[ip, uid] for ip, uid, ready in who if not ready],
        ports=[
            EndpointPort(name=name or None, port=number, protocol=protocol or None, app_protocol=app or None)
            for name, number, protocol, app in ports
        ],
    )
