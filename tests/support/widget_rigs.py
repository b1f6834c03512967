"""Rigs for the Widget operator: a server, faults on the connection to it, and checks from outside.

*virtual* is the embedded server without sockets, on virtual time. *real* is etcd and kube-apiserver, in real time.
Checked are the audit of writes, the final objects, and the ledger.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias

from konverge import Client, Controller, Manager, ObjectMeta, crd_for
from konverge.client import ClientOptions, HttpTransport, InProcessTransport, RetryPolicy, load_config
from konverge.errors import AlreadyExists, NotFound
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager.running_manager import RunningManager
from konverge.testing import ControlPlane
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import FaultScript
from konverge.wire.messages import Request, Response, Transport
from konverge_cluster.embedded_server import EmbeddedServer
from widget_operator import Widget, Widgets, WidgetSpec, WidgetStatus, widgets

__all__ = [
    "MemoryLedger",
    "OpenWidgets",
    "OperatorTransport",
    "WidgetRig",
    "Write",
    "install_widgets",
    "real_widgets",
    "virtual_widgets",
    "widget",
]

OpenWidgets: TypeAlias = "Callable[[], AbstractAsyncContextManager[WidgetRig]]"

_IGNORED = ("/events", "accessreviews", "/leases")


@dataclass(frozen=True, slots=True)
class Write:
    """One write that reached the server: its client, when it was sent and answered, and the status."""

    client: str
    sent: float
    answered: float
    method: str
    path: str
    status: int
    body: bytes = field(default=b"", repr=False)

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.status}"


class _AuditedTransport:
    """Records every write that reaches the server."""

    def __init__(self, inner: Transport, client: str, log: list[Write]) -> None:
        self._inner = inner
        self._client = client
        self._log = log

    async def send(self, request: Request) -> Response:
        clock = asyncio.get_running_loop().time
        sent = clock()
        response = await self._inner.send(request)
        if request.method != "GET":
            facts = (request.method, request.path, response.status, request.body)
            self._log.append(Write(self._client, sent, clock(), *facts))
        return response

    async def close(self) -> None:
        await self._inner.close()


class OperatorTransport(FaultTransport):
    """The transport of one operator. Once `dead`, nothing reaches the server any more, without an error."""

    def __init__(self, inner: Transport, script: FaultScript | None = None) -> None:
        super().__init__(inner, script)
        self.dead = False

    async def send(self, request: Request) -> Response:
        if self.dead:
            await asyncio.get_running_loop().create_future()
        return await super().send(request)

    def kill(self) -> None:
        """Behave like the network of a process that was killed."""
        self.dead = True
        self.pause_streams()


class MemoryLedger:
    """The ledger in memory."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    async def note(self, line: str) -> None:
        self.lines.append(line)

    def uids(self, word: str) -> set[str]:
        return {uid for first, _, uid in map(str.split, self.lines) if first == word}


