"""EndpointSlices: all endpoints of a service, a hundred in each, with as few writes as possible.

Endpoints with the same ports share slices. Existing endpoints stay in their slice. New ones go into slices that change
anyway, then into one with room for all of them, and then into new slices. A slice that becomes empty is reused as a
new one, or deleted. A service without endpoints has one empty slice.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from konverge.k8s.core.v1 import Service
from konverge.k8s.discovery.v1 import Endpoint, EndpointPort, EndpointSlice
from konverge.objects import ObjectMeta
from konverge_cluster.workloads.pods.claims import owner_reference
from konverge_cluster.workloads.services.endpoints import HEADLESS, is_headless

__all__ = ["MANAGED_BY", "MANAGER", "SERVICE", "Changes", "Group", "required_changes"]

SERVICE: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
MANAGER: Final = "endpointslice-controller.k8s.io"
_RESERVED: Final = (SERVICE, MANAGED_BY, HEADLESS)
_MAX_ENDPOINTS: Final = 100

Ports: TypeAlias = tuple[tuple[str, int, str, str], ...]
Identity: TypeAlias = tuple[tuple[str, ...], str, str, str]


@dataclass
class Group:
    """Endpoints with the same ports."""

    ports: list[EndpointPort]
    endpoints: list[Endpoint] = field(default_factory=list)


@dataclass
class Changes:
    """The slices to write."""

    create: list[EndpointSlice] = field(default_factory=list)
    update: list[EndpointSlice] = field(default_factory=list)
    delete: list[EndpointSlice] = field(default_factory=list)

    def add(self, other: Changes) -> None:
        """Add the changes of another group."""
        self.create += other.create
        self.update += other.update
        self.delete += other.delete


def required_changes(
    service: Service,
    family: str,
    *,
    desired: Iterable[tuple[list[EndpointPort], Endpoint]],
    slices: Sequence[EndpointSlice],
) -> Changes:
    """Return the changes after which the slices of an address type have exactly these endpoints.

    `desired` has each endpoint with its ports. Slices of another owner with the labels of this service are deleted.
    """
    owned = [one for one in slices if _is_owned(one, service)]
    changes = Changes(delete=[one for one in slices if not _is_owned(one, service)])
    existing: dict[Ports, list[EndpointSlice]] = {}
    for one in owned:
        existing.setdefault(_ports_key(one.ports), []).append(one)
    groups = _grouped(desired)
    for key, group in groups.items():
        changes.add(_change_group(service, family, group, existing.get(key, [])))
    changes.delete += [one for key, remaining in existing.items() if key not in groups for one in remaining]
    if len(changes.delete) == len(slices) and not changes.create:
        _keep_one(service, family, changes)
    _reuse(service, changes)
    return changes


def _grouped(desired: Iterable[tuple[list[EndpointPort], Endpoint]]) -> dict[Ports, Group]:
    groups: dict[Ports, Group] = {}
    for ports, endpoint in desired:
        group = groups.setdefault(_ports_key(ports), Group(ports))
        if endpoint.addresses:
            group.endpoints.append(endpoint)
    return groups


def _change_group(service: Service, family: str, group: Group, slices: Sequence[EndpointSlice]) -> Changes:
    remaining = {_identity(endpoint): endpoint for endpoint in group.endpoints}
    changes, unchanged = _partition(service, slices, remaining)
    for one in sorted(changes.update, key=lambda one: len(one.endpoints), reverse=True):
        _fill(one, remaining)
    while remaining:
        candidate = _with_room(unchanged, len(remaining))
        if candidate is None:
            created = _new_slice(service, family, group.ports)
            _fill(created, remaining)
            changes.create.append(created)
        else:
            unchanged.remove(candidate)
            filled = _copy(candidate)
            _fill(filled, remaining)
            changes.update.append(filled)
    return changes


def _partition(
    service: Service, slices: Sequence[EndpointSlice], remaining: dict[Identity, Endpoint]
) -> tuple[Changes, list[EndpointSlice]]:
    """Remove existing endpoints from `remaining`, and separate slices that change from those that do not."""
    changes, unchanged = Changes(), []
    for one in slices:
        existing_endpoints = [
            found for endpoint in one.endpoints if (found := remaining.pop(_identity(endpoint), None)) is not None
        ]
        labels = _labels(service)
        if (
            len(existing_endpoints) == len(one.endpoints)
            and all(map(_is_same, existing_endpoints, one.endpoints))
            and _has_service_labels(one, service)
        ):
            unchanged.append(one)
        elif not existing_endpoints and one.endpoints:
            changes.delete.append(one)
        else:
            changed = _copy(one)
            changed.endpoints, changed.metadata.labels = existing_endpoints, labels
            changes.update.append(changed)
    return changes, unchanged


def _fill(one: EndpointSlice, remaining: dict[Identity, Endpoint]) -> None:
    for identity in list(remaining)[: max(_MAX_ENDPOINTS - len(one.endpoints), 0)]:
        one.endpoints.append(remaining.pop(identity))


def _with_room(slices: Sequence[EndpointSlice], count: int) -> EndpointSlice | None:
    """Return the fullest slice with room for all remaining endpoints."""
    candidate = [one for one in slices if count < _MAX_ENDPOINTS and len(one.endpoints) + count <= _MAX_ENDPOINTS]
    return max(candidate, key=lambda one: len(one.endpoints), default=None)


def _keep_one(service: Service, family: str, changes: Changes) -> None:
    """Keep one empty slice if there would be none."""
    empty = _new_slice(service, family, [])
    if len(changes.delete) == 1 and _is_placeholder(changes.delete[0], empty):
        changes.delete.clear()
    else:
        changes.create.append(empty)


def _reuse(service: Service, changes: Changes) -> None:
    """Update slices that would be deleted instead of creating new ones."""
    for one in [one for one in changes.delete if _is_owned(one, service)]:
        if not changes.create:
            break
        created = changes.create.pop()
        reused = _copy(one)
        reused.endpoints, reused.ports, reused.metadata.labels = (
            created.endpoints,
            created.ports,
            created.metadata.labels,
        )
        changes.delete.remove(one)
        changes.update.append(reused)


def _new_slice(service: Service, family: str, ports: Sequence[EndpointPort]) -> EndpointSlice:
    metadata = ObjectMeta(
        generate_name=f"{service.name}-",
        namespace=service.namespace,
        labels=_labels(service),
        owner_references=[owner_reference(service)],
    )
    return EndpointSlice(metadata=metadata, address_type=family, ports=list(ports))


def _copy(one: EndpointSlice) -> EndpointSlice:
    """Return a copy whose labels, ports and endpoints can be replaced; its source is shared."""
    clone = copy.copy(one)
    clone.metadata = copy.copy(one.metadata)
    clone.endpoints = list(one.endpoints)
    return clone


def _labels(service: Service) -> dict[str, str]:
    copied = {name: value for name, value in service.metadata.labels.items() if name not in _RESERVED}
    own = {SERVICE: service.name, MANAGED_BY: MANAGER}
    return copied | own | ({HEADLESS: ""} if is_headless(service) else {})


def _has_service_labels(one: EndpointSlice, service: Service) -> bool:
    """Report whether a slice has the labels of its service, reserved ones aside."""
    own = {name: value for name, value in one.metadata.labels.items() if name not in _RESERVED}
    return own == {name: value for name, value in service.metadata.labels.items() if name not in _RESERVED}


def _is_owned(one: EndpointSlice, service: Service) -> bool:
    return any(reference.uid == service.uid for reference in one.metadata.owner_references)


def _is_placeholder(one: EndpointSlice, empty: EndpointSlice) -> bool:
    return not one.endpoints and not one.ports and one.metadata.labels == empty.metadata.labels


def _ports_key(ports: Iterable[EndpointPort]) -> Ports:
    rows = ((one.name or "", one.port or 0, one.protocol or "", one.app_protocol or "") for one in ports)
    return tuple(sorted(rows))


def _identity(endpoint: Endpoint) -> Identity:
    target = endpoint.target_ref
    namespace, name = (target.namespace, target.name) if target is not None else ("", "")
    return tuple(sorted(endpoint.addresses)), endpoint.hostname or "", namespace or "", name or ""


def _is_same(one: Endpoint, other: Endpoint) -> bool:
    """Compare the fields of an endpoint that are not part of its identity."""
    return (one.node_name, one.zone, one.conditions, one.target_ref) == (
        other.node_name,
        other.zone,
        other.conditions,
        other.target_ref,
    )
