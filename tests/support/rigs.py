"""The rigs of the fault scenarios: a server, injected faults, and the store of a cache.

A scenario is written once and runs on three rigs. *virtual*: the embedded server without sockets, on virtual time.
*sockets*: the embedded server behind the fault proxy, with all times divided by twenty. *real*: etcd and kube-apiserver
behind the fault proxy, in real time. Only the store, the events and the log of the proxy are checked.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from konverge.cache.backoff import Stagger
from konverge.cache.events import Event, EventType
from konverge.cache.options import CacheOptions, ReflectorOptions
from konverge.cache.reflector import Reflector
from konverge.cache.reflector_stats import ReflectorState, ReflectorStats
from konverge.cache.store import Store
from konverge.client import Client, ClientConfig, InProcessTransport, StaticCredentials, load_config
from konverge.client.access.tls import Tls
from konverge.objects import Key, Kind, Unstructured
from konverge.testing import ControlPlane
from konverge.testing.fault_proxy import FaultProxy
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import FaultScript, RecordedRequest, any_request, connection_refused, lists, watches
from konverge.wire.list_watch import Selection
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.storage import Storage

__all__ = [
    "CONFIG_MAP",
    "EventRecorder",
    "OpenRig",
    "Rig",
    "WatchedCollection",
    "embedded_config",
    "real_rig",
    "running",
    "sockets",
    "virtual",
]

OpenRig: TypeAlias = "Callable[..., AbstractAsyncContextManager[Rig]]"

CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")


@asynccontextmanager
async def running(*reflectors: Reflector) -> AsyncIterator[None]:
    """Run reflectors while the block runs; they must end only by cancellation."""
    tasks = [asyncio.create_task(reflector.run()) for reflector in reflectors]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)


@dataclass
class EventRecorder:
    """An event handler that replays the events, and checks that they are in order."""

    objects: dict[Key, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        known = self.objects.get(event.key)
        assert (event.type is EventType.ADDED) == (known is None), f"{event.type} of {event.key}, known as {known}"
        if event.new is None:
            del self.objects[event.key]
        else:
            assert known is None or int(known) < int(event.new.version), "back in time"
            self.objects[event.key] = str(event.new.version)

    def types(self, name: str) -> list[EventType]:
        return [event.type for event in self.events if event.key.name == name]


@dataclass
class WatchedCollection:
    """One collection with its reflector, its store and an event recorder."""

    store: Store
    recorder: EventRecorder
    reflector: Reflector

    @property
    def stats(self) -> ReflectorStats:
        return self.reflector.stats()

    def names(self) -> set[str]:
        return {entry.key.name for entry in self.store.list()}


@dataclass
class Rig:
    """A server with injected faults. `scale` is how long a second of a scenario lasts."""

    server: Client
    through: Client
    fault_transport: FaultTransport | None
    namespace: str
    scale: float
    compact: Callable[[], object] = lambda: None
    compact_old: Callable[[], object] = lambda: None
    slack: float = 15.0  # real seconds that a loaded machine may add to any limit; the virtual rig adds none
    stagger: Stagger = field(default_factory=Stagger)

    @property
    def traffic(self) -> FaultTransport:
        assert self.fault_transport is not None, "this rig breaks bare connections: use its proxy"
        return self.fault_transport

    @property
    def script(self) -> FaultScript:
        return self.traffic.script

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self.scale)

    async def until(self, condition: Callable[[], bool], *, within: float) -> float:
        """Wait until a condition is true; return how many of the scenario's seconds that took."""
        begin = self.now()
        while not condition():
            assert self.now() - begin < within * self.scale + self.slack, f"not true within {within} s"
            await asyncio.sleep(0.05 * self.scale)
        return (self.now() - begin) / self.scale

    def watched_collection(
        self, *, kind: Kind = CONFIG_MAP, selection: Selection | None = None, options: CacheOptions | None = None
    ) -> WatchedCollection:
        """Return a reflector and store for a collection of the rig's namespace; it is not started."""
        store, recorder = Store(kind, namespace=self.namespace, options=options), EventRecorder()
        store.subscribe(recorder)
        reflector = Reflector(
            self.through.collection(kind, namespace=self.namespace),
            store,
            kind=kind.kind,
            selection=selection,
            options=reflector_options(self.scale),
            stagger=self.stagger,
            random=Random(7),
        )
        return WatchedCollection(store, recorder, reflector)

    @asynccontextmanager
    async def watching(self, selection: Selection | None = None) -> AsyncIterator[WatchedCollection]:
        """Watch the config maps while the block runs; return when the first watch is open."""
        it = self.watched_collection(selection=selection)
        async with running(it.reflector):
            await self.until(lambda: it.stats.state is ReflectorState.WATCHING, within=30)
            yield it

    # Foreign writes

    async def create(self, *names: str, labels: dict[str, str] | None = None) -> None:
        for part in _batches(names, 20):
            await asyncio.gather(*(self.server.create(self.config_map(name, labels)) for name in part))

    async def change(self, *names: str, value: str = "1") -> None:
        for part in _batches(names, 20):
            await asyncio.gather(
                *(
                    self.server.patch(CONFIG_MAP, name, {"data": {"value": value}}, namespace=self.namespace)
                    for name in part
                )
            )

    async def delete(self, *names: str) -> None:
        for part in _batches(names, 20):
            await asyncio.gather(*(self.server.delete(CONFIG_MAP, name, namespace=self.namespace) for name in part))

    def config_map(self, name: str, labels: dict[str, str] | None = None) -> Unstructured:
        metadata = {"name": name, "namespace": self.namespace} | ({"labels": labels} if labels else {})
        return Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata)

    async def pause(self) -> Callable[[], None]:
        """Cut every stream and reject all requests until the returned function is called."""
        rule = self.script.add(any_request, connection_refused())
        self.traffic.reset_streams()
        await asyncio.sleep(0.1 * self.scale)
        return lambda: self.script.remove(rule)

    # Checks

    async def is_equal(self, it: WatchedCollection, labels: str = "") -> bool:
        """Report whether the store and the replayed events equal the server."""
        found = await self.server.list(CONFIG_MAP, namespace=self.namespace, labels=labels)
        expected = {each.key: each.resource_version for each in found}
        return expected == {entry.key: str(entry.version) for entry in it.store.list()} == it.recorder.objects

    async def becomes_equal(self, it: WatchedCollection, *, within: float, labels: str = "") -> float:
        """Wait until `is_equal`; return how many of the scenario's seconds that took."""
        begin = self.now()
        while not await self.is_equal(it, labels):
            late = self.now() - begin > within * self.scale + self.slack
            assert not late, f"not equal to the server within {within} s: {it.stats}"
            await asyncio.sleep(0.2 * self.scale)
        return (self.now() - begin) / self.scale

    def lists(self, since: float = 0.0) -> list[RecordedRequest]:
        """Return the full lists that were started, as streams or in pages; a check of the history is none."""
        streams = [
            request for request in self.script.requests(watches(), since=since) if "sendInitialEvents" in request.query
        ]
        pages = [
            request
            for request in self.script.requests(lists("configmaps"), since=since)
            if "continue" not in request.query and "resourceVersionMatch" not in request.query
        ]
        return streams + pages

    def check_request_rate(self, since: float) -> None:
        """Check the rate: one request per second, after a minute one in four; the pages of a list count as one."""
        times = [each.time for each in self.script.requests(since=since) if "continue" not in each.query]
        # The recorded time is that of arrival: on a loaded machine a request may be late, and the next seem early.
        late = 0.5 if self.slack else 0.05
        for one, other in itertools.pairwise(times):
            apart = (other - one) / self.scale
            assert apart >= (1 if (one - since) / self.scale < 60 else 4) - late, f"{apart} s apart at {one - since}"


