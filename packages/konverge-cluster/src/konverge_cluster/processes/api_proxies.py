"""The way of one pod to the API server: a forwarder of its own, so that it can be blocked."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address

from konverge_cluster.processes.forwarders import Address, Forwarder, listening_socket

__all__ = ["ApiProxy"]


class ApiProxy:
    """Forwards the connections of a pod to the API server, which `server` returns.

    Only a server on a loopback address has a proxy: its certificate is valid for the address of the proxy too. Pods
    connect to other servers directly.
    """

    def __init__(self, server: Callable[[], Address | None]) -> None:
        self._server = server
        self.is_blocked = False
        self._forwarder = Forwarder(server, is_blocked=lambda _: self.is_blocked)

    @property
    def address(self) -> Address | None:
        """Where the pod finds the API server, None if that does not listen."""
        return self._forwarder.address if self._forwarder.is_listening else self._server()

    def open(self) -> None:
        """Listen, unless it does so already or there is no server.

        Raises: OSError when no port is free.
        """
        server = self._server()
        if server is not None and not self._forwarder.is_listening and _is_loopback(server[0]):
            self._forwarder.start(listening_socket(server[0], 0))

    def close(self) -> None:
        """End all connections."""
        self._forwarder.abort()

    def set_blocked(self, blocked: bool) -> None:
        """Block the connections of the pod from now on, or pass them again.

        Raises: ValueError when the pod connects to its server directly.
        """
        if not self._forwarder.is_listening:
            raise ValueError(
                "the pod connects to its API server directly: only an embedded one that listens has a proxy"
            )
        self.is_blocked = blocked
        self._forwarder.refresh()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).version == 4 and ip_address(host).is_loopback
    except ValueError:  # a name
        return False
