"""Strategies of ingresses, network policies, endpoints, and service addresses."""

# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from konverge_cluster.api.field_errors import FieldError
from konverge_cluster.api.strategy import Document, RequestContext
from konverge_cluster.builtins.defaults import networking
from konverge_cluster.builtins.strategy import BuiltinStrategy
from konverge_cluster.builtins.validation import networking as rules
from konverge_cluster.builtins.validation import services

__all__ = [
    "EndpointSliceStrategy",
    "EndpointsStrategy",
    "IPAddressStrategy",
    "IngressClassStrategy",
    "IngressStrategy",
    "LoopbackEndpointSliceStrategy",
    "LoopbackEndpointsStrategy",
    "NetworkPolicyStrategy",
    "ServiceCIDRStrategy",
]

_CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"


class EndpointsStrategy(BuiltinStrategy):
    """Endpoints, the predecessor of EndpointSlices."""

    set_defaults = staticmethod(networking.default_endpoints)
    create_on_update = True

    @staticmethod
    def check(new: Document) -> Iterable[FieldError]:
        return services.validate_endpoints(new.get("subsets", ()))

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return () if new.get("subsets") == old.get("subsets") else self.check(new)


class EndpointSliceStrategy(BuiltinStrategy):
    """EndpointSlices. A change of labels increments the generation."""

    set_defaults = staticmethod(networking.default_endpoint_slice)
    check = staticmethod(rules.validate_endpoint_slice)
    check_change = staticmethod(rules.validate_endpoint_slice_update)
    generation_fields = ("addressType", "endpoints", "ports")

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        _drop_topology(new)

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        _drop_topology(new)
        super().prepare_update(new, old, context)

    def update_generation(self, new: Document, old: Document) -> None:
        super().update_generation(new, old)
        if new["metadata"].get("labels") != old["metadata"].get("labels"):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


class LoopbackEndpointsStrategy(EndpointsStrategy):
    """Endpoints of process nodes, whose pods have loopback addresses."""

    @staticmethod
    def check(new: Document) -> Iterable[FieldError]:
        return _without_loopback(EndpointsStrategy.check(new))


class LoopbackEndpointSliceStrategy(EndpointSliceStrategy):
    """EndpointSlices of process nodes, whose pods have loopback addresses."""

    @staticmethod
    def check(new: Document) -> Iterator[FieldError]:
        return _without_loopback(rules.validate_endpoint_slice(new))


def _without_loopback(errors: Iterable[FieldError]) -> Iterator[FieldError]:
    return (error for error in errors if error.detail != services.LOOPBACK_DETAIL)


def _drop_topology(new: Document) -> None:
    """Drop a field that only v1beta1 could set, which is not served."""
    for endpoint in new["endpoints"] or ():
        endpoint.pop("deprecatedTopology", None)


class IngressStrategy(BuiltinStrategy):
    """Ingresses."""

    generation_fields = ("spec",)
    check = staticmethod(rules.validate_ingress_create)

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_ingress(new)

    def warnings_on_create(self, new: Document) -> list[str]:
        annotated = _CLASS_ANNOTATION in new["metadata"].get("annotations", {})
        if annotated and "ingressClassName" not in new["spec"]:
            return [f"annotation \"{_CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"]
        return []


class IngressClassStrategy(BuiltinStrategy):
    """IngressClasses."""

    set_defaults = staticmethod(networking.default_ingress_class)
    generation_fields = ("spec",)
    check = staticmethod(rules.validate_ingress_class)

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_ingress_class_update(new, old)


class NetworkPolicyStrategy(BuiltinStrategy):
    """NetworkPolicies."""

    set_defaults = staticmethod(networking.default_network_policy)
    check = staticmethod(rules.validate_network_policy)
    generation_fields = ("spec",)


class IPAddressStrategy(BuiltinStrategy):
    """IPAddresses: addresses that services use."""


class ServiceCIDRStrategy(BuiltinStrategy):
    """ServiceCIDRs: address ranges for services."""

    status_reset_fields = ("metadata", "spec")
