"""The controller of aggregated ClusterRoles: their rules are those of the ClusterRoles that their selectors match."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from konverge.cache import Entry, Event
from konverge.controller import Controller, controller_for
from konverge.k8s.rbac.v1 import ClusterRole, PolicyRule
from konverge.objects import Key, LabelSelector, Unstructured, to_wire
from konverge.reconcile import Context, Reconciler, Result
from konverge.triggers import CacheReader

__all__ = ["RoleAggregationReconciler", "role_aggregation_controller"]

_MANAGER: Final = "clusterrole-aggregation-controller"
_INDEX: Final = "aggregated"


class RoleAggregationReconciler(Reconciler[ClusterRole]):
    """Applies the rules of an aggregated role: those of each selector in the order of names, each rule once."""

    async def reconcile(self, obj: ClusterRole, ctx: Context) -> Result | None:
        """Apply the rules of a role with an aggregation rule; leave every other role alone."""
        if obj.aggregation_rule is None:
            return None
        rules = _aggregated_rules(obj, await ctx.list(ClusterRole))
        if rules != obj.rules:
            desired = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
            body = desired | {"metadata": {"name": obj.name}, "rules": [to_wire(rule) for rule in rules]}
            await ctx.client.using(field_manager=_MANAGER).apply(Unstructured(body), force=True)
        return None


def _aggregated_rules(role: ClusterRole, roles: Iterable[ClusterRole]) -> list[PolicyRule]:
    assert role.aggregation_rule is not None
    others = sorted((one for one in roles if one.name != role.name), key=lambda one: one.name)
    found: list[PolicyRule] = []
    for spec in role.aggregation_rule.cluster_role_selectors:
        selector = LabelSelector.from_spec(spec)
        for other in others:
            if selector.matches(other.metadata.labels):
                found += [rule for rule in other.rules if rule not in found]
    return found


def _aggregation(entry: Entry) -> Iterable[bool]:
    return (True,) if entry.read(ClusterRole).aggregation_rule is not None else ()


def _to_aggregated(_: Event, reader: CacheReader) -> Iterable[Key]:
    return reader.find_keys(ClusterRole, _INDEX, True)


def role_aggregation_controller() -> Controller[Any]:
    """Return the controller; a change of any ClusterRole enqueues every aggregated one."""
    return (
        controller_for(ClusterRole)
        .named("clusterrole-aggregation-controller")
        .index(ClusterRole, _INDEX, _aggregation)
        .watches(ClusterRole, _to_aggregated)
        .build(RoleAggregationReconciler())
    )
