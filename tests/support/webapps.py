"""An environment for the WebApp operator: an embedded cluster with a fake kubelet, on virtual time.

A `WebAppEnvironment` is an embedded server with the workload controllers and a fake kubelet. The test is the user. The
operator has its own transport, which injects faults and records writes.
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
from konverge.client import ClientOptions, InProcessTransport
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import Pod
from konverge.k8s.events.v1 import Event
from konverge.objects import Kind, from_wire
from konverge.testing import settle
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import RecordedRequest
from konverge.webhooks import Address, Webhooks, configurations_for
from konverge.wire.messages import Transport
from konverge.workflow import PhaseMetrics
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.workloads import workload_controllers
from konverge_operators.webapp.api import Phase, WebApp, WebAppSpec
from konverge_operators.webapp.children import KINDS
from konverge_operators.webapp.operator import operator
from konverge_operators.webapp.reconciler import controllers

__all__ = [
    "Kubelet",
    "WebAppEnvironment",
    "is_write",
    "optional_crd",
    "transitions",
    "unexpected",
    "webapp",
    "webapp_environment",
]

START = 1_800_000_000.0
BINDING = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n1"}}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


def _clock() -> float:
    return START + asyncio.get_running_loop().time()


def webapp(name: str = "web", *, annotations: dict[str, str] | None = None, **spec: Any) -> WebApp:
    """Return a WebApp with a spec in wire names; nginx:1.25 with two replicas by default."""
    metadata = ObjectMeta(name=name, namespace="default", annotations=annotations or {})
    return WebApp(metadata=metadata, spec=from_wire(WebAppSpec, {"image": "nginx:1.25", "replicas": 2, **spec}))


def optional_crd(kind: Kind) -> Unstructured:
    """Return a CRD of another project that accepts anything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": kind.plural, "kind": kind.kind}
    name = f"{kind.plural}.{kind.group}"
    # The API server protects the group of the Gateway API: its CRDs need this annotation.
    metadata = {"name": name, "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"}}
    spec = {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]}
    return Unstructured(
        apiVersion="apiextensions.k8s.io/v1", kind="CustomResourceDefinition", metadata=metadata, spec=spec
    )


class Kubelet(Reconciler[Pod]):
    """Starts pods after `delay` seconds, except those of images with "bad" in the name; removes deleted pods."""

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
            await client.write_subresource(
                pod, "binding", {**BINDING, "metadata": {"name": pod.name, "namespace": pod.namespace}}
            )
            await client.patch(Pod, pod.key, patch, patch_type="strategic", subresource="status")


