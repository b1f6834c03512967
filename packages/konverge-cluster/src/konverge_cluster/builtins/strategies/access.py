"""Strategies of service accounts, roles and bindings."""

from __future__ import annotations

from konverge_cluster.api.names import path_segment_name_errors
from konverge_cluster.api.strategy import Document, RequestContext
from konverge_cluster.builtins.defaults import registrations
from konverge_cluster.builtins.strategy import BuiltinStrategy
from konverge_cluster.builtins.validation import access as rules

__all__ = [
    "ClusterRoleBindingStrategy",
    "ClusterRoleStrategy",
    "RoleBindingStrategy",
    "RoleStrategy",
    "ServiceAccountStrategy",
]


class ServiceAccountStrategy(BuiltinStrategy):
    """ServiceAccounts. References to secrets are reduced to their names."""

    returns_deleted = True

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        _drop_all_but_names(new)

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        super().prepare_update(new, old, context)
        _drop_all_but_names(new)


def _drop_all_but_names(account: Document) -> None:
    if "secrets" in account:
        account["secrets"] = [{"name": each["name"]} if "name" in each else {} for each in account["secrets"]]


class RoleStrategy(BuiltinStrategy):
    """Roles. A list of rules that is empty is stored as none, after the writer became its owner."""

    create_on_update = True
    check = staticmethod(rules.validate_role)

    def decode(self, document: Document) -> tuple[Document, list[str]]:
        is_empty = document.get("rules") == []
        decoded, unknown = super().decode(document)
        if is_empty:
            decoded["rules"] = []
        return decoded, unknown

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        new["rules"] = new["rules"] or None

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        super().prepare_update(new, old, context)
        new["rules"] = new["rules"] or None

    def name_errors(self, name: str, *, prefix: bool = False) -> list[str]:
        return path_segment_name_errors(name, prefix=prefix)


class ClusterRoleStrategy(RoleStrategy):
    """ClusterRoles."""

    check = staticmethod(rules.validate_cluster_role)


class RoleBindingStrategy(BuiltinStrategy):
    """RoleBindings. The role reference is immutable."""

    set_defaults = staticmethod(registrations.default_binding)
    create_on_update = True
    check = staticmethod(rules.validate_binding)
    check_change = staticmethod(rules.validate_binding_update)

    def name_errors(self, name: str, *, prefix: bool = False) -> list[str]:
        return path_segment_name_errors(name, prefix=prefix)


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    """ClusterRoleBindings."""

    check = staticmethod(rules.validate_cluster_binding)
