"""Clusters with process nodes, and the facts that tests wait for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from konverge import Client
from konverge.client import exists, is_deleted
from konverge.objects import Key, Unstructured
from konverge_cluster import EmbeddedCluster
from konverge_cluster.processes import LocalImage, Processes
from konverge_cluster.processes.process_pod import ProcessPod

Start = Callable[..., AbstractAsyncContextManager["ProcessCluster"]]
"""Starts a cluster in one of the two modes: the fixture `start`."""

LIMIT = 60.0
"""How long to wait for a fact: far longer than it takes, for a busy machine."""

SHELL = LocalImage("sh:*", command=["/bin/sh", "-c"])
PYTHON = LocalImage("python:*", command=[sys.executable, "-u", "-c"])


class ProcessCluster:
    """An embedded cluster with one process node."""

    def __init__(self, cluster: EmbeddedCluster, runtime: Processes) -> None:
        self.client: Client = cluster.client()
        self.cluster = cluster
        self.runtime = runtime

    async def create(self, name: str, container: dict[str, Any], **spec: Any) -> None:
        """Create a pod of one container."""
        await self.client.create(pod(name, container, **spec))

    async def wait(self, name: str, fact: Callable[[Unstructured], bool]) -> Unstructured:
        """Wait until a fact holds for a pod; return the pod."""

        def holds(obj: Any) -> bool:
            return obj is not None and fact(obj)

        found = await self.client.wait_for("pods", name, holds, timeout=LIMIT)
        assert found is not None
        return found

    async def wait_until_gone(self, name: str) -> None:
        """Wait until a pod no longer exists."""
        await self.client.wait_for("pods", name, is_deleted(), timeout=LIMIT)

    async def until(self, fact: Callable[[], bool]) -> None:
        """Wait until something holds outside of the cluster."""
        async with asyncio.timeout(LIMIT):
            while not fact():  # noqa: ASYNC110 - processes and files have no event to wait for
                await asyncio.sleep(0.02)

    async def until_log(self, name: str, text: str) -> None:
        """Wait until a container has printed something."""
        await self.wait(name, has_phase("Running"))
        await self.until(lambda: text in self.log(name))

    async def delete(self, name: str) -> None:
        await self.client.delete(await self.client.get("pods", name))

    def process_pod(self, name: str) -> ProcessPod:
        found = self.runtime.pod(Key("default", name))
        assert found is not None, f"pod {name} does not run here"
        return found

    def log(self, name: str, container: str = "c", run: int = 0) -> str:
        """Return the output of a container, without times."""
        path = self.process_pod(name).sandbox.log_path(container, run)
        lines = path.read_text().splitlines() if path.exists() else []
        return "\n".join(line.split(" ", 3)[3] for line in lines)

    async def execute(self, name: str, *command: str, container: str = "c") -> str:
        code, output = await self.process_pod(name).containers[container].execute(list(command))
        assert code == 0, output
        return output

    async def events(self, name: str) -> list[str]:
        found = [one for one in await self.client.list("events") if one["involvedObject"]["name"] == name]
        return [f"{one['reason']}: {one['message']}" for one in found]


@asynccontextmanager
async def process_cluster(*images: LocalImage, **options: Any) -> AsyncGenerator[ProcessCluster]:
    """Run a cluster whose pods with these images are processes; sh and python are always there."""
    runtime = Processes([SHELL, PYTHON, *images], **{"crash_backoff": 0.5, **options})
    async with EmbeddedCluster(nodes=1, runtime=runtime) as cluster:
        running = ProcessCluster(cluster, runtime)
        await running.client.wait_for("serviceaccounts", "default", exists(), timeout=LIMIT)
        yield running


def pod(name: str, container: dict[str, Any], **spec: Any) -> Unstructured:
    """Return a pod of one container `c`, and of others in `spec`; it has no token, and two seconds to stop."""
    first = {"name": "c", "image": "sh:1", **container}
    containers = [first, *spec.pop("containers", ())]
    full = {"terminationGracePeriodSeconds": 2, "automountServiceAccountToken": False, "containers": containers, **spec}
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    for part in ("labels", "annotations"):
        if part in full:
            metadata[part] = full.pop(part)
    return Unstructured({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": full})


def config_map(name: str, **data: str) -> Unstructured:
    metadata = {"name": name, "namespace": "default"}
    return Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def secret(name: str, **data: str) -> Unstructured:
    metadata = {"name": name, "namespace": "default"}
    return Unstructured({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})


def status_of(obj: Unstructured, container: str = "c") -> dict[str, Any]:
    """Return the status of a container, empty if it has none yet."""
    status = obj.get("status") or {}
    every = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    return next((one for one in every if one["name"] == container), {})


def is_ready(obj: Unstructured) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def has_phase(*phases: str) -> Callable[[Unstructured], bool]:
    return lambda obj: (obj.get("status") or {}).get("phase") in phases


def waits_for(reason: str, container: str = "c") -> Callable[[Unstructured], bool]:
    return lambda obj: ((status_of(obj, container).get("state") or {}).get("waiting") or {}).get("reason") == reason


def terminated(obj: Unstructured, container: str = "c") -> dict[str, Any]:
    found: dict[str, Any] = (status_of(obj, container).get("state") or {}).get("terminated") or {}
    return found