class WebAppEnvironment:
    """A cluster, a client for the test, and the operator's transport."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.server = server
        self.client = Client(InProcessTransport(server.handle), options=ClientOptions(namespace="default"))
        self.kubelet = Kubelet()
        self.lifecycle = PhaseMetrics("webapp")
        self.transport = FaultTransport(InProcessTransport(server.handle))
        self._seen = 0

    # The operator

    @asynccontextmanager
    async def operating(
        self, *custom: Controller[Any], transport: Transport | None = None, **options: Any
    ) -> AsyncGenerator[Manager]:
        """Run the operator during the block."""
        client = Client(transport or self.transport, options=ClientOptions(namespace="default"))
        manager = Manager(client, name="webapp-operator", **options)
        manager.add(*(custom or controllers(self.lifecycle)))
        manager.export(*self.lifecycle.collectors)
        async with manager.running():
            yield manager

    # Objects

    async def app(self, name: str = "web") -> WebApp:
        return await self.client.get(WebApp, name)

    async def deployment(self, name: str = "web") -> Deployment:
        return await self.client.get(Deployment, name)

    async def children(self) -> list[str]:
        """Return the existing children as "Kind name"."""
        found = []
        for kind in KINDS:
            listed = await self.client.list(kind, namespace="default")
            found += [f"{kind.__name__} {one.name}" for one in listed if one.name != "kubernetes"]
        return sorted(found)

    async def events(self) -> list[tuple[str, str]]:
        """Return the events about WebApps: reason and note, in order of time."""
        found = await self.client.list(Event, namespace="default")
        mine = [one for one in found if one.regarding is not None and one.regarding.kind == "WebApp"]
        # On virtual time many events have the same time, so the resource version decides.
        mine.sort(key=lambda one: (str(one.event_time), int(one.metadata.resource_version or 0)))
        return [(one.reason or "", one.note or "") for one in mine]

    # Changes and waiting

    async def change(self, name: str = "web", **spec: Any) -> None:
        """Change the spec as a user does."""
        await self.client.patch(WebApp, name, {"spec": spec})

    async def reaches(self, phase: Phase, name: str = "web", *, within: float = 120.0) -> WebApp:
        """Wait until an application is in a phase, with a status for its current spec."""
        end = asyncio.get_running_loop().time() + within
        while True:
            await settle()
            app = await self.app(name)
            if app.status.phase is phase and app.status.observed_generation == app.metadata.generation:
                return app
            assert asyncio.get_running_loop().time() < end, f"{app.status.phase}, not {phase}: {app.status}"
            await asyncio.sleep(0.5)

    async def until(self, claim: Callable[[], Awaitable[bool]], *, within: float = 120.0) -> float:
        """Wait until a check returns True; return how long it took."""
        begin = asyncio.get_running_loop().time()
        while not await claim():
            assert asyncio.get_running_loop().time() - begin < within, f"not true within {within} s"
            await asyncio.sleep(0.5)
        return asyncio.get_running_loop().time() - begin

    # Requests of the operator

    def requests(self) -> list[RecordedRequest]:
        return self.transport.script.requests()[self._seen :]

    @property
    def writes(self) -> list[str]:
        """The writes of the operator since `clear_requests`, as "METHOD path", without events and access reviews."""
        return [f"{request.method} {request.path}" for request in self.requests() if is_write(request)]

    def clear_requests(self) -> None:
        self._seen = len(self.transport.script.requests())


def is_write(asked: RecordedRequest) -> bool:
    """Report whether a request writes anything but events and access reviews."""
    return asked.method != "GET" and "/events" not in asked.path and "accessreviews" not in asked.path


def unexpected(lifecycle: PhaseMetrics) -> dict[str, float]:
    """Return the transitions that are not allowed, and how often they happened."""
    found = [sample for metric in lifecycle.unexpected.collect() for sample in metric.samples]
    return {
        f"{one.labels['before']} -> {one.labels['after']}": one.value for one in found if one.name.endswith("_total")
    }


def transitions(lifecycle: PhaseMetrics) -> Counter[str]:
    """Return all transitions, and how often they happened."""
    found = [sample for metric in lifecycle.transitions.collect() for sample in metric.samples]
    return Counter(
        {
            f"{one.labels['before']} -> {one.labels['after']}": int(one.value)
            for one in found
            if one.name.endswith("_total")
        }
    )


async def register_webhooks(env: WebAppEnvironment) -> None:
    """Register the operator's webhooks, served by this process."""
    address = Address(service="webapp-operator-webhooks", namespace="operators")
    env.server.webhook_client.serve("operators", "webapp-operator-webhooks", Webhooks(*operator.webhooks).handle_review)
    for crd in operator.crds(address):
        await env.client.create(crd)
    for configuration in configurations_for(operator.webhooks, address, name=operator.name):
        await env.client.create(configuration)


@asynccontextmanager
async def _builtin(env: WebAppEnvironment, name: str, *controllers_: Controller[Any]) -> AsyncGenerator[None]:
    manager = Manager(Client(InProcessTransport(env.server.handle)), name=name)
    manager.add(*controllers_)
    async with manager.running():
        yield


@asynccontextmanager
async def webapp_environment(*, strict: bool = True, webhooks: bool = False) -> AsyncGenerator[WebAppEnvironment]:
    """Return a cluster with the kind WebApp and, on request, with the operator's webhooks.

    With `strict` a transition that is not allowed fails the test.
    """
    env = WebAppEnvironment(EmbeddedServer(clock=_clock, seed=1))
    await env.client.create(Unstructured(NODE))
    if webhooks:
        await register_webhooks(env)
    else:
        await env.client.create(crd_for(WebApp))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(_builtin(env, "kube-controller-manager", *workload_controllers(clock=_clock)))
        node = controller_for(Pod).named("kubelet").max_concurrent_reconciles(64).build(env.kubelet)
        await stack.enter_async_context(_builtin(env, "kubelet", node))
        yield env
    if strict:
        assert unexpected(env.lifecycle) == {}
