"""The acts that the server knows, and the first of them: bind a pod to a node.

More can be added to a server's `actions` by group, plural and subresource ("" for a kind that can only be created).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final

from konverge_cluster.api import status_errors
from konverge_cluster.api.actions import UncheckedRules, action_name, read_action, set_condition, success_response
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.evictions import evict_pod
from konverge_cluster.api.options import WriteOptions
from konverge_cluster.api.responses import Response
from konverge_cluster.api.strategy import Document
from konverge_cluster.api.topology import topology_labels
from konverge_cluster.api.updates import guaranteed_update

__all__ = ["ACTIONS", "Action", "bind_named_pod", "bind_pod"]

Action = Callable[[Cluster, Call], Awaitable[Response]]


async def bind_pod(cluster: Cluster, call: Call) -> Response:
    """Assign a pod to the node that the Binding names, once; the pod gets the labels of where the node is."""
    node = (read_action(call, "Binding").get("target") or {}).get("name", "")
    return await _bind(cluster, call, topology_labels(cluster.lookup, node))


async def _bind(cluster: Cluster, call: Call, place: Mapping[str, str]) -> Response:
    binding = read_action(call, "Binding")
    options = WriteOptions.read(call.query, "CreateOptions")
    if action_name(binding, call.name) != call.name:
        raise status_errors.bad_request("name in URL does not match name in Binding object")
    node = (binding.get("target") or {}).get("name", "")
    if not node:
        raise status_errors.failure(500, "target.name: Required value")

    def make(pod: Document | None) -> Document:
        assert pod is not None
        _check_unbound(pod)
        pod["spec"]["nodeName"] = node
        _add_to(pod, "annotations", (binding.get("metadata") or {}).get("annotations") or {})
        _add_to(pod, "labels", {**((binding.get("metadata") or {}).get("labels") or {}), **place})
        set_condition(pod, {"type": "PodScheduled", "status": "True"}, cluster.now())
        return pod

    await guaranteed_update(cluster, call, UncheckedRules(), make, options=options)
    return success_response()


def _add_to(pod: Document, part: str, more: Mapping[str, str]) -> None:
    if more:
        pod["metadata"][part] = {**(pod["metadata"].get(part) or {}), **more}


def _check_unbound(pod: Document) -> None:
    name, node = pod["metadata"]["name"], pod["spec"].get("nodeName", "")
    if node:
        why = f'pod {name} is already assigned to node "{node}"'
        raise status_errors.conflict("", "pods/binding", name, why)
    if "deletionTimestamp" in pod["metadata"]:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
        raise status_errors.conflict("", "pods/binding", name, why)


async def bind_named_pod(cluster: Cluster, call: Call) -> Response:
    """Assign the pod that the Binding itself names: the older way, which knows of no places."""
    pods = cluster.registry.find("", "v1", "pods")
    name = action_name(read_action(call, "Binding"))
    if pods is None or not name:
        raise status_errors.bad_request("name is required")
    return await _bind(cluster, replace(call, strategy=pods, name=name, subresource="binding"), {})


ACTIONS: Final[Mapping[tuple[str, str, str], Action]] = {
    ("", "bindings", ""): bind_named_pod,
    ("", "pods", "binding"): bind_pod,
    ("", "pods", "eviction"): evict_pod,
}
