"""Strategy of services: allocation of addresses and node ports, and cleanup when the type changes."""

# ruff: noqa: ARG002, ARG004

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge_cluster.api.field_errors import FieldError, quote
from konverge_cluster.api.names import label_name_errors
from konverge_cluster.api.status_errors import internal_error
from konverge_cluster.api.strategy import Document, RequestContext, ResourceInfo
from konverge_cluster.api.tables import Column
from konverge_cluster.builtins import warnings
from konverge_cluster.builtins.addresses import ServiceIPAllocator
from konverge_cluster.builtins.defaults.networking import accepts_external_traffic, default_service
from konverge_cluster.builtins.strategies import allocation
from konverge_cluster.builtins.strategy import BuiltinStrategy
from konverge_cluster.builtins.validation import services as rules

__all__ = ["ServiceStrategy"]


class ServiceStrategy(BuiltinStrategy):
    """Services. Addresses are allocated on creation and stay if an update omits them."""

    set_defaults = staticmethod(default_service)
    returns_deleted = True
    create_on_update = True
    selectable_fields = ("spec.clusterIP", "spec.type")
    check = staticmethod(rules.validate_service)

    def check_update(self, new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_service_update(new, old)

    @staticmethod
    def check_status(new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_load_balancer_status(new["status"], new["spec"])

    def __init__(
        self, info: ResourceInfo, columns: tuple[Column, ...] = (), addresses: ServiceIPAllocator | None = None
    ) -> None:
        super().__init__(info, columns)
        self._addresses = addresses

    def warnings_on_create(self, new: Document) -> list[str]:
        return list(warnings.service_warnings(new))

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:
        return list(warnings.service_warnings(new))

    def name_errors(self, name: str, *, prefix: bool = False) -> list[str]:
        return label_name_errors(name, prefix=prefix)

    def validate(self, new: Document, context: RequestContext) -> list[FieldError]:
        # The real server allocates before it validates, and stops at the first allocation error.
        return self._allocation_errors(new, None, context) or super().validate(new, context)

    def validate_update(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        return self._allocation_errors(new, old["spec"], context) or super().validate_update(new, old, context)

    def _allocation_errors(self, new: Document, old_spec: Document | None, context: RequestContext) -> list[FieldError]:
        if self._addresses is None:
            return []
        metadata = new["metadata"]
        key = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        return allocation.validate_allocation(new["spec"], self._addresses, key, old=old_spec, dry_run=context.dry_run)

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        spec = new["spec"]
        if spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec["clusterIPs"] = [spec["clusterIP"]]
        self._allocate(new, None)

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        super().prepare_update(new, old, context)
        spec, old_spec = new["spec"], old["spec"]
        allocation.patch_allocated_values(spec, old_spec)
        allocation.normalize_cluster_ips(spec, old_spec)
        _drop_fields_of_old_type(new, old_spec)
        self._allocate(new, old_spec)

    def _allocate(self, new: Document, old_spec: Document | None) -> None:
        if self._addresses is None:
            return
        try:
            allocation.allocate(new["spec"], self._addresses, old_spec)
        except LookupError as error:
            name = quote(new["metadata"].get("name", ""))
            raise internal_error(f"failed to allocate addresses or ports for Service {name}: {error}") from None


def _drop_fields_of_old_type(new: Document, old_spec: dict[str, Any]) -> None:
    """Drop fields that only the old type supports, unless the update changes them."""
    spec = new["spec"]
    if allocation.needs_address(old_spec) and not allocation.needs_address(spec):
        if (spec.get("clusterIP"), spec.get("clusterIPs")) == (old_spec.get("clusterIP"), old_spec.get("clusterIPs")):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        _drop_unchanged(spec, old_spec, "ipFamilies")
        _drop_unchanged(spec, old_spec, "ipFamilyPolicy")
        _drop_unchanged(spec, old_spec, "internalTrafficPolicy")
    if allocation.needs_node_ports(old_spec) and not allocation.needs_node_ports(spec):
        _drop_node_ports(spec, old_spec)
    if allocation.needs_health_port(old_spec) and not allocation.needs_health_port(spec):
        _drop_unchanged(spec, old_spec, "healthCheckNodePort")
    if old_spec["type"] == "LoadBalancer" and spec["type"] != "LoadBalancer":
        _drop_unchanged(spec, old_spec, "allocateLoadBalancerNodePorts")
        _drop_unchanged(spec, old_spec, "loadBalancerClass")
    if accepts_external_traffic(old_spec) and not accepts_external_traffic(spec):
        _drop_unchanged(spec, old_spec, "externalTrafficPolicy")
    if spec["type"] != "LoadBalancer":
        new["status"] = {**new["status"], "loadBalancer": {}}


def _drop_unchanged(spec: dict[str, Any], old_spec: dict[str, Any], key: str) -> None:
    if spec.get(key) == old_spec.get(key):
        spec.pop(key, None)


def _drop_node_ports(spec: dict[str, Any], old_spec: dict[str, Any]) -> None:
    old_ports = {port["nodePort"] for port in old_spec.get("ports", ()) if "nodePort" in port}
    ports = {port["nodePort"] for port in spec.get("ports", ()) if "nodePort" in port}
    if ports <= old_ports:
        for port in spec.get("ports", ()):
            port.pop("nodePort", None)
