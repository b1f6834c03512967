"""Endpoints: all addresses of a service in one object, grouped by their ports. At most a thousand."""

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

__all__ = ["MANAGED_BY", "MANAGER", "OVER_CAPACITY", "labels_of", "subsets_of", "truncate"]

MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
MANAGER: Final = "endpoint-controller"
OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
_MAX_ADDRESSES: Final = 1000

_Port: TypeAlias = tuple[str, int, str, str]
_Members: TypeAlias = tuple[tuple[str, str, bool], ...]


def labels_of(service: Service) -> dict[str, str]:
    """Return the labels of a service's Endpoints."""
    labels = {name: value for name, value in service.metadata.labels.items() if name != HEADLESS}
    return labels | ({HEADLESS: ""} if is_headless(service) else {}) | {MANAGED_BY: MANAGER}


def subsets_of(service: Service, pods: Iterable[Pod]) -> list[EndpointSubset]:
    """Group the pods of a service: those with the same ports form one subset."""
    publish_not_ready = bool(service.spec.publish_not_ready_addresses)
    family = families_of(service)[0]
    members: defaultdict[_Port | None, dict[tuple[str, str], bool]] = defaultdict(dict)
    addresses: dict[tuple[str, str], EndpointAddress] = {}
    for pod in pods:
        found = addresses_of(pod, family) if has_address(pod, with_terminating=publish_not_ready) else []
        if not found:
            continue
        address = _address(found[0], pod, service)
        key = (address.ip, pod.uid)
        addresses[key] = address
        for port in _ports(pod, service):
            members[port][key] = publish_not_ready or is_ready(pod)
    return _build_subsets(members, addresses)


def truncate(subsets: Sequence[EndpointSubset]) -> tuple[list[EndpointSubset], bool]:
    """Truncate subsets to the capacity of one object, ready addresses first; report whether that was necessary."""
    ready = sum(len(subset.addresses) for subset in subsets)
    waiting = sum(len(subset.not_ready_addresses) for subset in subsets)
    if ready + waiting <= _MAX_ADDRESSES:
        return list(subsets), False
    truncates_ready = ready > _MAX_ADDRESSES
    capacity, total = (_MAX_ADDRESSES, ready) if truncates_ready else (_MAX_ADDRESSES - ready, waiting)
    remaining = capacity
    result = []
    for subset in subsets:
        count = len(subset.addresses) if truncates_ready else len(subset.not_ready_addresses)
        share = min(-(-count * capacity // total), remaining)
        remaining -= min(share, count)
        result.append(
            EndpointSubset(
                addresses=subset.addresses[:share] if truncates_ready else subset.addresses,
                not_ready_addresses=[] if truncates_ready else subset.not_ready_addresses[:share],
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
    """Return the ports of a service that a pod has; [None] for a headless service without ports."""
    if not service.spec.ports:
        return [None] if service.spec.cluster_ip == "None" else []
    found = ((port, port_of(pod, port)) for port in service.spec.ports)
    return [
        (port.name or "", number, port.protocol or "", port.app_protocol or "")
        for port, number in found
        if number is not None
    ]


def _build_subsets(
    members: dict[_Port | None, dict[tuple[str, str], bool]], addresses: dict[tuple[str, str], EndpointAddress]
) -> list[EndpointSubset]:
    ports_by_members: defaultdict[_Members, list[_Port]] = defaultdict(list)
    for port, port_members in members.items():
        ports = ports_by_members[tuple(sorted((*key, ready) for key, ready in port_members.items()))]
        if port is not None:
            ports.append(port)
    return [
        _subset(members, ports, addresses)
        for members, ports in sorted(ports_by_members.items(), key=lambda item: sorted(item[1]))
    ]


def _subset(
    members: _Members, ports: Sequence[_Port], addresses: dict[tuple[str, str], EndpointAddress]
) -> EndpointSubset:
    return EndpointSubset(
        addresses=[addresses[ip, uid] for ip, uid, ready in members if ready],
        not_ready_addresses=[addresses[ip, uid] for ip, uid, ready in members if not ready],
        ports=[
            EndpointPort(name=name or None, port=number, protocol=protocol or None, app_protocol=app or None)
            for name, number, protocol, app in ports
        ],
    )
