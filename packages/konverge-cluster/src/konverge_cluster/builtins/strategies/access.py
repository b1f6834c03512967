"""Accounts, roles and bindings."""

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
    """An account of pods; of the secrets it names only the names are kept."""

    returns_deleted = True

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        _keep_names(new)

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        super().prepare_update(new, old, context)
        _keep_names(new)


def _keep_names(account: Document) -> None:
    if "secrets" in account:
        account["secrets"] = [{"name": each["name"]} if "name" in each else {} for each in account["secrets"]]


class RoleStrategy(BuiltinStrategy):
    """What may be done in a namespace."""

    create_on_update = True
    check = staticmethod(rules.validate_role)

    def name_errors(self, name: str, *, prefix: bool = False) -> list[str]:
        return path_segment_name_errors(name, prefix=prefix)


class ClusterRoleStrategy(RoleStrategy):
    """What may be done everywhere."""

    check = staticmethod(rules.validate_cluster_role)


class RoleBindingStrategy(BuiltinStrategy):
    """Who may do it; what it is never changes."""

    set_defaults = staticmethod(registrations.default_binding)
    create_on_update = True
    check = staticmethod(rules.validate_binding)
    check_change = staticmethod(rules.validate_binding_update)

    def name_errors(self, name: str, *, prefix: bool = False) -> list[str]:
        return path_segment_name_errors(name, prefix=prefix)


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    """Who may do it everywhere."""

    check = staticmethod(rules.validate_cluster_binding)
