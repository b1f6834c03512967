"""Subresources that are acts: bind a pod to a node, evict a pod.

An act is a POST of its own small kind to a subresource; it has no state of its own. More of them can be added to
`ACTIONS` by group, plural and subresource.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from konverge.controlplane.api import refusals
from konverge.controlplane.api.answers import Answer, json_answer
from konverge.controlplane.api.bodies import JSON, YAML, BadText, read_body
from konverge.controlplane.api.calls import Call
from konverge.controlplane.api.cluster import Cluster, decode
from konverge.controlplane.api.deletes import delete
from konverge.controlplane.api.negotiation import PROTOBUF
from konverge.controlplane.api.options import DeleteOptions, WriteOptions
from konverge.controlplane.api.problems import invalid
from konverge.controlplane.api.reads import find_entry
from konverge.controlplane.api.strategy import Document
from konverge.controlplane.api.updates import change
from konverge.objects.labels import LabelSelector

__all__ = ["ACTIONS", "Action", "bind_named_pod", "bind_pod", "evict_pod", "read_act"]

Action = Callable[[Cluster, Call], Awaitable[Answer]]


def read_act(call: Call, kind: str) -> Document:
    """Read the body of an act.

    Raises: Refusal 400.
    """
    content_type = call.request.headers.get("content-type", "")
    try:
        value, _ = read_body(content_type, call.request.body, (JSON, YAML, PROTOBUF))
    except BadText as fault:
        text = f"couldn't get version/kind; json parse error: {fault}"
        raise refusals.bad_request(f"the object provided is unrecognized (must be of type {kind}): {text}") from None
    if not isinstance(value, dict) or value.get("kind", kind) != kind:
        raise refusals.bad_request(f"the object provided is unrecognized (must be of type {kind})")
    name = (value.get("metadata") or {}).get("name", call.name)
    if call.name and name != call.name:
        text = f"the name of the object ({name}) does not match the name on the URL ({call.name})"
        raise refusals.bad_request(text)
    return value


def _created(message: str = "") -> Answer:
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return json_answer(201, status | ({"message": message} if message else {}))


async def bind_pod(cluster: Cluster, call: Call) -> Answer:
    """Assign a pod to the node that the Binding names, once."""
    binding = read_act(call, "Binding")
    options = WriteOptions.read(call.query, "CreateOptions")
    node = (binding.get("target") or {}).get("name", "")
    if not node:
        problem = refusals.invalid("", "Binding", call.name, [_no_target()])
        raise problem

    def make(old: Document | None) -> Document:
        assert old is not None
        present = old["spec"].get("nodeName", "")
        if present:
            why = f'pod {call.name} is already assigned to node "{present}"'
            raise refusals.conflict("", "pods/binding", call.name, why)
        if "deletionTimestamp" in old["metadata"]:
            why = f"pod {call.name} is being deleted, cannot be assigned to a host"
            raise refusals.conflict("", "pods/binding", call.name, why)
        old["spec"]["nodeName"] = node
        old["metadata"].setdefault("annotations", {}).update((binding.get("metadata") or {}).get("annotations") or {})
        if not old["metadata"]["annotations"]:
            del old["metadata"]["annotations"]
        _mark_scheduled(old, cluster.now())
        return old

    await change(cluster, call, _Unchecked(), make, options=options)
    return _created()


async def bind_named_pod(cluster: Cluster, call: Call) -> Answer:
    """Assign the pod that the Binding itself names: the older way."""
    pods = cluster.registry.find("", "v1", "pods")
    binding = read_act(call, "Binding")
    name = (binding.get("metadata") or {}).get("name", "")
    if pods is None or not isinstance(name, str) or not name:
        raise refusals.bad_request("name is required")
    return await bind_pod(cluster, replace(call, strategy=pods, name=name, subresource="binding"))


def _no_target() -> Any:
    return invalid("target.name", "", "must be specified")


def _mark_scheduled(pod: Document, now: str) -> None:
    status = pod.setdefault("status", {})
    others = [each for each in status.get("conditions", []) if each.get("type") != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    generation = pod["metadata"].get("generation")
    if generation:
        scheduled["observedGeneration"] = generation
    status["conditions"] = [*others, scheduled]


class _Unchecked:
    """The rules of an act on an object: whatever the act does is right."""

    reset_fields: tuple[str, ...] = ()

    def prepare_update(self, _new: Document, _old: Document, _around: Any) -> None:
        return None

    def validate_update(self, _new: Document, _old: Document, _around: Any) -> list[Any]:
        return []

    def warnings_on_update(self, _new: Document, _old: Document) -> list[str]:
        return []


async def evict_pod(cluster: Cluster, call: Call) -> Answer:
    """Delete a pod unless a disruption budget is used up."""
    eviction = read_act(call, "Eviction")
    options = DeleteOptions.read(call.query, eviction.get("deleteOptions") or {})
    pod = decode(find_entry(cluster, call.strategy, call.namespace, call.name).raw)
    if _counts(pod):
        for budget in _budgets(cluster, call.namespace, pod):
            _check_budget(budget)
    await delete(cluster, call, options)
    return _created()


def _counts(pod: Mapping[str, Any]) -> bool:
    """Whether the pod is one that a budget protects: not finished, not waiting, not on its way out."""
    phase = (pod.get("status") or {}).get("phase", "")
    return phase not in ("Succeeded", "Failed", "Pending") and "deletionTimestamp" not in pod["metadata"]


def _budgets(cluster: Cluster, namespace: str, pod: Mapping[str, Any]) -> list[Document]:
    labels = pod["metadata"].get("labels") or {}
    found = [decode(entry.raw) for entry in cluster.storage.collection(_BUDGETS).entries(namespace)]
    return [each for each in found if LabelSelector.from_structure(each["spec"].get("selector")).matches(labels)]


_BUDGETS: Final = ("policy", "poddisruptionbudgets")


def _check_budget(budget: Document) -> None:
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        text = f"The disruption budget {name} is still being processed by the server."
        causes = [{"reason": "DisruptionBudget", "message": text}]
        raise refusals.too_many_requests(message, causes=causes, retry_after=10)
    if status.get("disruptionsAllowed", 0) <= 0:
        healthy, needed = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        text = f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
        raise refusals.too_many_requests(message, causes=[{"reason": "DisruptionBudget", "message": text}])


ACTIONS: Final[Mapping[tuple[str, str, str], Action]] = {
    ("", "bindings", ""): bind_named_pod,
    ("", "pods", "binding"): bind_pod,
    ("", "pods", "eviction"): evict_pod,
}
