"""Bindings: assign a pod to a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from konverge_cluster.api import status_errors
from konverge_cluster.api.actions import UncheckedRules, action_name, read_action, set_condition, success_response
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.options import WriteOptions
from konverge_cluster.api.responses import Response
from konverge_cluster.api.strategy import Document
from konverge_cluster.api.topology import topology_labels
from konverge_cluster.api.updates import guaranteed_update

__all__ = ["bind_named_pod", "bind_pod"]


async def bind_pod(cluster: Cluster, call: Call) -> Response:
    """Assign a pod to the node that the Binding names. The pod gets the topology labels of the node.

    Raises: StatusError 409 when the pod is already assigned or is being deleted.
    """
    node = (read_action(call, "Binding").get("target") or {}).get("name", "")
    return await _bind(cluster, call, topology_labels(cluster.lookup, node))


async def _bind(cluster: Cluster, call: Call, labels: Mapping[str, str]) -> Response:
    binding = read_action(call, "Binding")
    options = WriteOptions.read(call.query, "CreateOptions")
    if action_name(binding, call.name) != call.name:
        raise status_errors.bad_request("name in URL does not match name in Binding object")
    node = (binding.get("target") or {}).get("name", "")
    if not node:
        raise status_errors.failure(500, "target.name: Required value")

    def update(pod: Document | None) -> Document:
        assert pod is not None
        _check_unbound(pod)
        pod["spec"]["nodeName"] = node
        _add_metadata(pod, "annotations", (binding.get("metadata") or {}).get("annotations") or {})
        _add_metadata(pod, "labels", {**((binding.get("metadata") or {}).get("labels") or {}), **labels})
        set_condition(pod, {"type": "PodScheduled", "status": "True"}, cluster.now())
        return pod

    await guaranteed_update(cluster, call, UncheckedRules(), update, options=options)
    return success_response()


def _add_metadata(pod: Document, part: str, more: Mapping[str, str]) -> None:
    if more:
        pod["metadata"][part] = {**(pod["metadata"].get(part) or {}), **more}


def _check_unbound(pod: Document) -> None:
    name, node = pod["metadata"]["name"], pod["spec"].get("nodeName", "")
    if node:
        detail = f'pod {name} is already assigned to node "{node}"'
        raise status_errors.conflict("", "pods/binding", name, detail)
    if "deletionTimestamp" in pod["metadata"]:
        detail = f"pod {name} is being deleted, cannot be assigned to a host"
        raise status_errors.conflict("", "pods/binding", name, detail)


async def bind_named_pod(cluster: Cluster, call: Call) -> Response:
    """Assign the pod that the Binding itself names: the older endpoint, which sets no topology labels."""
    pods = cluster.registry.find("", "v1", "pods")
    name = action_name(read_action(call, "Binding"))
    if pods is None or not name:
        raise status_errors.bad_request("name is required")
    return await _bind(cluster, replace(call, strategy=pods, name=name, subresource="binding"), {})