@dataclass
class WidgetRig:
    """A server with Widgets. `full` uses the planned numbers, which take minutes."""

    user: Client
    connect: Callable[[], Transport]
    namespace: str
    full: bool = False
    slack: float = 0.0  # real seconds that a loaded machine may add to any limit
    rate: float = 1_000.0  # writes per second that the server reaches on a loaded machine
    server: EmbeddedServer | None = None
    audit: list[Write] = field(default_factory=list)
    ledger: MemoryLedger = field(default_factory=MemoryLedger)

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def share(self, full: int, short: int) -> int:
        return full if self.full else short

    def time_for(self, writes: int) -> float:
        """Return how long a number of writes may take at the rate of the server."""
        return writes / self.rate

    # The operator

    def transport(self, client: str = "operator") -> OperatorTransport:
        """Return a transport for one operator."""
        return OperatorTransport(_AuditedTransport(self.connect(), client, self.audit))

    def controller(self, reconciler: Widgets | None = None) -> Controller[Widget]:
        return widgets().build(reconciler or Widgets(self.ledger))

    @asynccontextmanager
    async def operating(
        self,
        *controllers: Controller[Any],
        transport: OperatorTransport | None = None,
        retry: RetryPolicy | None = None,
        **options: Any,
    ) -> AsyncGenerator[tuple[Manager, RunningManager]]:
        """Run an operator while the block runs; the default controller is that of Widgets."""
        client_options = ClientOptions(namespace=self.namespace)
        async with Client(transport or self.transport(), options=client_options, retry=retry) as client:
            manager = Manager(
                client, **{"name": "widget-operator", "namespaces": (self.namespace,), "grace": 0.0, **options}
            )
            manager.add(*(controllers or (self.controller(),)))
            async with manager.running() as process:
                yield manager, process

    # Actions of users

    async def create(self, *names: str, **spec: Any) -> None:
        await self._all(self.user.create(widget(name, self.namespace, **spec)) for name in names)

    async def change(self, *names: str, **spec: Any) -> None:
        await self._all(self.user.patch(Widget, name, {"spec": spec}, namespace=self.namespace) for name in names)

    async def delete(self, *names: str) -> None:
        await self._all(self.user.delete(Widget, name, namespace=self.namespace) for name in names)

    async def get(self, name: str) -> Widget:
        return await self.user.get(Widget, name, namespace=self.namespace)

    async def _all(self, calls: Iterable[Awaitable[Any]]) -> None:
        rest = iter(calls)
        while part := list(islice(rest, 20)):
            await asyncio.gather(*part)

    # Checks

    async def until(self, condition: Callable[[], Any], *, within: float, what: str = "") -> float:
        """Wait until a condition is true; return how many seconds that took."""
        begin = self.now()
        while True:
            result = condition()
            if inspect.isawaitable(result):
                result = await result
            if result:
                return self.now() - begin
            assert self.now() - begin <= within + self.slack, f"not true within {within} s: {what}"
            await asyncio.sleep(0.1)

    async def children(self) -> dict[str, ConfigMap]:
        """Return the config maps with an owner, by name."""
        found = await self.user.list(ConfigMap, namespace=self.namespace)
        return {one.name: one for one in found if one.metadata.owner_references}

    async def problems(self) -> list[str]:
        """Return what does not match the specs; children of deleted widgets are left to the garbage collector."""
        children = await self.children()
        wrong: list[str] = []
        owned: dict[str, set[str]] = {}
        for child in children.values():
            for owner in child.metadata.owner_references or ():
                owned.setdefault(owner.uid, set()).add(child.name)
        for one in await self.user.list(Widget, namespace=self.namespace):
            if one.metadata.deletion_timestamp is not None:
                wrong.append(f"{one.name} is not gone")
                continue
            expected = {f"{one.name}-{number}" for number in range(one.spec.replicas)}
            if one.status.observed_generation != one.metadata.generation or one.status.ready != one.spec.replicas:
                wrong.append(f"{one.name} says {one.status} at generation {one.metadata.generation}")
            if owned.get(one.uid, set()) != expected:
                wrong.append(f"{one.name} has {owned.get(one.uid)} instead of {expected}")
            wrong += [
                f"{name} has an old payload"
                for name in expected & set(children)
                if (children[name].data or {}).get("payload", "") != one.spec.payload
            ]
        return wrong

    async def converges(self, *, within: float) -> float:
        """Wait until every widget has converged; return how many seconds that took."""
        begin = checked = self.now()
        while wrong := await self.problems():
            now = self.now()
            assert now - begin <= within + self.slack, f"after {within} s: {len(wrong)}: {wrong[:5]}"
            # Constant polling would be a load of its own.
            await asyncio.sleep(max(0.25, 4 * (now - checked)))
            checked = self.now()
        return self.now() - begin

    def writes(self, *, client: str = "", since: float = 0.0) -> list[Write]:
        """Return the writes of an operator, without leases, events and access reviews."""
        found = [one for one in self.audit if one.sent >= since and client in ("", one.client)]
        return [one for one in found if not any(part in one.path for part in _IGNORED)]

    def counts(self) -> Counter[str]:
        """Return how often the operator created and deleted each child."""
        found: Counter[str] = Counter()
        for one in self.audit:
            name = one.path.rpartition("/")[2]
            if "/configmaps/" in one.path and (one.status == 201 or one.method == "DELETE"):
                found[f"{'created' if one.status == 201 else 'deleted'} {name}"] += one.status < 300
        return found


def widget(name: str, namespace: str = "default", **spec: Any) -> Widget:
    metadata = ObjectMeta(name=name, namespace=namespace)
    return Widget(metadata=metadata, spec=WidgetSpec(**spec), status=WidgetStatus())


async def install_widgets(client: Client) -> None:
    """Install the CRD, and wait until the server serves the kind."""
    with suppress(AlreadyExists):
        await client.create(crd_for(Widget))
    while True:
        try:
            await client.list(Widget, namespace="default")
            return
        except NotFound:
            await asyncio.sleep(0.1)


@asynccontextmanager
async def virtual_widgets(*, full: bool = False) -> AsyncGenerator[WidgetRig]:
    """The embedded server without sockets."""
    server = EmbeddedServer(seed=1)
    async with Client(InProcessTransport(server.handle), options=ClientOptions(namespace="default")) as user:
        await install_widgets(user)
        yield WidgetRig(user, lambda: InProcessTransport(server.handle), "default", full=full, server=server)


@asynccontextmanager
async def real_widgets(plane: ControlPlane, *, full: bool = True) -> AsyncGenerator[WidgetRig]:
    """A real server, with its own namespace."""
    created = plane.request("POST", "/api/v1/namespaces", body={"metadata": {"generateName": "widgets-"}})
    namespace = created.json()["metadata"]["name"]
    config = load_config(kubeconfig=plane.kubeconfig)
    async with Client.connect(config) as user:
        await install_widgets(user)
        yield WidgetRig(user, lambda: HttpTransport(config), namespace, full=full, slack=30.0, rate=20.0)
    plane.request("DELETE", f"/api/v1/namespaces/{namespace}")
