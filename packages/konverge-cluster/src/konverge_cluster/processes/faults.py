"""Faults on purpose: what can go wrong with the pods, nodes and volumes of process nodes.

    await cluster.faults.kill(Key("default", "db-0"))
    await cluster.faults.block_api_server(Key("default", "db-0"))

Each fault is also a command: `konverge fault kill db-0`.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from konverge.client import Client
from konverge.k8s.core.v1 import PersistentVolumeClaim
from konverge.objects import Key, Quantity, kind_of
from konverge_cluster.nodes import SimulatedNodes
from konverge_cluster.processes.containers import ProcessContainer
from konverge_cluster.processes.process_pod import ProcessPod
from konverge_cluster.processes.runtime import Processes
from konverge_cluster.processes.service_blocks import ServiceBlocks
from konverge_cluster.processes.service_proxy import ServiceProxy

__all__ = ["Faults"]

_CLAIMS: Final = kind_of(PersistentVolumeClaim)
_FILE: Final = ".konverge-fill"
_PART: Final = bytes(1024 * 1024)


class Faults:
    """Faults of a cluster with process nodes.

    Every method raises ValueError, with what there is, when the pod, container, volume or node does not run here.
    """

    def __init__(self, runtime: Processes, nodes: SimulatedNodes, client: Client, proxy: ServiceProxy) -> None:
        self._runtime = runtime
        self._nodes = nodes
        self._client = client
        self._proxy = proxy

    # Containers. An empty name is the first container of a pod.

    async def kill(self, pod: Key, container: str = "") -> None:
        """Kill every process of a container, as the kernel does when memory is short; it restarts by its policy."""
        self._container(pod, container).send_signal(signal.SIGKILL)

    async def freeze(self, pod: Key, container: str = "") -> None:
        """Stop every process of a container until `resume`: its sockets stay open, and nothing answers."""
        self._container(pod, container).send_signal(signal.SIGSTOP, all_processes=True)

    async def resume(self, pod: Key, container: str = "") -> None:
        """Let the processes of a frozen container continue."""
        self._container(pod, container).send_signal(signal.SIGCONT, all_processes=True)

    # Volumes

    async def fill_volume(self, pod: Key, volume: str) -> None:
        """Fill an emptyDir that has a size limit: a write fails, or the pod is evicted where there are no namespaces.

        Raises: ValueError for a volume without a size limit, which would fill the disk of this machine.
        """
        path, limit = self._volume(pod, volume)
        await asyncio.to_thread(_fill, path / _FILE, limit)

    async def clear_volume(self, pod: Key, volume: str) -> None:
        """Remove what `fill_volume` wrote."""
        path, _ = self._volume(pod, volume)
        (path / _FILE).unlink(missing_ok=True)

    async def delete_claim(self, claim: Key) -> None:
        """Delete a claim with its data at once, also while pods use it.

        Raises: NotFound when there is no such claim.
        """
        found = await self._client.get(_CLAIMS, claim)
        volume = (found.get("spec") or {}).get("volumeName", "")
        await self._client.delete(found)
        await self._client.patch(_CLAIMS, claim, {"metadata": {"uid": found.uid, "finalizers": None}})
        path = self._runtime.options.directory / "claims" / f"{volume}-{found.uid}"
        await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)

    # Nodes

    async def stop_node(self, node: str) -> None:
        """Switch a node off: its processes end, and nothing is reported any more."""
        self._nodes.stop_node(node)
        pods = [pod for pod in self._runtime.pods() if pod.spec.get("nodeName") == node]
        await asyncio.gather(*(pod.sandbox.close() for pod in pods))

    async def start_node(self, node: str) -> None:
        """Switch a node on again; the containers of its pods start again."""
        self._nodes.start_node(node)

    # Connections

    async def block_api_server(self, pod: Key) -> None:
        """Block the connections of a pod to the API server, as a network that drops its packets."""
        self._pod(pod).sandbox.api_proxy.set_blocked(True)

    async def unblock_api_server(self, pod: Key) -> None:
        """Pass the connections of a pod to the API server again."""
        self._pod(pod).sandbox.api_proxy.set_blocked(False)

    async def block_services(self, pod: Key) -> None:
        """Block the connections of a pod to Services, and those of Services to the pod."""
        self._pod(pod)
        self._blocks.pods.add(pod)
        self._proxy.refresh()

    async def unblock_services(self, pod: Key) -> None:
        """Pass the connections between a pod and Services again."""
        self._blocks.pods.discard(pod)
        self._proxy.refresh()

    @property
    def _blocks(self) -> ServiceBlocks:
        return self._runtime.service_blocks

    # What a fault hits

    def _pod(self, key: Key) -> ProcessPod:
        found = self._runtime.pod(key)
        if found is None:
            names = ", ".join(sorted(str(pod.key) for pod in self._runtime.pods()))
            raise ValueError(f"pod {key} does not run as processes (those that do: {names or 'none'})")
        return found

    def _container(self, key: Key, name: str) -> ProcessContainer:
        pod = self._pod(key)
        name = name or pod.spec["containers"][0]["name"]
        if name not in pod.containers:
            raise ValueError(f"pod {key} has no container {name!r} (there are: {', '.join(pod.containers)})")
        if not pod.containers[name].pid:
            raise ValueError(f"container {name} of pod {key} does not run")
        return pod.containers[name]

    def _volume(self, key: Key, name: str) -> tuple[Path, int]:
        """Return a volume as a running container sees it, and its size limit."""
        pod = self._pod(key)
        volumes = {one["name"]: one for one in pod.spec.get("volumes") or ()}
        if name not in volumes:
            raise ValueError(f"pod {key} has no volume {name!r} (there are: {', '.join(volumes) or 'none'})")
        limit = (volumes[name].get("emptyDir") or {}).get("sizeLimit")
        if limit is None:
            raise ValueError(
                f"volume {name} of pod {key} has no size limit: only an emptyDir with sizeLimit can be filled"
            )
        for spec in pod.spec["containers"]:
            for mount in spec.get("volumeMounts") or ():
                if mount["name"] == name and pod.containers[spec["name"]].pid:
                    return self._path(pod, spec, mount), Quantity(limit).whole()
        raise ValueError(f"no running container of pod {key} mounts volume {name}")

    def _path(self, pod: ProcessPod, container: Mapping[str, Any], mount: Mapping[str, Any]) -> Path:
        if not self._runtime.namespaces:
            return pod.sandbox.directory / "volumes" / str(mount["name"])
        return Path(f"/proc/{pod.containers[container['name']].pid}/root") / str(mount["mountPath"]).lstrip("/")


def _fill(path: Path, limit: int) -> None:
    """Write a file until nothing more fits, or it is larger than the limit."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    size = len(_PART)
    try:
        written = 0
        while written <= limit and size:
            try:
                written += os.write(descriptor, _PART[:size])
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 2  # the last bytes
    finally:
        with suppress(OSError):
            os.close(descriptor)
