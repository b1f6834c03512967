"""The WebApp operator at work: on an embedded cluster whose kubelet is here, on virtual time.

A `WebAppWorld` is an embedded server with the workload controllers and a kubelet stand-in. The test is the user. What
the operator sends goes by a way of its own, where faults happen and writes are counted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from konverge import (
    Client,
    Conflict,
    Context,
    Controller,
    Manager,
    NotFound,
    ObjectMeta,
    Reconciler,
    Unstructured,
    controller_for,
    crd_for,
)
from konverge.client import InProcessTransport, ClientOptions
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Pod
from konverge.k8s.events.v1 import Event
from konverge.objects import from_wire
from konverge.testing import settle
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import RecordedRequest
from konverge.webhooks import Address, Webhooks, configurations_for
from konverge.wire.messages import Transport
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.workloads import workload_controllers
from konverge_operators.webapp.api import Phase, WebApp, WebAppSpec
from konverge_operators.webapp.children import KINDS
from konverge_operators.webapp.lifecycle import Lifecycle
from konverge_operators.webapp.operator import operator
from konverge_operators.webapp.reconciler import controllers

__all__ = ["Kubelet", "WebAppWorld", "is_write", "moves", "unexpected", "webapp", "webapp_world"]

START = 1_800_000_000.0
BINDING = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n1"}}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


def _clock() -> float:
    return START + asyncio.get_running_loop().time()


def webapp(name: str = "web", *, annotations: dict[str, str] | None = None, **spec: Any) -> WebApp:
    """Make a WebApp, with a spec in wire names; nginx:1.25 with two copies unless said otherwise."""
    metadata = ObjectMeta(name=name, namespace="default", annotations=annotations or {})
    return WebApp(metadata=metadata, spec=from_wire(WebAppSpec, {"image": "nginx:1.25", "replicas": 2, **spec}))


class Kubelet(Reconciler[Pod]):
    """Starts pods after `delay` seconds, but for those of images whose name holds "bad"; lets go what is deleted."""

    reconcile_terminating = True

    def __init__(self, delay: float = 2.0) -> None:
        self.delay = delay

    async def reconcile(self, pod: Pod, ctx: Context) -> None:
        if pod.metadata.deletion_timestamp is not None:
            await ctx.client.delete(pod, grace_period=0, missing_ok=True)
        elif not pod.spec.node_name:
            await asyncio.sleep(self.delay)
            await self._start(ctx.client, pod)

    async def _start(self, client: Client, pod: Pod) -> None:
        ready = "bad" not in (pod.spec.containers[0].image or "")
        condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": "2027-01-15T08:00:00Z"}
        patch = {"status": {"phase": "Running", "conditions": [condition]}}
        with suppress(NotFound, Conflict):  # it may be gone by now
            await client.write_subresource(pod, "binding", {**BINDING, "metadata": {"name": pod.name, "namespace": pod.namespace}})
            await client.patch(Pod, pod.key, patch, patch_type="strategic", subresource="status")


class WebAppWorld:
    """A cluster, its user, and the operator's transport."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.server = server
        self.client = Client(InProcessTransport(server.handle), options=ClientOptions(namespace="default"))
        self.kubelet = Kubelet()
        self.lifecycle = Lifecycle()
        self.transport = FaultTransport(InProcessTransport(server.handle))
        self._seen = 0

    # The operator

    @asynccontextmanager
    async def operating(
        self, *given: Controller[Any], transport: Transport | None = None, **options: Any
    ) -> AsyncGenerator[Manager]:
        """Have the operator at work while the block runs."""
        client = Client(transport or self.transport, options=ClientOptions(namespace="default"))
        manager = Manager(client, name="webapp-operator", **options)
        manager.add(*(given or controllers(self.lifecycle)))
        manager.export(*self.lifecycle.metrics)
        async with manager.running():
            yield manager

    # What is there

    async def app(self, name: str = "web") -> WebApp:
        return await self.client.get(WebApp, name)

    async def deployment(self, name: str = "web") -> Deployment:
        return await self.client.get(Deployment, name)

    async def parts(self) -> list[str]:
        """The children that are there, as "plural name"."""
        found = []
        for kind in KINDS:
            listed = await self.client.list(kind, namespace="default")
            found += [f"{kind.__name__} {one.name}" for one in listed if one.name != "kubernetes"]
        return sorted(found)

    async def events(self) -> list[tuple[str, str]]:
        """What was said about WebApps: reason and note, in order of time."""
        found = await self.client.list(Event, namespace="default")
        mine = [one for one in found if one.regarding is not None and one.regarding.kind == "WebApp"]
        # On virtual time many things happen at one moment: what was told first has the lower version.
        mine.sort(key=lambda one: (str(one.event_time), int(one.metadata.resource_version or 0)))
        return [(one.reason or "", one.note or "") for one in mine]

    # The passing of time

    async def change(self, name: str = "web", **spec: Any) -> None:
        """Change the spec as a user does."""
        await self.client.patch(WebApp, name, {"spec": spec})

    async def reaches(self, phase: Phase, name: str = "web", *, within: float = 120.0) -> WebApp:
        """Wait until an application is in a phase, with a status of its present spec."""
        end = asyncio.get_running_loop().time() + within
        while True:
            await settle()
            app = await self.app(name)
            if app.status.phase is phase and app.status.observed_generation == app.metadata.generation:
                return app
            assert asyncio.get_running_loop().time() < end, f"{app.status.phase}, not {phase}: {app.status}"
            await asyncio.sleep(0.5)

    async def until(self, claim: Callable[[], Awaitable[bool]], *, within: float = 120.0) -> float:
        """Wait until something is so; give how long it took."""
        begin = asyncio.get_running_loop().time()
        while not await claim():
            assert asyncio.get_running_loop().time() - begin < within, f"not so within {within} s"
            await asyncio.sleep(0.5)
        return asyncio.get_running_loop().time() - begin

    # What the operator asked for

    def asked(self) -> list[RecordedRequest]:
        return self.transport.script.requests()[self._seen :]

    @property
    def writes(self) -> list[str]:
        """What the operator wrote since `forget`, as "METHOD path", events and access reviews aside."""
        return [f"{one.method} {one.path}" for one in self.asked() if is_write(one)]

    def forget(self) -> None:
        self._seen = len(self.transport.script.requests())


