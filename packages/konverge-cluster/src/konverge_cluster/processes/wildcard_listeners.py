"""Finds containers that listen on all addresses of the machine, and fails them.

All pods share the loopback interface: a listener on 0.0.0.0 would answer at the address of every pod and every Service.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from konverge_cluster.processes.containers import ProcessContainer
from konverge_cluster.processes.process_pod import ProcessPod
from konverge_cluster.processes.socket_tables import Socket, pod_sockets, read_sockets
from konverge_cluster.processes.supervisor.descendants import sample_descendants

__all__ = ["WildcardListeners"]

_INTERVAL: Final = 0.5
_MAX_CHECKS: Final = 20
REASON: Final = "WildcardListener"


class WildcardListeners:
    """Looks for wildcard listeners of pods.

    A socket that was of no container several times is another program's. It is not looked at again. Once is not enough:
    a container can listen before its process is known here.
    """

    def __init__(self, pods: Callable[[], Sequence[ProcessPod]]) -> None:
        self._pods = pods
        self._checks: Counter[int] = Counter()  # by inode

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(_INTERVAL)
            self.check()

    def check(self) -> None:
        """Fail every container that listens on all addresses."""
        running = [one for pod in self._pods() for one in pod.containers.values() if one.pid and not one.is_stopping]
        if not running:
            return
        found = {one.inode: one for one in read_sockets(listening=True) if one.is_wildcard}
        self._checks = Counter({inode: self._checks[inode] + 1 for inode in found})
        unknown = {inode: one for inode, one in found.items() if self._checks[inode] <= _MAX_CHECKS}
        for container in running if unknown else ():
            own = pod_sockets([container.pid, *sample_descendants(container.pid)]) & unknown.keys()
            if own:
                _fail(container, unknown[min(own)])


def _fail(container: ProcessContainer, found: Socket) -> None:
    host, port = found.local
    text = (
        f"listens on {'[::]' if host == '::' else host}:{port}, which answers at the address of every pod: "
        f"let it listen on $(POD_IP):{port}, in the command of its local image or in the args of the container"
    )
    container.fail(REASON, text)
