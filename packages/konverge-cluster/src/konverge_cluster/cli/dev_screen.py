"""What `konverge dev` shows: objects, queues and reconciles, as they are at one moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from konverge.client import Client
from konverge.errors import KonvergeError
from konverge.objects import Unstructured

__all__ = ["Look", "ObjectLine", "QueueLine", "look_at", "queues_in", "state_of"]

_CRDS = "customresourcedefinitions.apiextensions.k8s.io"
_WORKLOADS = ("deployments.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch")
_PATIENCE = 2.0


@dataclass(frozen=True, order=True)
class ObjectLine:
    """An object, and how it is in a word or two."""

    kind: str
    key: str
    state: str


@dataclass(frozen=True, order=True)
class QueueLine:
    """A controller: keys in line and due later, and how its reconciles ended."""

    controller: str
    waiting: int = 0
    delayed: int = 0
    reconciles: int = 0
    errors: int = 0


@dataclass(frozen=True)
class Look:
    """Everything at one moment."""

    objects: tuple[ObjectLine, ...] = ()
    queues: tuple[QueueLine, ...] = ()
    log: tuple[str, ...] = field(default=())


async def look_at(client: Client, address: str, log: tuple[str, ...] = ()) -> Look:
    """Look at a cluster, and at the operator with metrics at an address; one that does not answer has no queues."""
    objects = [line async for line in _objects(client)]
    return Look(tuple(sorted(objects)), queues_in(await _metrics(address)), log)


async def _objects(client: Client) -> AsyncGenerator[ObjectLine]:
    names = [f"{crd['spec']['names']['plural']}.{crd['spec']['group']}" for crd in await client.list(_CRDS)]
    for name in (*names, *_WORKLOADS):
        try:
            found = await client.list(name, namespace="")
        except KonvergeError:  # a CRD that is being installed or removed
            continue
        for one in found:
            yield ObjectLine(one.kind, str(one.key), state_of(one))


def state_of(obj: Unstructured) -> str:
    """Say how an object is: its phase, its replicas, or the first condition that says something."""
    status = obj.get("status") or {}
    counted = ""
    if "replicas" in (obj.get("spec") or {}):
        ready = status.get("availableReplicas", status.get("readyReplicas", 0))
        counted = f"{ready}/{obj['spec']['replicas']}"
    word = status.get("phase") or _condition(status.get("conditions") or ())
    return " ".join(filter(None, ("going" if obj["metadata"].get("deletionTimestamp") else "", word, counted))) or "-"


def _condition(conditions: Any) -> str:
    found = {one.get("type"): one.get("status") for one in conditions}
    for name in ("Ready", "Available", "Complete"):
        if name in found:
            return name if found[name] == "True" else f"not {name}"
    return ""


def queues_in(text: str) -> tuple[QueueLine, ...]:
    """Read the controllers out of the text of /metrics."""
    figures: dict[str, dict[str, int]] = {}
    for name, controller, value in _samples(text):
        counts = figures.setdefault(controller, {})
        counts[name] = counts.get(name, 0) + int(value)
    return tuple(QueueLine(controller, **counts) for controller, counts in sorted(figures.items()))


_NAMES = {
    "workqueue_depth": "waiting",
    "konverge_queue_delayed": "delayed",
    "reconcile_total": "reconciles",
    "reconcile_errors_total": "errors",
}


def _samples(text: str) -> Iterator[tuple[str, str, float]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name in _NAMES and "controller" in sample.labels:
                yield _NAMES[sample.name], sample.labels["controller"], sample.value


async def _metrics(address: str) -> str:
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(_PATIENCE):
            reader, writer = await asyncio.open_connection(host, int(port))
            try:
                writer.write(f"GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n".encode())
                head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return ""
    return body.decode() if b" 200 " in head.split(b"\r\n", 1)[0] else ""
