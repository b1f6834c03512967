"""Disruption budgets, autoscalers, leases, and what else watches over workloads."""

from __future__ import annotations

from konverge.controlplane.builtins.kinds import BuiltinStrategy

__all__ = ["LeaseStrategy", "PodDisruptionBudgetStrategy"]


class PodDisruptionBudgetStrategy(BuiltinStrategy):
    """How many pods may be missing."""

    generated_by = ("spec",)
    unconditional_update = False


class LeaseStrategy(BuiltinStrategy):
    """Who leads."""

    create_on_update = True
    unconditional_update = False
