"""Empty a namespace: delete all that is in it, kind by kind, pods before everything else."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Final

import msgspec

from konverge.client import Client, Served
from konverge.errors import ApiError, KonvergeError, NotFound
from konverge.k8s.core.v1 import Namespace, Pod
from konverge.objects import Kind, kind_of
from konverge.wire import ListOptions
from konverge_cluster.namespaces.conditions import Findings
from konverge_cluster.server_messages import server_message

__all__ = ["contents_of", "empty"]

_PODS: Final = kind_of(Pod)
_FINALIZER_SECONDS: Final = 15.0
_OVER: Final = ("Succeeded", "Failed")


class _Metadata(msgspec.Struct):
    name: str
    finalizers: list[str] | None = None


class _Item(msgspec.Struct):
    metadata: _Metadata


class _List(msgspec.Struct):
    items: list[_Item] | None = None


def contents_of(served: list[Served]) -> list[Served]:
    """Choose what a namespace can hold and lose: each namespaced resource once, in the version that is named first."""
    chosen: dict[tuple[str, str], Served] = {}
    for one in served:
        if one.kind.namespaced and "delete" in one.verbs:
            chosen.setdefault((one.kind.group, one.kind.plural), one)
    return list(chosen.values())


async def empty(client: Client, namespace: Namespace, now: datetime) -> Findings:
    """Ask for everything in a namespace to go, once, and give what is left and what went wrong.

    While a pod is left, nothing else is touched.
    """
    findings = Findings()
    served = await _discovered(client, findings)
    pods = [one for one in served if one.kind == _PODS]
    for one in pods:
        await _clear(client, namespace, one, now, findings)
    if findings.remaining:
        findings.pods_remain = True
        return findings
    for one in served:
        if one not in pods:
            await _clear(client, namespace, one, now, findings)
    return findings


async def _discovered(client: Client, findings: Findings) -> list[Served]:
    try:
        await client.discovery.refresh()
        return contents_of(await client.discovery.served())
    except KonvergeError as error:
        findings.discovery_error = server_message(error)
        return []


async def _clear(client: Client, namespace: Namespace, one: Served, now: datetime, findings: Findings) -> None:
    kind = one.kind
    try:
        grace = await _grace(client, namespace, now) if kind == _PODS else 0.0
        findings.estimate = max(findings.estimate, grace)
        await _delete_all(client, namespace.name, one)
        left = await _listed(client, kind, namespace.name) if "list" in one.verbs else []
    except KonvergeError as error:
        findings.errors.append(server_message(error))
        return
    if not left:
        return
    finalizers = Counter(name for item in left for name in item.metadata.finalizers or ())
    findings.remaining[f"{kind.plural}.{kind.group}"] = len(left)
    findings.finalizers += finalizers
    if finalizers and not grace:
        findings.estimate = max(findings.estimate, _FINALIZER_SECONDS)
    elif not grace:
        resource = f"{kind.group}/{kind.version}, Resource={kind.plural}"
        findings.errors.append(f"unexpected items still remain in namespace: {namespace.name} for gvr: {resource}")


async def _delete_all(client: Client, namespace: str, one: Served) -> None:
    if "deletecollection" in one.verbs:
        try:
            await client.delete_collection(one.kind, namespace=namespace, propagation="Background")
            return
        except ApiError as error:
            if error.status not in (404, 405):
                raise
    for item in await _listed(client, one.kind, namespace):
        await client.delete(
            one.kind, item.metadata.name, namespace=namespace, propagation="Background", missing_ok=True
        )


async def _listed(client: Client, kind: Kind, namespace: str) -> list[_Item]:
    source = client.collection(kind, namespace=namespace, metadata_only=True)
    try:
        body = await source.list(ListOptions())
    except NotFound:
        return []
    return msgspec.json.decode(body, type=_List).items or []


async def _grace(client: Client, namespace: Namespace, now: datetime) -> float:
    """Give how long the pods may take to end; 0 once that time is over since the namespace was deleted."""
    pods = await client.list(Pod, namespace=namespace.name)
    alive = [pod for pod in pods if pod.status is None or pod.status.phase not in _OVER]
    longest = max((pod.spec.termination_grace_period_seconds or 0 for pod in alive), default=0)
    since = namespace.metadata.deletion_timestamp
    over = since is not None and (now - since).total_seconds() >= longest
    return 0.0 if over else float(longest)
