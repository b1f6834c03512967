"""The runtime of process nodes: it runs the pods whose images are in a table of local images."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, Final

from konverge.objects import Key, Unstructured
from konverge.reconcile import Context
from konverge_cluster.nodes.node_objects import SimulatedNode
from konverge_cluster.nodes.pod_lifecycle import PodAddresses, PodSync
from konverge_cluster.processes.directories import open_directory
from konverge_cluster.processes.images import LocalImage, LocalImages
from konverge_cluster.processes.kubeconfigs import SignClient
from konverge_cluster.processes.networks import LoopbackNetwork, claim_network
from konverge_cluster.processes.process_pod import PodTasks, ProcessPod
from konverge_cluster.processes.readable_copies import ReadableCopies
from konverge_cluster.processes.sandbox import SandboxOptions
from konverge_cluster.processes.service_blocks import ServiceBlocks
from konverge_cluster.processes.supervisors import Supervisor
from konverge_cluster.processes.users import NOBODY
from konverge_cluster.processes.wildcard_listeners import WildcardListeners

__all__ = ["Processes"]

_log: Final = logging.getLogger(__name__)
_REFERENCES: Final = {
    "configMap": ("ConfigMap", "name"),
    "configMapRef": ("ConfigMap", "name"),
    "configMapKeyRef": ("ConfigMap", "name"),
    "secret": ("Secret", "secretName"),
    "secretRef": ("Secret", "name"),
    "secretKeyRef": ("Secret", "name"),
}


class Processes:
    """Runs containers as processes of this machine (Linux only).

    Promises:

    - only images of the table run; pods without any are simulated;
    - each pod has a directory, a supervisor and a loopback address of its own;
    - nothing runs as root; when this process is root, containers run as `runAsUser`, as the user of the image, or as
      `user`;
    - every process of a pod ends with the pod and with this process, even if this one is killed;
    - files are below one directory, which is removed at the end unless `keep`, or by the next runtime.

    `directory` is where that directory is created. `namespaces` is whether containers get mount and PID namespaces of
    their own: by default, if this machine allows them. `log_limit` is the size in bytes at which a log is rotated,
    `crash_backoff` the seconds before the second restart of a container that keeps ending.
    """

    def __init__(
        self,
        images: LocalImages | Iterable[LocalImage],
        *,
        directory: str | os.PathLike[str] | None = None,
        keep: bool = False,
        namespaces: bool | None = None,
        user: int = NOBODY,
        log_limit: int = 10 * 1024 * 1024,
        crash_backoff: float = 10.0,
    ) -> None:
        if user == 0:
            raise ValueError("user 0 is root, and containers never run as root: choose another user")
        self.images = images if isinstance(images, LocalImages) else LocalImages(images)
        self.api_server: Callable[[], tuple[str, int] | None] = lambda: None
        self.sign_client: SignClient | None = None
        self._user = user
        self._log_limit = log_limit
        self._crash_backoff = crash_backoff
        self._parent = Path(directory) if directory is not None else None
        self._keep = keep
        self._namespaces = namespaces
        self._options: SandboxOptions | None = None
        self._network: LoopbackNetwork | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._changed: Callable[[Key], None] = lambda _: None
        self._pods: dict[Key, ProcessPod] = {}
        self._spawned: set[asyncio.Task[None]] = set()
        self.service_blocks = ServiceBlocks(self.pod)
        self._discards: set[asyncio.Task[None]] = set()  # of pods that no longer exist

    @contextmanager
    def claim(self) -> Iterator[LoopbackNetwork]:
        """Claim the addresses of this runtime; `running` does it unless it was done before.

        Raises: OSError when there are none.
        """
        with claim_network() as self._network:
            try:
                yield self._network
            finally:
                self._network = None

    # What nodes call

    def runs(self, pod: Unstructured) -> bool:
        """Report whether a pod is run; if not, it is simulated."""
        spec = pod["spec"]
        return self.images.runs(one["image"] for one in (*(spec.get("initContainers") or ()), *spec["containers"]))

    def network(self, node: SimulatedNode) -> IPv4Network:
        """Return the addresses of the pods on a node."""
        return self.loopback.pods(node.index)

    async def sync(self, pod: Unstructured, node: SimulatedNode, addresses: PodAddresses, ctx: Context) -> PodSync:
        """Do what is due for a pod, and return its status."""
        running = self._pods.get(pod.key)
        if running is not None and running.uid != pod.uid:
            await self._pods.pop(pod.key).discard()
            running = None
        if running is None:
            tasks = PodTasks(self._spawn, lambda: self._changed(pod.key))
            running = self._pods[pod.key] = ProcessPod(self.options, pod, addresses, tasks)
        sync = await running.sync(pod, ctx, dict(node.capacity))
        for one in sync.events:
            ctx.event(one.reason, one.message, warning=one.warning, reporter="kubelet")
        if sync.terminated:
            self._pods.pop(pod.key, None)
        return PodSync(sync.status, sync.after, terminated=sync.terminated)

    def forget(self, key: Key) -> None:
        """Kill what is left of a pod that no longer exists."""
        pod = self._pods.pop(key, None)
        if pod is not None:
            task = self._spawn(pod.discard())
            self._discards.add(task)
            task.add_done_callback(self._discards.discard)

    def readers(self, kind: str, key: Key) -> list[Key]:
        """Return the running pods that read a ConfigMap or a Secret."""
        return [
            pod
            for pod, running in self._pods.items()
            if pod.namespace == key.namespace and (kind, key.name) in set(_references(running.spec))
        ]

    @asynccontextmanager
    async def running(self, changed: Callable[[Key], None]) -> AsyncGenerator[None]:
        """Run while the block runs; then kill every process and remove the files.

        Raises: RuntimeError on a system other than Linux; OSError when there is no directory or no address.
        """
        if sys.platform != "linux":
            raise RuntimeError("process nodes need Linux: leave the runtime out to simulate all pods")
        self._changed = changed
        with ExitStack() as stack:
            if self._network is None:
                stack.enter_context(self.claim())
            directory = stack.enter_context(open_directory(self._parent, keep=self._keep))
            await self._configure(directory)
            async with asyncio.TaskGroup() as self._tasks:
                self._spawn(WildcardListeners(self.pods).watch())
                try:
                    yield
                finally:
                    await self._kill_all()
        self._options = self._tasks = None

    async def _configure(self, directory: Path) -> None:
        namespaces = self._namespaces
        if namespaces is not False:
            trial = await Supervisor.start(namespaces=True)
            allowed, reason = trial.namespaces, trial.reason
            await trial.close()
            if namespaces and not allowed:
                raise OSError(f"this machine allows no mount and PID namespaces: {reason} (use namespaces=False)")
            namespaces = allowed
        self._options = SandboxOptions(
            images=self.images,
            directory=directory,
            namespaces=namespaces,
            copies=ReadableCopies(directory / "images"),
            api_server=lambda: self.api_server(),
            sign_client=self.sign_client,
            user=self._user,
            log_limit=self._log_limit,
            crash_backoff=self._crash_backoff,
        )

    async def _kill_all(self) -> None:
        pods, self._pods = list(self._pods.values()), {}
        self._changed = lambda _: None
        await asyncio.gather(*(pod.sandbox.close() for pod in pods), *self._discards)
        for task in list(self._spawned):
            task.cancel()

    # What others read

    @property
    def options(self) -> SandboxOptions:
        """The options of the sandboxes.

        Raises: RuntimeError when the runtime does not run.
        """
        if self._options is None:
            raise RuntimeError("the process runtime does not run: use it inside `async with`")
        return self._options

    @property
    def loopback(self) -> LoopbackNetwork:
        """The addresses of this runtime.

        Raises: RuntimeError when the runtime does not run.
        """
        if self._network is None:
            raise RuntimeError("the process runtime does not run: use it inside `async with`")
        return self._network

    @property
    def namespaces(self) -> bool:
        """Whether containers have mount and PID namespaces of their own."""
        return self.options.namespaces

    def pod(self, key: Key) -> ProcessPod | None:
        """Return a pod that runs here, None if it does not."""
        return self._pods.get(key)

    def pods(self) -> Sequence[ProcessPod]:
        """Return all pods that run here."""
        return list(self._pods.values())

    # Tasks

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        if self._tasks is None:
            raise RuntimeError("the process runtime does not run")
        task = self._tasks.create_task(_logged(work))
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)
        task.add_done_callback(lambda _: work.close())  # cancelled before its first step, it would never be awaited
        return task


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    """Run a task of one pod; its failure must not end the other pods."""
    try:
        await work
    except Exception:
        _log.exception("Task of a process pod failed")


def _references(value: Any) -> Iterator[tuple[str, str]]:
    """Yield kind and name of every ConfigMap and Secret that a pod spec refers to."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            if name in _REFERENCES and isinstance(one, Mapping):
                kind, field = _REFERENCES[name]
                yield kind, str(one.get(field) or one.get("name", ""))
            yield from _references(one)
    elif isinstance(value, list):
        for one in value:
            yield from _references(one)
