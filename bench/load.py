"""The objects of the cache benchmarks: widgets of about 2.9 kB and pods of about 4.2 kB on a real server.

Pods differ from each other as in a cluster: in addresses, nodes, times and container ids, which do not compress.
Objects are distributed over ten namespaces, a hundred apps (label `app`) and a hundred nodes (`.spec.nodeName`), so
that a read by app or by node matches one object in a hundred.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from sample_pod import pod

from konverge.client import Client, has_condition, load_config
from konverge.errors import AlreadyExists
from konverge.k8s.apiextensions.v1 import CustomResourceDefinition
from konverge.k8s.core.v1 import Namespace, ServiceAccount
from konverge.objects import Kind, ObjectMeta, Unstructured

__all__ = ["KINDS", "NAMESPACES", "WIDGET", "each", "ignore_existing", "load", "widget_crd"]

WIDGET = Kind("bench.example.com", "v1", "Widget", "widgets")
POD = Kind("", "v1", "Pod", "pods")
KINDS = {"widgets": WIDGET, "pods": POD}
NAMESPACES = [f"bench-{number}" for number in range(10)]
_CONCURRENCY = 32


def widget_crd() -> Unstructured:
    """Return the CRD of the widgets."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema, "status": schema}}},
    }
    return Unstructured(
        apiVersion="apiextensions.k8s.io/v1",
        kind="CustomResourceDefinition",
        metadata={"name": "widgets.bench.example.com"},
        spec={
            "group": WIDGET.group,
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [version],
        },
    )


def _metadata(number: int) -> dict[str, Any]:
    labels = {"app": f"app-{number % 100}", "app.kubernetes.io/part-of": "bench", "tier": "frontend"}
    return {"name": f"item-{number}", "namespace": NAMESPACES[number % 10], "labels": labels}


def widget(number: int) -> Unstructured:
    """Return a new widget."""
    parts = [
        {
            "name": f"part-{index}",
            "image": f"example/part:{number % 7}.{index}",
            "replicas": index,
            "settings": [{"name": f"SETTING_{one}", "value": f"value-{number * one}"} for one in range(6)],
            "labels": {"app": f"app-{number % 100}", "part": str(index)},
        }
        for index in range(5)
    ]
    spec = {"nodeName": f"node-{number // 10 % 100}", "parts": parts}
    return Unstructured(apiVersion="bench.example.com/v1", kind="Widget", metadata=_metadata(number), spec=spec)


def _widget_status(number: int) -> dict[str, Any]:
    condition = {
        "status": "True",
        "reason": "AllPartsReady",
        "message": f"all parts of {number} are ready",
        "lastTransitionTime": "2026-01-05T10:00:00Z",
    }
    return {"observedGeneration": 1, "conditions": [{"type": name, **condition} for name in ("Ready", "Synced")]}


def bench_pod(number: int) -> Unstructured:
    """Return a new pod: bound to a node, with a service account without a token."""
    spec = pod()["spec"] | {"nodeName": f"node-{number // 10 % 100}", "serviceAccountName": "default"}
    del spec["serviceAccount"]
    spec |= {"automountServiceAccountToken": False, "volumes": spec["volumes"][:1]}
    for container in spec["containers"]:
        container["volumeMounts"] = container["volumeMounts"][:1]
    for name in ("priority", "preemptionPolicy"):
        spec.pop(name, None)
    return Unstructured(apiVersion="v1", kind="Pod", metadata=_metadata(number), spec=spec)


def _pod_status(number: int) -> dict[str, Any]:
    """Return a status that differs between pods as it does in a cluster."""
    status: dict[str, Any] = pod()["status"]
    choose = Random(number)
    address, node = f"10.{choose.randrange(256)}.{choose.randrange(256)}.{choose.randrange(256)}", number // 10 % 100
    status |= {"podIP": address, "podIPs": [{"ip": address}], "hostIP": f"10.0.0.{node}"}
    started = datetime(2026, 1, 5, tzinfo=UTC) + timedelta(seconds=choose.randrange(10_000_000))
    status["startTime"] = _timestamp(started)
    for one in status["conditions"]:
        one["lastTransitionTime"] = _timestamp(started + timedelta(seconds=choose.randrange(30)))
    for container in status["containerStatuses"]:
        container["state"]["running"]["startedAt"] = _timestamp(started + timedelta(seconds=choose.randrange(30)))
        container["containerID"] = f"containerd://{choose.randbytes(32).hex()}"
    return status


def _timestamp(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


_FACTORIES: dict[str, tuple[Callable[[int], Unstructured], Callable[[int], dict[str, Any]]]] = {
    "widgets": (widget, _widget_status),
    "pods": (bench_pod, _pod_status),
}


async def load(kubeconfig: str, what: str, begin: int, end: int) -> None:
    """Create the objects numbered from `begin` to `end`, each with a status."""
    async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
        await _prepare(client, what)
        make, status = _FACTORIES[what]
        kind = KINDS[what]

        async def put(number: int) -> None:
            created = await client.create(make(number))
            await client.patch(kind, created.key, {"status": status(number)}, subresource="status")

        await each(range(begin, end), put)


async def _prepare(client: Client, what: str) -> None:
    for name in NAMESPACES:
        await ignore_existing(client.create(Namespace(metadata=ObjectMeta(name=name))))
        await ignore_existing(client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace=name))))
    if what == "widgets":
        await ignore_existing(client.create(widget_crd()))
        await client.wait_for(CustomResourceDefinition, "widgets.bench.example.com", has_condition("Established"))
        await asyncio.sleep(3)  # the server serves a new kind only after a delay


async def ignore_existing(creation: Awaitable[object]) -> None:
    """Await a creation; ignore the error if the object exists."""
    with contextlib.suppress(AlreadyExists):
        await creation


async def each(numbers: range, act: Callable[[int], Awaitable[None]]) -> None:
    """Call `act` for each number, many concurrently."""
    remaining = iter(numbers)

    async def work() -> None:
        for number in remaining:
            await act(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(_CONCURRENCY):
            group.create_task(work())
