"""The status that `konverge dev` shows: a snapshot of objects, queues and reconciles."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from konverge.client import Client
from konverge.errors import KonvergeError
from konverge.objects import Unstructured

__all__ = ["DevStatus", "ObjectRow", "QueueRow", "queues_in", "read_status", "state_of"]

_CRDS = "customresourcedefinitions.apiextensions.k8s.io"
_WORKLOADS = ("deployments.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch")
_METRICS_TIMEOUT = 2.0


@dataclass(frozen=True, order=True)
class ObjectRow:
    """An object and its state in a word or two."""

    kind: str
    key: str
    state: str


@dataclass(frozen=True, order=True)
class QueueRow:
    """A controller: its ready and delayed keys, its reconciles and their errors."""

    controller: str
    ready: int = 0
    delayed: int = 0
    reconciles: int = 0
    errors: int = 0


@dataclass(frozen=True)
class DevStatus:
    """A snapshot of everything that is shown."""

    objects: tuple[ObjectRow, ...] = ()
    queues: tuple[QueueRow, ...] = ()
    log: tuple[str, ...] = field(default=())


async def read_status(client: Client, address: str, log: tuple[str, ...] = ()) -> DevStatus:
    """Return the objects of a cluster and the queues of an operator; an operator that does not answer has none."""
    objects = [row async for row in _objects(client)]
    return DevStatus(tuple(sorted(objects)), queues_in(await _metrics(address)), log)


async def _objects(client: Client) -> AsyncGenerator[ObjectRow]:
    names = [f"{crd['spec']['names']['plural']}.{crd['spec']['group']}" for crd in await client.list(_CRDS)]
    for name in (*names, *_WORKLOADS):
        try:
            listed = await client.list(name, namespace="")
        except KonvergeError:  # the CRD is being installed or removed
            continue
        for obj in listed:
            yield ObjectRow(obj.kind, str(obj.key), state_of(obj))


def state_of(obj: Unstructured) -> str:
    """Return the state of an object: its phase or a well-known condition, and its replicas."""
    status = obj.get("status") or {}
    replicas = ""
    if "replicas" in (obj.get("spec") or {}):
        ready = status.get("availableReplicas", status.get("readyReplicas", 0))
        replicas = f"{ready}/{obj['spec']['replicas']}"
    phase = status.get("phase") or _condition(status.get("conditions") or ())
    terminating = "Terminating" if obj["metadata"].get("deletionTimestamp") else ""
    return " ".join(filter(None, (terminating, phase, replicas))) or "-"


def _condition(conditions: Any) -> str:
    statuses = {condition.get("type"): condition.get("status") for condition in conditions}
    for name in ("Ready", "Available", "Complete"):
        if name in statuses:
            return name if statuses[name] == "True" else f"not {name}"
    return ""


def queues_in(text: str) -> tuple[QueueRow, ...]:
    """Return the controllers in the text of /metrics."""
    controllers: dict[str, dict[str, int]] = {}
    for name, controller, value in _samples(text):
        counts = controllers.setdefault(controller, {})
        counts[name] = counts.get(name, 0) + int(value)
    return tuple(QueueRow(controller, **counts) for controller, counts in sorted(controllers.items()))


_NAMES = {
    "workqueue_depth": "ready",
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
        async with asyncio.timeout(_METRICS_TIMEOUT):
            reader, writer = await asyncio.open_connection(host, int(port))
            try:
                writer.write(f"GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n".encode())
                head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return ""
    return body.decode() if b" 200 " in head.split(b"\r\n", 1)[0] else ""
