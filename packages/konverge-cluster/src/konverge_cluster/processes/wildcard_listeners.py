"""Finds containers that listen on all addresses of the machine, and fails them.

All pods share the loopback interface: a listener on 0.0.0.0 would answer at the address of every pod and every Service.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from konverge_cluster.processes.containers import ProcessContainer
from konverge_cluster.processes.process_pod import ProcessPod
from konverge_cluster.processes.socket_tables import Socket, pod_sockets, read_sockets

__all__ = ["WildcardListeners"]

_INTERVAL: Final = 0.5
REASON: Final = "WildcardListener"


class WildcardListeners:
    """Looks for wildcard listeners of pods. A socket that was found to be of no pod is not looked at again."""

    def __init__(self, pods: Callable[[], Sequence[ProcessPod]]) -> None:
        self._pods = pods
        self._foreign: set[int] = set()

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(_INTERVAL)
            self.check()

    def check(self) -> None:
        """Fail every container that listens on all addresses."""
        found = {one.inode: one for one in read_sockets() if one.is_wildcard}
        self._foreign &= found.keys()
        unknown = {inode: one for inode, one in found.items() if inode not in self._foreign}
        if not unknown:
            return
        for pod in self._pods():
            for container in pod.containers.values():
                if container.pid and not container.is_stopping:
                    own = pod_sockets(container.pid) & unknown.keys()
                    if own:
                        _fail(container, unknown[min(own)])
        self._foreign |= unknown.keys()


def _fail(container: ProcessContainer, found: Socket) -> None:
    host, port = found.local
    text = (
        f"listens on {'[::]' if host == '::' else host}:{port}, which answers at the address of every pod: "
        f"let it listen on $(POD_IP):{port}, in the command of its local image or in the args of the container"
    )
    container.fail(REASON, text)