def reflector_options(scale: float) -> ReflectorOptions:
    """Return the default options with all times multiplied by `scale`."""
    defaults = ReflectorOptions()
    return ReflectorOptions(**{name: getattr(defaults, name) * scale for name in defaults.__slots__})


@asynccontextmanager
async def virtual(scale: float = 1.0) -> AsyncIterator[Rig]:
    """The embedded server without sockets, on virtual time."""
    del scale
    plane = EmbeddedServer(seed=1)
    transport = FaultTransport(InProcessTransport(plane.handle))
    async with Client(transport) as through, Client(InProcessTransport(plane.handle)) as server:
        storage = plane.cluster.storage
        yield Rig(server, through, transport, "default", 1.0, storage.compact, _Aging(storage).compact_old, slack=0)


@asynccontextmanager
async def sockets(scale: float = 0.05) -> AsyncIterator[Rig]:
    """The embedded server behind the fault proxy."""
    async with (
        EmbeddedServer(seed=1) as plane,
        FaultProxy(embedded_config(plane)) as proxy,
        Client.connect(proxy.config) as through,
        Client(InProcessTransport(plane.handle)) as server,
    ):
        yield Rig(server, through, proxy.traffic, "default", scale, plane.cluster.storage.compact)


@asynccontextmanager
async def real_rig(plane: ControlPlane, namespace: str, scale: float = 1.0) -> AsyncIterator[Rig]:
    """A real server behind the fault proxy."""
    async with (
        FaultProxy(plane) as proxy,
        Client.connect(proxy.config) as through,
        Client.connect(load_config(kubeconfig=plane.kubeconfig)) as server,
    ):
        yield Rig(server, through, proxy.traffic, namespace, scale, plane.compact)


class _Aging:
    """Compacts history older than two minutes when called; a real server does so by itself."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: list[tuple[float, int]] = []

    def compact_old(self) -> None:
        now = asyncio.get_running_loop().time()
        self._known.append((now, self._storage.revision))
        old = [revision for time, revision in self._known if time <= now - 120]
        if old:
            self._storage.compact(old[-1])


def embedded_config(plane: EmbeddedServer) -> ClientConfig:
    """Return the client configuration of an embedded server, as its admin."""
    tls = Tls(ca=plane.authority.certificate)
    return ClientConfig(server=plane.url, credentials=StaticCredentials.of_token(plane.admin_token), tls=tls)


def _batches(names: Iterable[str], size: int) -> Iterable[tuple[str, ...]]:
    rest = iter(names)
    while part := tuple(itertools.islice(rest, size)):
        yield part
