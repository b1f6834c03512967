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
from konverge_cluster.api.cluster import Cluster, decode, encode
from konverge_cluster.api.deletes import delete
from konverge_cluster.api.options import DeleteOptions, WriteOptions
from konverge_cluster.api.reads import find_entry
from konverge_cluster.api.responses import Response
from konverge_cluster.api.strategy import Document
from konverge_cluster.api.updates import guaranteed_update
from konverge_cluster.api.writes import track

__all__ = ["evict_pod"]

_BUDGETS: Final = ("policy", "poddisruptionbudgets")
_DISRUPTION_TARGET: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_MANAGER: Final = "kube-apiserver"
_ALLOWED: Final = "DisruptionAllowed"
_MAX_DISRUPTED_PODS: Final = 2000
_SEVERAL_BUDGETS: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)
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
    at_version = await _check_budgets(cluster, call, pod, dry_run=options.dry_run)
    if at_version and options.resource_version is None:
        options = replace(options, resource_version=pod["metadata"]["resourceVersion"])
    if not options.dry_run:
        options = await _set_disruption_target(cluster, call, options)
    await delete(cluster, replace(call, subresource=""), options)
    return success_response()


async def _check_budgets(cluster: Cluster, call: Call, pod: Document, *, dry_run: bool) -> bool:
    """Check the budget of a pod; report whether only the pod at this version may be deleted.

    That is a pod that no budget protects in this state: it must not become ready in between.
    """
    phase = (pod.get("status") or {}).get("phase", "")
    if phase in ("Succeeded", "Failed") or "deletionTimestamp" in pod["metadata"]:
        return False
    if phase == "Pending":
        return True
    budgets = _budgets(cluster, call.namespace, pod)
    if len(budgets) > 1:
        raise status_errors.failure(500, _SEVERAL_BUDGETS)
    if not budgets:
        return False
    if _is_exempt(pod, budgets[0]):
        return True
    await _decrement_budget(cluster, call, budgets[0]["metadata"]["name"], dry_run=dry_run)
    return False


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
    budget_call = replace(call, strategy=strategy, name=name, subresource="status")
    options = WriteOptions(dry_run=dry_run, manager=_MANAGER)

    def update(budget: Document | None) -> Document:
        assert budget is not None
        new: Document = decode(encode(budget))
        status = new.setdefault("status", {})
        _check_budget(new, status)
        status["disruptionsAllowed"] -= 1
        if not status["disruptionsAllowed"]:
            _set_insufficient(status, cluster.now())
        status.setdefault("disruptedPods", {})[call.name] = cluster.now()
        track(cluster, budget_call, budget, new, options)
        return new

    await guaranteed_update(cluster, budget_call, UncheckedRules(), update, options=options)


def _check_budget(budget: Document, status: Document) -> None:
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _still_processed(name)
    if len(status.get("disruptedPods") or ()) > _MAX_DISRUPTED_PODS:
        text = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise status_errors.forbidden("policy", "poddisruptionbudget", name, text)
    if status.get("disruptionsAllowed", 0) <= 0:
        raise _budget_error(f"The disruption budget {name} {_exhausted(status)}")


def _exhausted(status: Document) -> str:
    """Return why a budget allows no disruption."""
    healthy, needed = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    conditions = [each for each in status.get("conditions") or () if each.get("type") == _ALLOWED]
    refusals = [each for each in conditions if each.get("status") == "False" and each.get("message")]
    if refusals and refusals[0].get("reason") == "SyncFailed":
        return f"does not allow evicting pods currently because it failed sync: {refusals[0]['message']}"
    if healthy <= needed:
        return f"needs {needed} healthy pods and has {healthy} currently"
    if refusals:
        reason, message = refusals[0].get("reason", ""), refusals[0]["message"]
        return f"does not allow evicting pods currently ({reason}): {message}"
    return "does not allow evicting pods currently"


def _set_insufficient(status: Document, now: str) -> None:
    """Set the condition of a budget that allows no further disruption."""
    conditions = status.setdefault("conditions", [])
    condition = {"type": _ALLOWED, "status": "False", "reason": "InsufficientPods", "message": ""}
    if status.get("observedGeneration"):
        condition["observedGeneration"] = status["observedGeneration"]
    for each in conditions:
        if each.get("type") == _ALLOWED:
            changed = each.get("status") != "False"
            each.update(condition | ({"lastTransitionTime": now} if changed else {}))
            return
    conditions.append(condition | {"lastTransitionTime": now})


def _still_processed(name: str) -> status_errors.StatusError:
    return _budget_error(f"The disruption budget {name} is still being processed by the server.", retry_after=10)


def _budget_error(text: str, *, retry_after: int = 0) -> status_errors.StatusError:
    causes: list[dict[str, Any]] = [{"reason": "DisruptionBudget", "message": text}]
    return status_errors.too_many_requests(_BUDGET_VIOLATED, causes=causes, retry_after=retry_after)


async def _set_disruption_target(cluster: Cluster, call: Call, options: DeleteOptions) -> DeleteOptions:
    """Set the DisruptionTarget condition in the pod's status; return the options for the pod at its new version."""

    def update(pod: Document | None) -> Document:
        assert pod is not None
        _check_preconditions(pod["metadata"], options)
        set_condition(pod, dict(_DISRUPTION_TARGET), cluster.now())
        return pod

    entry, _ = await guaranteed_update(
        cluster, replace(call, subresource="status"), UncheckedRules(), update, options=WriteOptions()
    )
    if options.resource_version is None:
        return options
    return replace(options, resource_version=str(entry.revision))


def _check_preconditions(metadata: Document, options: DeleteOptions) -> None:
    for what, expected, found, hint in (
        ("UID", options.uid, metadata["uid"], "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, metadata["resourceVersion"], "modified"),
    ):
        if expected and expected != found:
            text = f"the {what} in the precondition ({expected}) does not match the {what} in record ({found})."
            raise status_errors.conflict("", "Pod", metadata["name"], f"{text} The object might have been {hint}")
