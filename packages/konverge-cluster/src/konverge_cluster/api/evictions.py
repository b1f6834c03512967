"""Eviction: delete a pod, unless that breaks a disruption budget.

A budget counts only for a pod that runs. A pod that is not ready is let go when the budget is met without it, or when
the budget says so. What is allowed is taken from the budget at once, since its controller sees the pod go only later.
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
_EVICTED: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."


async def evict_pod(cluster: Cluster, call: Call) -> Response:
    """Delete a pod unless a disruption budget is used up."""
    eviction = read_action(call, "Eviction")
    if action_name(eviction, call.name) != call.name:
        raise status_errors.bad_request("name in URL does not match name in Eviction object")
    sent = dict(eviction.get("deleteOptions") or {})
    sent.setdefault("dryRun", call.query.every("dryRun"))
    options = DeleteOptions.read(call.query, sent)
    pod = decode(find_entry(cluster, call.strategy, call.namespace, call.name).raw)
    await _ask_budgets(cluster, call, pod, dry_run=options.dry_run)
    if not options.dry_run:
        await _mark(cluster, call)
    await delete(cluster, replace(call, subresource=""), options)
    return success_response()


async def _ask_budgets(cluster: Cluster, call: Call, pod: Document, *, dry_run: bool) -> None:
    phase = (pod.get("status") or {}).get("phase", "")
    if phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]:
        return
    budgets = _budgets(cluster, call.namespace, pod)
    if len(budgets) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise status_errors.internal_error(text)
    if budgets and not _is_spare(pod, budgets[0]):
        await _take(cluster, call, budgets[0]["metadata"]["name"], dry_run=dry_run)


def _budgets(cluster: Cluster, namespace: str, pod: Document) -> list[Document]:
    labels = pod["metadata"].get("labels") or {}
    found = [decode(entry.raw) for entry in cluster.storage.collection(_BUDGETS).entries(namespace)]
    return [each for each in found if LabelSelector.from_spec(each["spec"].get("selector")).matches(labels)]


def _is_spare(pod: Document, budget: Document) -> bool:
    """Whether the pod does not count: it is not ready, and the budget is met without it or does not mind."""
    conditions = (pod.get("status") or {}).get("conditions", [])
    if any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    return bool(0 < status.get("desiredHealthy", 0) <= status.get("currentHealthy", 0))


async def _take(cluster: Cluster, call: Call, name: str, *, dry_run: bool) -> None:
    """Take one disruption from a budget.

    Raises: StatusError 429 when there is none left, or nobody has counted yet.
    """
    strategy = cluster.registry.find("policy", "v1", "poddisruptionbudgets")
    if strategy is None:
        return

    def make(budget: Document | None) -> Document:
        assert budget is not None
        status = budget.setdefault("status", {})
        _check(budget, status)
        status["disruptionsAllowed"] -= 1
        status.setdefault("disruptedPods", {})[call.name] = cluster.now()
        return budget

    at_budget = replace(call, strategy=strategy, name=name, subresource="status")
    await guaranteed_update(cluster, at_budget, UncheckedRules(), make, options=WriteOptions(dry_run=dry_run))


def _check(budget: Document, status: Document) -> None:
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", retry_after=10)
    if status.get("disruptionsAllowed", 0) <= 0:
        healthy, needed = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        raise _refused(f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently")


def _refused(text: str, *, retry_after: int = 0) -> status_errors.StatusError:
    causes: list[dict[str, Any]] = [{"reason": "DisruptionBudget", "message": text}]
    return status_errors.too_many_requests(_REFUSED, causes=causes, retry_after=retry_after)


async def _mark(cluster: Cluster, call: Call) -> None:
    """Say in the pod's status why it goes."""

    def make(pod: Document | None) -> Document:
        assert pod is not None
        set_condition(pod, dict(_EVICTED), cluster.now())
        return pod

    await guaranteed_update(
        cluster, replace(call, subresource="status"), UncheckedRules(), make, options=WriteOptions()
    )
