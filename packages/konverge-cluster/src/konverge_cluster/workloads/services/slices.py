"""EndpointSlices: all endpoints of a service, a hundred in each, with as few writes as it takes.

Endpoints with the same ports share slices. What stays, stays where it is; what comes goes into slices that change
anyway, then into one that has room for all of it, and then into new ones. A slice that is left empty becomes one of the
new ones, or goes. A service without endpoints has one empty slice.
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

__all__ = ["MANAGED_BY", "MANAGER", "SERVICE", "Changes", "Group", "changes_of"]

SERVICE: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
MANAGER: Final = "endpointslice-controller.k8s.io"
_RESERVED: Final = (SERVICE, MANAGED_BY, HEADLESS)
_MOST: Final = 100

Ports: TypeAlias = tuple[tuple[str, int, str, str], ...]
Identity: TypeAlias = tuple[tuple[str, ...], str, str, str]


@dataclass
class Group:
    """Endpoints that share their ports."""

    ports: list[EndpointPort]
    endpoints: list[Endpoint] = field(default_factory=list)


@dataclass
class Changes:
    """What is to be written."""

    create: list[EndpointSlice] = field(default_factory=list)
    update: list[EndpointSlice] = field(default_factory=list)
    delete: list[EndpointSlice] = field(default_factory=list)

    def add(self, other: Changes) -> None:
        """Take the changes of another group along."""
        self.create += other.create
        self.update += other.update
        self.delete += other.delete


def changes_of(
    service: Service,
    family: str,
    *,
    wanted: Iterable[tuple[list[EndpointPort], Endpoint]],
    slices: Sequence[EndpointSlice],
) -> Changes:
    """Say what has to be written so that the slices of an address type hold exactly these endpoints.

    `wanted` gives each endpoint with its ports. Slices that look like the service's but are another one's go.
    """
    owned = [one for one in slices if _is_owned(one, service)]
    changes = Changes(delete=[one for one in slices if not _is_owned(one, service)])
    existing: dict[Ports, list[EndpointSlice]] = {}
    for one in owned:
        existing.setdefault(_ports_key(one.ports), []).append(one)
    groups = _grouped(wanted)
    for key, group in groups.items():
        changes.add(_change_group(service, family, group, existing.get(key, [])))
    changes.delete += [one for key, left in existing.items() if key not in groups for one in left]
    if len(changes.delete) == len(slices) and not changes.create:
        _keep_one(service, family, changes)
    _reuse(service, changes)
    return changes


def _grouped(wanted: Iterable[tuple[list[EndpointPort], Endpoint]]) -> dict[Ports, Group]:
    groups: dict[Ports, Group] = {}
    for ports, endpoint in wanted:
        group = groups.setdefault(_ports_key(ports), Group(ports))
        if endpoint.addresses:
            group.endpoints.append(endpoint)
    return groups


def _change_group(service: Service, family: str, group: Group, slices: Sequence[EndpointSlice]) -> Changes:
    left = {_identity(endpoint): endpoint for endpoint in group.endpoints}
    changes, unchanged = _sort_out(service, slices, left)
    for one in sorted(changes.update, key=lambda one: len(one.endpoints), reverse=True):
        _fill(one, left)
    while left:
        roomy = _with_room(unchanged, len(left))
        if roomy is None:
            made = _new_slice(service, family, group.ports)
            _fill(made, left)
            changes.create.append(made)
        else:
            unchanged.remove(roomy)
            filled = _copied(roomy)
            _fill(filled, left)
            changes.update.append(filled)
    return changes


def _sort_out(
    service: Service, slices: Sequence[EndpointSlice], left: dict[Identity, Endpoint]
) -> tuple[Changes, list[EndpointSlice]]:
    """Take what is in slices already from what is left, and tell the slices that change from those that do not."""
    changes, unchanged = Changes(), []
    for one in slices:
        kept = [found for endpoint in one.endpoints if (found := left.pop(_identity(endpoint), None)) is not None]
        labels = _labels(service)
        if len(kept) == len(one.endpoints) and all(map(_is_same, kept, one.endpoints)) and _fits(one, service):
            unchanged.append(one)
        elif not kept and one.endpoints:
            changes.delete.append(one)
        else:
            changed = _copied(one)
            changed.endpoints, changed.metadata.labels = kept, labels
            changes.update.append(changed)
    return changes, unchanged


def _fill(one: EndpointSlice, left: dict[Identity, Endpoint]) -> None:
    for identity in list(left)[: max(_MOST - len(one.endpoints), 0)]:
        one.endpoints.append(left.pop(identity))


def _with_room(slices: Sequence[EndpointSlice], count: int) -> EndpointSlice | None:
    """Find the fullest slice with room for all that is left."""
    roomy = [one for one in slices if count < _MOST and len(one.endpoints) + count <= _MOST]
    return max(roomy, key=lambda one: len(one.endpoints), default=None)


def _keep_one(service: Service, family: str, changes: Changes) -> None:
    """Have an empty slice where there would be none."""
    empty = _new_slice(service, family, [])
    if len(changes.delete) == 1 and _is_placeholder(changes.delete[0], empty):
        changes.delete.clear()
    else:
        changes.create.append(empty)


def _reuse(service: Service, changes: Changes) -> None:
    """Turn slices that would go into those that would come."""
    for one in [one for one in changes.delete if _is_owned(one, service)]:
        if not changes.create:
            break
        made = changes.create.pop()
        reused = _copied(one)
        reused.endpoints, reused.ports, reused.metadata.labels = made.endpoints, made.ports, made.metadata.labels
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


def _copied(one: EndpointSlice) -> EndpointSlice:
    """Give a slice whose labels, ports and endpoints can be replaced; what it was read from goes along."""
    twin = copy.copy(one)
    twin.metadata = copy.copy(one.metadata)
    twin.endpoints = list(one.endpoints)
    return twin


def _labels(service: Service) -> dict[str, str]:
    copied = {name: value for name, value in service.metadata.labels.items() if name not in _RESERVED}
    own = {SERVICE: service.name, MANAGED_BY: MANAGER}
    return copied | own | ({HEADLESS: ""} if is_headless(service) else {})


def _fits(one: EndpointSlice, service: Service) -> bool:
    """Tell whether a slice has the labels of its service; the reserved ones are not compared."""
    mine = {name: value for name, value in one.metadata.labels.items() if name not in _RESERVED}
    return mine == {name: value for name, value in service.metadata.labels.items() if name not in _RESERVED}


def _is_owned(one: EndpointSlice, service: Service) -> bool:
    return any(reference.uid == service.uid for reference in one.metadata.owner_references)


def _is_placeholder(one: EndpointSlice, empty: EndpointSlice) -> bool:
    return not one.endpoints and not one.ports and one.metadata.labels == empty.metadata.labels


def _ports_key(ports: Iterable[EndpointPort]) -> Ports:
    rows = ((one.name or "", one.port or 0, one.protocol or "", one.app_protocol or "") for one in ports)
    return tuple(sorted(rows))


def _identity(endpoint: Endpoint) -> Identity:
    target = endpoint.target_ref
    named = (target.namespace or "", target.name or "") if target is not None else ("", "")
    return tuple(sorted(endpoint.addresses)), endpoint.hostname or "", *named


def _is_same(one: Endpoint, other: Endpoint) -> bool:
    """Compare what an endpoint says beside its identity."""
    return (one.node_name, one.zone, one.conditions, one.target_ref) == (
        other.node_name,
        other.zone,
        other.conditions,
        other.target_ref,
    )
