"""Pods that are blocked from the Services: which forwarded connections are theirs."""

from __future__ import annotations

from collections.abc import Callable

from konverge.objects import Key
from konverge_cluster.processes.forwarders import Connection
from konverge_cluster.processes.process_pod import ProcessPod
from konverge_cluster.processes.socket_tables import pod_sockets, read_sockets
from konverge_cluster.processes.supervisor.descendants import descendants

__all__ = ["ServiceBlocks"]


class ServiceBlocks:
    """Pods whose connections through Services are blocked, in both directions.

    A connection from a pod is recognized by its socket, since its address is that of the whole machine. `find` returns
    a pod that runs.
    """

    def __init__(self, find: Callable[[Key], ProcessPod | None]) -> None:
        self.pods: set[Key] = set()
        self._find = find

    def is_blocked(self, connection: Connection) -> bool:
        """Report whether a connection is from or to a blocked pod."""
        pods = [pod for pod in map(self._find, self.pods) if pod is not None]
        if not pods:
            return False
        if connection.backend is not None and connection.backend[0] in [pod.addresses.pod_ip for pod in pods]:
            return True
        inode = _client_inode(connection)
        supervisors = [pod.sandbox.supervisor.pid for pod in pods if pod.sandbox.is_open]
        return any(inode in pod_sockets(descendants(one)) for one in supervisors)


def _client_inode(connection: Connection) -> int:
    """Return the socket of the client of a connection, 0 if it is gone."""
    ends = connection.source, connection.target
    return next((one.inode for one in read_sockets() if (one.local, one.remote) == ends), 0)
