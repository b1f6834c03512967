"""The controller of aggregated ClusterRoles: their rules are those of the ClusterRoles that their selectors match."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from konverge.cache import Entry, Event
from konverge.controller import Controller, controller_for
from konverge.k8s.rbac.v1 import ClusterRole, PolicyRule
from konverge.objects import Key, LabelSelector, Unstructured, to_wire
from konverge.reconcile import Context, Reconciler, Result
from konverge.triggers import CacheReader, Predicate, spec_or_metadata_changed

__all__ = ["RoleAggregationReconciler", "role_aggregation_controller"]

_MANAGER: Final = "clusterrole-aggregation-controller"
_INDEX: Final = "aggregated"


class RoleAggregationReconciler(Reconciler[ClusterRole]):
    """Applies the rules of an aggregated role: those of each selector in the order of names, each rule once."""

    async def reconcile(self, obj: ClusterRole, ctx: Context) -> Result | None:
        """Apply the rules of a role with an aggregation rule; leave every other role alone."""
        if obj.aggregation_rule is None:
            return None
        rules: list[PolicyRule] = []
        for spec in obj.aggregation_rule.cluster_role_selectors:
            selected = await ctx.list(ClusterRole, labels=str(LabelSelector.from_spec(spec)))
            _add_rules(rules, (role for role in selected if role.name != obj.name))
        if rules != obj.rules:
            desired = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
            body = desired | {"metadata": {"name": obj.name}, "rules": [to_wire(rule) for rule in rules]}
            await ctx.client.using(field_manager=_MANAGER).apply(Unstructured(body), force=True)
        return None


def _add_rules(rules: list[PolicyRule], roles: Iterable[ClusterRole]) -> None:
    for role in sorted(roles, key=lambda role: role.name):
        rules += [rule for rule in role.rules if rule not in rules]


def _is_aggregated(entry: Entry) -> bool:
    # Almost no role is, and a new cluster has dozens: so the JSON is searched before it is decoded.
    return b'"aggregationRule"' in entry.json and entry.read(ClusterRole).aggregation_rule is not None


def _aggregation(entry: Entry) -> Iterable[bool]:
    return (True,) if _is_aggregated(entry) else ()


def _to_aggregated(_: Event, reader: CacheReader) -> Iterable[Key]:
    return reader.find_keys(ClusterRole, _INDEX, True)


_AGGREGATED: Final = Predicate(lambda event: event.new is not None and _is_aggregated(event.new), "aggregated")


def role_aggregation_controller() -> Controller[Any]:
    """Return the controller; a change of any ClusterRole enqueues every aggregated one."""
    return (
        controller_for(ClusterRole)
        .named("clusterrole-aggregation-controller")
        .predicate(spec_or_metadata_changed & _AGGREGATED)
        .index(ClusterRole, _INDEX, _aggregation)
        .watches(ClusterRole, _to_aggregated)
        .build(RoleAggregationReconciler())
    )
