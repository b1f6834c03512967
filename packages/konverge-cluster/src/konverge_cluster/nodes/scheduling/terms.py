"""Parts of a pod's spec that the scheduler compares: affinity terms to other pods, and ports of the node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from konverge.objects import LabelSelector

__all__ = ["AffinityTerm", "HostPort", "PodAffinity", "host_ports_of"]

_ANY_ADDRESS: Final = "0.0.0.0"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class AffinityTerm:
    """Pods of some namespaces that a selector matches, and the node label that says where they are near."""

    topology_key: str
    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    weight: int = 0

    @classmethod
    def of(cls, term: Mapping[str, Any], pod_namespace: str, weight: int = 0) -> AffinityTerm:
        """Parse a term; without namespaces and namespaceSelector it is about pods in the pod's own namespace."""
        names = frozenset(term.get("namespaces") or ())
        selector = term.get("namespaceSelector")
        if selector is None and not names:
            names = frozenset([pod_namespace])
        return cls(
            term["topologyKey"],
            LabelSelector.from_spec(term.get("labelSelector")),
            names,
            None if selector is None else LabelSelector.from_spec(selector),
            weight,
        )

    def matches(self, namespace: str, labels: Mapping[str, str], namespaces: Mapping[str, Mapping[str, str]]) -> bool:
        """Report whether a pod is meant; `namespaces` are the labels of all namespaces."""
        near = namespace in self.namespaces or (
            self.namespace_selector is not None and self.namespace_selector.matches(namespaces.get(namespace, {}))
        )
        return near and self.selector.matches(labels)


@dataclass(frozen=True)
class PodAffinity:
    """The affinity terms of a pod: required and preferred, to be near or not near other pods."""

    required: tuple[AffinityTerm, ...] = ()
    preferred: tuple[AffinityTerm, ...] = ()
    required_anti: tuple[AffinityTerm, ...] = ()
    preferred_anti: tuple[AffinityTerm, ...] = ()

    @classmethod
    def of(cls, spec: Mapping[str, Any], namespace: str) -> PodAffinity:
        """Parse the terms of a pod's spec."""
        affinity = spec.get("affinity") or {}
        near, apart = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
        if not (near or apart):
            return _NONE
        return cls(
            _required(near, namespace),
            _preferred(near, namespace),
            _required(apart, namespace),
            _preferred(apart, namespace),
        )

    def __bool__(self) -> bool:
        return bool(self.required or self.preferred or self.required_anti or self.preferred_anti)


_NONE: Final = PodAffinity()


def _required(part: Mapping[str, Any], namespace: str) -> tuple[AffinityTerm, ...]:
    return tuple(AffinityTerm.of(term, namespace) for term in part.get(_REQUIRED) or ())


def _preferred(part: Mapping[str, Any], namespace: str) -> tuple[AffinityTerm, ...]:
    return tuple(
        AffinityTerm.of(one["podAffinityTerm"], namespace, one["weight"]) for one in part.get(_PREFERRED) or ()
    )


class HostPort(NamedTuple):
    """A port of a node that a container uses."""

    address: str
    protocol: str
    number: int

    def conflicts(self, other: HostPort) -> bool:
        """Report whether both cannot be used on one node."""
        if (self.protocol, self.number) != (other.protocol, other.number):
            return False
        return self.address == other.address or _ANY_ADDRESS in (self.address, other.address)


def host_ports_of(spec: Mapping[str, Any]) -> tuple[HostPort, ...]:
    """Return the host ports of the containers and sidecars of a pod."""
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    return tuple(
        HostPort(port.get("hostIP") or _ANY_ADDRESS, port.get("protocol") or "TCP", port["hostPort"])
        for container in (*spec.get("containers", ()), *sidecars)
        for port in container.get("ports") or ()
        if port.get("hostPort")
    )
