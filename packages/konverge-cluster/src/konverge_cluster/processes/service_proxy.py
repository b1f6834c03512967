"""The proxy of Services: it listens on their addresses and node ports, and forwards TCP to their ready endpoints.

Rules, those of kube-proxy:

1. Endpoints that are ready get new connections in turn. If there are none, those that are terminating and still serve.
2. Without endpoints nothing listens, so that a connection is refused at once.
3. A connection to an endpoint that is removed continues until one side ends it.

Endpoints of simulated pods are left out: nothing answers there.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import ClassVar, Final

from konverge.cache import Event
from konverge.client import Client
from konverge.controller import Controller, controller_for
from konverge.k8s.core.v1 import Service
from konverge.k8s.discovery.v1 import Endpoint, EndpointSlice
from konverge.manager import Manager
from konverge.objects import Key
from konverge.reconcile import Context, Reconciler, Result
from konverge_cluster.processes.forwarders import Address, Connection, Forwarder, Listen, listening_socket

__all__ = ["ServiceProxy", "backends_of"]

_SERVICE: Final = "kubernetes.io/service-name"
_SERVER: Final = Key("default", "kubernetes")
_RETRY_SECONDS: Final = 5.0


@dataclass(frozen=True)
class _Listener:
    """An address of a Service and the name of its port in EndpointSlices."""

    address: Address
    port_name: str


class _ForwardedPort:
    """A listening address of a Service with the backends of its next connections."""

    def __init__(self, is_blocked: Callable[[Connection], bool]) -> None:
        self.backends: Sequence[Address] = ()
        self.forwarder = Forwarder(self._choose, is_blocked=is_blocked)
        self.port = 0  # where it listens or did so last
        self._turn = itertools.count()

    def _choose(self) -> Address | None:
        return self.backends[next(self._turn) % len(self.backends)] if self.backends else None


class ServiceProxy(Reconciler[Service]):
    """Forwards the connections to Services.

    `hosts` are the addresses of the nodes, for node ports. `api_server` returns the address of the API server, which is
    what the Service `kubernetes` forwards to. `is_blocked` reports whether the bytes of a connection are dropped; call
    `refresh` after its answer changed. `listen` opens a listening socket.

    A port that this user may not bind, or that is in use, is replaced by a high one, and an event of the Service
    reports it.
    """

    reconcile_terminating: ClassVar[bool] = True

    def __init__(
        self,
        hosts: Sequence[str],
        *,
        api_server: Callable[[], Address | None] = lambda: None,
        is_blocked: Callable[[Connection], bool] = lambda _: False,
        listen: Listen = listening_socket,
    ) -> None:
        self._hosts = hosts
        self._api_server = api_server
        self._is_blocked = is_blocked
        self._listen = listen
        self._services: dict[Key, dict[_Listener, _ForwardedPort]] = {}
        self._retired: list[Forwarder] = []  # closed, with connections that continue

    async def reconcile(self, obj: Service, ctx: Context) -> Result | None:
        """Listen on the addresses of a Service, and forward to its endpoints."""
        ports = self._services.setdefault(obj.key, {})
        desired = list(_listeners(obj, self._hosts))
        for listener in [one for one in ports if one not in desired]:
            self._retire(ports.pop(listener))
        labels = f"{_SERVICE}={obj.name}"
        slices = [] if obj.key == _SERVER else await ctx.list(EndpointSlice, labels=labels)
        complete = True
        for listener in desired:
            port = ports.setdefault(listener, _ForwardedPort(self._is_blocked))
            port.backends = self._backends(obj, slices, listener.port_name)
            complete &= self._update(listener, port, ctx)
        waits_for_server = obj.key == _SERVER and self._api_server() is None
        return None if complete and not waits_for_server else Result.requeue(_RETRY_SECONDS, reason="not listening yet")

    def _backends(self, service: Service, slices: Sequence[EndpointSlice], port_name: str) -> list[Address]:
        if service.key != _SERVER:
            return backends_of(slices, port_name)
        address = self._api_server()
        return [address] if address is not None else []

    def _update(self, listener: _Listener, port: _ForwardedPort, ctx: Context) -> bool:
        """Listen if there are backends; report whether the state is the desired one."""
        if not port.backends:
            port.forwarder.close()
            return True
        if port.forwarder.is_listening:
            return True
        host, number = listener.address
        error: OSError | None = None
        for candidate in (number, port.port, 0):
            try:
                listening = self._listen(host, candidate)
            except OSError as failure:
                error = error or failure
                continue
            port.forwarder.start(listening)
            moved = port.forwarder.address[1]
            if moved not in (number, port.port):
                text = f"cannot listen on {host}:{number} ({error}): use {host}:{moved} instead"
                ctx.event("PortReplaced", text, warning=True, reporter="kube-proxy")
            port.port = moved
            return True
        ctx.event("ListenFailed", f"cannot listen on {host}:{number}: {error}", warning=True, reporter="kube-proxy")
        return False

    def gone(self, key: Key) -> None:
        """Close the addresses of a deleted Service; connections continue."""
        for port in self._services.pop(key, {}).values():
            self._retire(port)

    def _retire(self, port: _ForwardedPort) -> None:
        port.forwarder.close()
        self._retired = [one for one in (*self._retired, port.forwarder) if one.connections]

    def addresses(self, key: Key) -> Mapping[Address, Address]:
        """Return where a Service listens now, by the address that it has."""
        ports = self._services.get(key, {})
        return {one.address: port.forwarder.address for one, port in ports.items() if port.forwarder.is_listening}

    def refresh(self) -> None:
        """Apply a change of what `is_blocked` reports."""
        for forwarder in self._forwarders():
            forwarder.refresh()

    def _forwarders(self) -> Iterator[Forwarder]:
        for ports in self._services.values():
            for port in ports.values():
                yield port.forwarder
        yield from self._retired

    def slice_to_service(self, event: Event) -> Iterable[Key]:
        """Map an EndpointSlice to its Service."""
        found = set()
        for entry in (event.old, event.new):
            if entry is not None:
                labels = dict(zip(entry.labels[::2], entry.labels[1::2], strict=True))
                found.add(Key(entry.key.namespace, labels.get(_SERVICE, "")))
        return sorted(one for one in found if one.name)

    def controller(self) -> Controller[Service]:
        """Return the controller of this proxy."""
        builder = controller_for(Service).named("kube-proxy")
        return builder.watches(EndpointSlice, self.slice_to_service).build(self)

    @asynccontextmanager
    async def running(self, client: Client) -> AsyncGenerator[None]:
        """Forward while the block runs; then end every connection."""
        manager = Manager(client, name="kube-proxy", grace=2.0)
        manager.add(self.controller())
        try:
            async with manager.running():
                yield
        finally:
            for forwarder in self._forwarders():
                forwarder.abort()
            self._services.clear()


def _listeners(service: Service, hosts: Iterable[str]) -> Iterator[_Listener]:
    """Yield the addresses on which a Service listens."""
    spec = service.spec
    if service.metadata.deletion_timestamp is not None or spec.type == "ExternalName":
        return
    for port in spec.ports:
        if port.protocol not in (None, "TCP"):
            continue
        for address in spec.cluster_ips:
            if address != "None" and ip_address(address).is_loopback:
                yield _Listener((address, port.port), port.name or "")
        if port.node_port:
            for host in hosts:
                yield _Listener((host, port.node_port), port.name or "")


def backends_of(slices: Iterable[EndpointSlice], port_name: str) -> list[Address]:
    """Return the addresses that get the next connections to a port of a Service."""
    ready: set[Address] = set()
    terminating: set[Address] = set()
    for one in slices:
        ports = [port.port for port in one.ports if (port.name or "") == port_name and port.port]
        for endpoint in one.endpoints:
            conditions = endpoint.conditions
            if conditions is None or conditions.ready is not False:
                ready |= _addresses(endpoint, ports)
            elif conditions.serving and conditions.terminating:
                terminating |= _addresses(endpoint, ports)
    return sorted(ready or terminating)


def _addresses(endpoint: Endpoint, ports: Sequence[int]) -> set[Address]:
    is_pod = endpoint.target_ref is not None and endpoint.target_ref.kind == "Pod"
    reachable = [one for one in endpoint.addresses if not is_pod or ip_address(one).is_loopback]
    return {(address, port) for address in reachable for port in ports}
