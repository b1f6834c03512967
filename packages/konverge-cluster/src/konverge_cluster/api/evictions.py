"""Eviction: delete a pod, unless that would violate a PodDisruptionBudget.

A budget applies only to a running pod. A pod that is not ready may be evicted when the budget is met without it, or
when the policy of the budget allows it. The allowed disruption is subtracted from the budget at once, since its
controller observes the deletion only later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from konverge.objects.labels import LabelSelector
from konverge_cluster.api import status_errors
from konverge_cluster.api.actions import UncheckedRules, action_name, read_action, set_condition, success_response
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster, decode
from konverge_cluster.api.deletes import delete
from konverge_cluster.api.options import DeleteOptions, WriteOptions
from konverge_cluster.api.reads import find_entry
from konverge_cluster.api.responses import Response
from konverge_cluster.api.strategy import Document
from konverge_cluster.api.updates import guaranteed_update

__all__ = ["evict_pod"]

_BUDGETS: Final = ("policy", "poddisruptionbudgets")
_DISRUPTION_TARGET: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_BUDGET_VIOLATED: Final = "Cannot evict pod as it would violate the pod's disruption budget."


async def evict_pod(cluster: Cluster, call: Call) -> Response:
    """Delete a pod unless its disruption budget allows no disruption.

    Raises: StatusError 429 when the budget forbids it.
    """
    eviction = read_action(call, "Eviction")
    if action_name(eviction, call.name) != call.name:
        raise status_errors.bad_request("name in URL does not match name in Eviction object")
    options_document = dict(eviction.get("deleteOptions") or {})
    options_document.setdefault("dryRun", call.query.every("dryRun"))
    options = DeleteOptions.read(call.query, options_document)
    pod = decode(find_entry(cluster, call.strategy, call.namespace, call.name).raw)
    await _check_budgets(cluster, call, pod, dry_run=options.dry_run)
    if not options.dry_run:
        await _cache_key(cluster, call)
    await delete(cluster, replace(call, subresource=""), options)
    return success_response()


async def _check_budgets(cluster: Cluster, call: Call, pod: Document, *, dry_run: bool) -> None:
    phase = (pod.get("status") or {}).get("phase", "")
    if phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]:
        return
    budgets = _budgets(cluster, call.namespace, pod)
    if len(budgets) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise status_errors.internal_error(text)
    if budgets and not _is_exempt(pod, budgets[0]):
        await _decrement_budget(cluster, call, budgets[0]["metadata"]["name"], dry_run=dry_run)


def _budgets(cluster: Cluster, namespace: str, pod: Document) -> list[Document]:
    labels = pod["metadata"].get("labels") or {}
    found = [decode(entry.raw) for entry in cluster.storage.collection(_BUDGETS).entries(namespace)]
    return [each for each in found if LabelSelector.from_spec(each["spec"].get("selector")).matches(labels)]


def _is_exempt(pod: Document, budget: Document) -> bool:
    """Report whether the budget does not apply: the pod is not ready, and the budget is met without it or allows it."""
    conditions = (pod.get("status") or {}).get("conditions", [])
    if any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    return bool(0 < status.get("desiredHealthy", 0) <= status.get("currentHealthy", 0))


async def _decrement_budget(cluster: Cluster, call: Call, name: str, *, dry_run: bool) -> None:
    """Subtract one disruption from a budget.

    Raises: StatusError 429 when none is left, or when the controller has not processed the budget yet.
    """
    strategy = cluster.registry.find("policy", "v1", "poddisruptionbudgets")
    if strategy is None:
        return

    def update(budget: Document | None) -> Document:
        assert budget is not None
        status = budget.setdefault("status", {})
        _check_budget(budget, status)
        status["disruptionsAllowed"] -= 1
        status.setdefault("disruptedPods", {})[call.name] = cluster.now()
        return budget

    budget_call = replace(call, strategy=strategy, name=name, subresource="status")
    await guaranteed_update(cluster, budget_call, UncheckedRules(), update, options=WriteOptions(dry_run=dry_run))


def _check_budget(budget: Document, status: Document) -> None:
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _budget_error(f"The disruption budget {name} is still being processed by the server.", retry_after=10)
    if status.get("disruptionsAllowed", 0) <= 0:
        healthy, needed = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        raise _budget_error(f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently")


def _budget_error(text: str, *, retry_after: int = 0) -> status_errors.StatusError:
    causes: list[dict[str, Any]] = [{"reason": "DisruptionBudget", "message": text}]
    return status_errors.too_many_requests(_BUDGET_VIOLATED, causes=causes, retry_after=retry_after)


async def _cache_key(cluster: Cluster, call: Call) -> None:
    """Set the DisruptionTarget condition in the pod's status."""

    def update(pod: Document | None) -> Document:
        assert pod is not None
        set_condition(pod, dict(_DISRUPTION_TARGET), cluster.now())
        return pod

    await guaranteed_update(
        cluster, replace(call, subresource="status"), UncheckedRules(), update, options=WriteOptions()
    )
