"""Strategies of namespaces, nodes, limit ranges and quotas."""

# ruff: noqa: ARG002, ARG004

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge_cluster.api.field_errors import FieldError
from konverge_cluster.api.names import label_name_errors
from konverge_cluster.api.strategy import Document, RequestContext, WriteRules
from konverge_cluster.builtins import warnings
from konverge_cluster.builtins.defaults import clusters
from konverge_cluster.builtins.strategy import BuiltinStrategy
from konverge_cluster.builtins.validation import clusters as rules

__all__ = ["LimitRangeStrategy", "NamespaceStrategy", "NodeStrategy", "ResourceQuotaStrategy"]


class NamespaceStrategy(BuiltinStrategy):
    """Namespaces. A new one is Active and has a spec finalizer that only the `finalize` subresource removes."""

    set_defaults = staticmethod(clusters.default_namespace)
    returns_deleted = True
    selectable_fields = ("status.phase",)
    check = staticmethod(rules.validate_namespace)

    @staticmethod
    def check_status(new: Document, old: Document) -> Iterable[FieldError]:
        return rules.validate_namespace_phase(new)

    def subresource_endpoints(self) -> dict[str, WriteRules]:
        return {"finalize": NamespaceFinalizeEndpoint()}

    def name_errors(self, name: str, *, prefix: bool = False) -> list[str]:
        return label_name_errors(name, prefix=prefix)

    def initial_status(self) -> Any:
        return {"phase": "Active"}

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        # Before this point a generated name is unknown.
        clusters.default_namespace(new)
        finalizers = new["spec"].get("finalizers", [])
        if "kubernetes" not in finalizers:
            new["spec"]["finalizers"] = [*finalizers, "kubernetes"]

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        super().prepare_update(new, old, context)
        new["spec"] = old["spec"]

    def mark_deleted(self, document: Document) -> None:
        document["status"]["phase"] = "Terminating"

    def is_deletion_blocked(self, document: Document) -> bool:
        return bool(document["spec"].get("finalizers"))


class NamespaceFinalizeEndpoint:
    """The finalize subresource: the namespace controller reports that the content is deleted."""

    reset_fields = ("status",)

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        new["status"] = old["status"]

    def validate_update(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        finalizers = new["spec"].get("finalizers", ())
        return list(rules.validate_namespace_finalizers(finalizers, lambda index: f"spec.finalizers[{index}]"))

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:
        return []


class NodeStrategy(BuiltinStrategy):
    """Nodes. The status can be set on creation; later only the status subresource changes it."""

    set_defaults = staticmethod(clusters.default_node)
    selectable_fields = ("spec.unschedulable",)
    check = staticmethod(rules.validate_node)
    check_change = staticmethod(rules.validate_node_update)
    check_status = staticmethod(rules.validate_node_update)

    def warnings_on_create(self, new: Document) -> list[str]:
        return list(warnings.node_warnings(new["spec"]))

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:
        return list(warnings.node_warnings(new["spec"]))

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        new["spec"].pop("configSource", None)

    def fields(self, document: Document) -> dict[str, str]:
        return {"spec.unschedulable": "true" if document["spec"].get("unschedulable") else "false"}


class LimitRangeStrategy(BuiltinStrategy):
    """LimitRanges."""

    set_defaults = staticmethod(clusters.default_limit_range)
    check = staticmethod(rules.validate_limit_range)
    create_on_update = True


class ResourceQuotaStrategy(BuiltinStrategy):
    """ResourceQuotas."""

    set_defaults = staticmethod(clusters.default_resource_quota)
    check = staticmethod(rules.validate_resource_quota)
    check_change = staticmethod(rules.validate_resource_quota_update)
    returns_deleted = True
