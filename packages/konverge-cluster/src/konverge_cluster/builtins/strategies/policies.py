"""Strategies of disruption budgets and leases."""

from __future__ import annotations

from konverge_cluster.api.names import path_segment_name_errors
from konverge_cluster.api.strategy import Document, RequestContext
from konverge_cluster.builtins.strategy import BuiltinStrategy
from konverge_cluster.builtins.validation import access, autoscaling

__all__ = ["LeaseStrategy", "PodDisruptionBudgetStrategy"]


class PodDisruptionBudgetStrategy(BuiltinStrategy):
    """PodDisruptionBudgets. The real server only requires a name that is valid in a URL path."""

    generation_fields = ("spec",)
    unconditional_update = False
    check = staticmethod(autoscaling.validate_disruption_budget)
    check_status = staticmethod(autoscaling.validate_disruption_budget_status)

    def name_errors(self, name: str, *, prefix: bool = False) -> list[str]:
        return path_segment_name_errors(name, prefix=prefix)


class LeaseStrategy(BuiltinStrategy):
    """Leases."""

    create_on_update = True
    unconditional_update = False
    check = staticmethod(access.validate_lease)

    def prepare_create(self, new: Document, context: RequestContext) -> None:
        super().prepare_create(new, context)
        _drop_disabled(new)

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        super().prepare_update(new, old, context)
        _drop_disabled(new)


def _drop_disabled(lease: Document) -> None:
    """Drop fields of features that a 1.36 server disables by default."""
    for name in ("strategy", "preferredHolder"):
        lease["spec"].pop(name, None)
