"""Deletion of the content of a namespace: kind by kind, pods before everything else."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Final

import msgspec

from konverge.client import ApiResource, Client
from konverge.errors import ApiError, KonvergeError, NotFound
from konverge.k8s.core.v1 import Namespace, Pod
from konverge.objects import Kind, kind_of
from konverge.wire import ListOptions
from konverge_cluster.namespaces.conditions import DeletionResult
from konverge_cluster.server_messages import server_message

__all__ = ["delete_content", "namespaced_resources"]

_PODS: Final = kind_of(Pod)
_FINALIZER_SECONDS: Final = 15.0
_TERMINAL_PHASES: Final = ("Succeeded", "Failed")


class _Metadata(msgspec.Struct):
    name: str
    finalizers: list[str] | None = None


class _Item(msgspec.Struct):
    metadata: _Metadata


class _List(msgspec.Struct):
    items: list[_Item] | None = None


def namespaced_resources(served: list[ApiResource]) -> list[ApiResource]:
    """Return the deletable resources of a namespace: each namespaced resource once, in the first version listed."""
    resources: dict[tuple[str, str], ApiResource] = {}
    for one in served:
        if one.kind.namespaced and "delete" in one.verbs:
            resources.setdefault((one.kind.group, one.kind.plural), one)
    return list(resources.values())


async def delete_content(client: Client, namespace: Namespace, now: datetime) -> DeletionResult:
    """Delete everything in a namespace, once; return what remains and what failed.

    While a pod remains, no other kind is deleted.
    """
    result = DeletionResult()
    resources = await _discover(client, result)
    pods = [one for one in resources if one.kind == _PODS]
    for one in pods:
        await _delete_resource(client, namespace, one, now, result)
    if result.remaining:
        result.pods_only = True
        return result
    for one in resources:
        if one not in pods:
            await _delete_resource(client, namespace, one, now, result)
    return result


async def _discover(client: Client, result: DeletionResult) -> list[ApiResource]:
    try:
        await client.discovery.refresh()
        return namespaced_resources(await client.discovery.resources())
    except KonvergeError as error:
        result.discovery_error = server_message(error)
        return []


async def _delete_resource(
    client: Client, namespace: Namespace, one: ApiResource, now: datetime, result: DeletionResult
) -> None:
    kind = one.kind
    try:
        grace = await _grace(client, namespace, now) if kind == _PODS else 0.0
        result.estimate = max(result.estimate, grace)
        await _delete_all(client, namespace.name, one)
        remaining = await _list(client, kind, namespace.name) if "list" in one.verbs else []
    except KonvergeError as error:
        result.errors.append(server_message(error))
        return
    if not remaining:
        return
    finalizers = Counter(name for item in remaining for name in item.metadata.finalizers or ())
    result.remaining[f"{kind.plural}.{kind.group}"] = len(remaining)
    result.finalizers += finalizers
    if finalizers and not grace:
        result.estimate = max(result.estimate, _FINALIZER_SECONDS)
    elif not grace:
        resource = f"{kind.group}/{kind.version}, Resource={kind.plural}"
        result.errors.append(f"unexpected items still remain in namespace: {namespace.name} for gvr: {resource}")


async def _delete_all(client: Client, namespace: str, one: ApiResource) -> None:
    if "deletecollection" in one.verbs:
        try:
            await client.delete_collection(one.kind, namespace=namespace, propagation="Background")
            return
        except ApiError as error:
            if error.status not in (404, 405):
                raise
    for item in await _list(client, one.kind, namespace):
        await client.delete(
            one.kind, item.metadata.name, namespace=namespace, propagation="Background", missing_ok=True
        )


async def _list(client: Client, kind: Kind, namespace: str) -> list[_Item]:
    source = client.collection(kind, namespace=namespace, metadata_only=True)
    try:
        body = await source.list(ListOptions())
    except NotFound:
        return []
    return msgspec.json.decode(body, type=_List).items or []


async def _grace(client: Client, namespace: Namespace, now: datetime) -> float:
    """Return how long the pods may take to terminate; 0 once the namespace was deleted longer ago than that."""
    pods = await client.list(Pod, namespace=namespace.name)
    active = [pod for pod in pods if pod.status is None or pod.status.phase not in _TERMINAL_PHASES]
    longest = max((pod.spec.termination_grace_period_seconds or 0 for pod in active), default=0)
    since = namespace.metadata.deletion_timestamp
    over = since is not None and (now - since).total_seconds() >= longest
    return 0.0 if over else float(longest)