def is_write(asked: RecordedRequest) -> bool:
    """Tell whether a request changes something that counts."""
    return asked.method != "GET" and "/events" not in asked.path and "accessreviews" not in asked.path


def unexpected(lifecycle: Lifecycle) -> dict[str, float]:
    """Give the transitions that were not declared, and how often."""
    found = [sample for metric in lifecycle.unexpected.collect() for sample in metric.samples]
    return {
        f"{one.labels['before']} -> {one.labels['after']}": one.value for one in found if one.name.endswith("_total")
    }


def moves(lifecycle: Lifecycle) -> Counter[str]:
    """Give all transitions, and how often."""
    found = [sample for metric in lifecycle.transitions.collect() for sample in metric.samples]
    return Counter(
        {
            f"{one.labels['before']} -> {one.labels['after']}": int(one.value)
            for one in found
            if one.name.endswith("_total")
        }
    )


async def ask_webhooks(world: WebAppWorld) -> None:
    """Have the server ask the operator's webhooks, in this process."""
    address = Address(service="webapp-operator-webhooks", namespace="operators")
    world.server.webhook_client.serve("operators", "webapp-operator-webhooks", Webhooks(*operator.webhooks).handle_review)
    for crd in operator.crds(address):
        await world.client.create(crd)
    for configuration in configurations_for(operator.webhooks, address, name=operator.name):
        await world.client.create(configuration)


@asynccontextmanager
async def _builtin(world: WebAppWorld, name: str, *given: Controller[Any]) -> AsyncGenerator[None]:
    manager = Manager(Client(InProcessTransport(world.server.handle)), name=name)
    manager.add(*given)
    async with manager.running():
        yield


@asynccontextmanager
async def webapp_world(*, strict: bool = True, webhooks: bool = False) -> AsyncGenerator[WebAppWorld]:
    """Give a cluster that knows the kind WebApp, and asks the operator's webhooks on request.

    With `strict` a transition that is not declared fails the test.
    """
    world = WebAppWorld(EmbeddedServer(clock=_clock, seed=1))
    await world.client.create(Unstructured(NODE))
    if webhooks:
        await ask_webhooks(world)
    else:
        await world.client.create(crd_for(WebApp))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(_builtin(world, "kube-controller-manager", *workload_controllers(clock=_clock)))
        node = controller_for(Pod).named("kubelet").max_concurrent_reconciles(64).build(world.kubelet)
        await stack.enter_async_context(_builtin(world, "kubelet", node))
        yield world
    if strict:
        assert unexpected(world.lifecycle) == {}
