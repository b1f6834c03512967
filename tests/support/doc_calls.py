"""Call what documentation pages define for readers to call: with an embedded server, a cluster, a sample object."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from prometheus_client import CollectorRegistry

from konverge import Client, Controller, CustomResource, ObjectMeta, crd_for
from konverge.cache import Cache
from konverge.client import InProcessTransport
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec
from konverge.k8s.core.v1 import Container, Namespace, Pod, PodSpec, PodTemplateSpec, Secret
from konverge.k8s.meta.v1 import LabelSelector
from konverge.objects import Unstructured
from konverge.testing import run_in_virtual_time, settle
from konverge.workflow import Component
from konverge_cluster import EmbeddedServer
from konverge_cluster.testing.clusters import TestCluster, virtual_clock

__all__ = ["CALLS"]

Names = dict[str, Any]


def deployment(namespace: str = "default") -> Deployment:
    labels = {"app": "web"}
    pod = PodSpec(containers=[Container(name="web", image="nginx:1.25")])
    return Deployment(
        metadata=ObjectMeta(name="web", namespace=namespace),
        spec=DeploymentSpec(
            replicas=1,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod),
        ),
    )


async def operate(obj: CustomResource[Any, Any], *controllers: Controller[Any]) -> None:
    """Create an object on a cluster with these controllers, let it settle, and delete it."""
    async with TestCluster(clock=virtual_clock) as cluster:
        client = await cluster.install(crd_for(type(obj)))
        async with cluster.operator(*controllers):
            created = await client.create(obj)
            await cluster.settle()
            await client.delete(created)
            await cluster.settle()


@asynccontextmanager
async def kubeconfig_server() -> AsyncGenerator[EmbeddedServer]:
    """Serve on a port, with KUBECONFIG set."""
    path = "served.kubeconfig"
    async with EmbeddedServer() as server:
        server.write_kubeconfig(path)
        before = os.environ.get("KUBECONFIG")
        os.environ["KUBECONFIG"] = path
        try:
            yield server
        finally:
            del os.environ["KUBECONFIG"]
            if before is not None:
                os.environ["KUBECONFIG"] = before


def call_readme(names: Names) -> None:
    greeting = names["Greeting"](metadata=ObjectMeta(name="world"), spec=names["GreetingSpec"]())
    run_in_virtual_time(operate(greeting, *names["operator"].controllers))


def call_package_readme(names: Names) -> None:
    greeting = names["Greeting"](metadata=ObjectMeta(name="hello"), spec=names["GreetingSpec"](text="hello"))
    run_in_virtual_time(operate(greeting, *names["manager"].controllers))


def call_cache(names: Names) -> None:
    async def observe() -> None:
        client = Client(InProcessTransport(EmbeddedServer().handle))
        async with Cache(client.collection, server=client) as cache:
            observing = asyncio.get_running_loop().create_task(names["observe"](cache))
            await settle()
            pod = Pod(
                metadata=ObjectMeta(name="web", labels={"app.kubernetes.io/managed-by": "shop"}),
                spec=PodSpec(containers=[Container(name="web", image="nginx:1.25")]),
            )
            await client.create(pod)
            await settle()
            observing.cancel()
            with suppress(asyncio.CancelledError):
                await observing
        async with Cache(client.collection, server=client) as cache:
            cache.declare(Pod, names["of_the_shop"])
            await cache.wait_for_sync(timeout=60)

    run_in_virtual_time(observe())


def call_client(names: Names) -> None:
    async def connect() -> None:
        async with kubeconfig_server(), Client.connect() as client:
            await client.create(Namespace(metadata=ObjectMeta(name="shop")))
            await client.create(deployment("shop"))
            await names["main"]()
            assert (await client.get(Deployment, "web", namespace="shop")).spec.replicas == 5
            await names["example"](client, deployment())
            async with names["instrumented"](CollectorRegistry()) as observed:
                await observed.list(Deployment)

    asyncio.run(connect())


def call_controllers(names: Names) -> None:
    from konverge import controller_for

    spec = names["GreetingSpec"](text="hello")
    external = controller_for(names["Greeting"]).build(names["External"]())
    for controller in (names["simple"], names["accounts"], external):
        run_in_virtual_time(operate(names["Greeting"](metadata=ObjectMeta(name="hello"), spec=spec), controller))
    for controller in (names["letters"], names["short"]):
        run_in_virtual_time(_sign_letter(names, controller))
    run_in_virtual_time(_run_orders(names))


async def _run_orders(names: Names) -> None:
    """Run the operator with a runnable and a shared session."""
    server = EmbeddedServer()
    client = Client(InProcessTransport(server.handle))
    await client.create(crd_for(names["Order"]))
    manager = names["orders_operator"].manager(Client(InProcessTransport(server.handle)))
    async with manager.running():
        await client.create(names["Order"](metadata=ObjectMeta(name="first"), spec=names["OrderSpec"]()))
        await asyncio.sleep(120)
    assert (await client.get(names["Order"], "first")).status.state == "shipped"


async def _sign_letter(names: Names, controller: Controller[Any]) -> None:
    """Change the Secret that a letter refers to."""
    async with TestCluster(clock=virtual_clock) as cluster:
        client = await cluster.install(crd_for(names["Letter"]))
        async with cluster.operator(controller):
            spec = names["LetterSpec"](text="hello", signature="mine")
            await client.create(names["Letter"](metadata=ObjectMeta(name="first"), spec=spec))
            await cluster.settle()
            await client.create(Secret(metadata=ObjectMeta(name="mine"), data={"text": b"me"}))
            await cluster.settle()


def call_embedded(names: Names) -> None:
    asyncio.run(names["in_process"]())
    asyncio.run(names["on_a_port"]())
    asyncio.run(names["a_deployment_becomes_ready"](deployment()))
    asyncio.run(names["who_am_i"]())


def call_process_nodes(names: Names) -> None:
    spec = {"containers": [{"name": "web", "image": "web:1"}], "automountServiceAccountToken": False}
    metadata = {"name": "web", "namespace": "default"}
    pod = Unstructured({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    address = asyncio.run(names["a_pod_runs"](pod))
    assert address.startswith("127."), address


def call_testing(names: Names) -> None:
    async def test_on_a_cluster() -> None:
        async with TestCluster(clock=virtual_clock) as cluster:
            await names["test_a_greeting_becomes_a_config_map"](cluster)

    run_in_virtual_time(test_on_a_cluster())
    names["test_greetings_under_faults"]()
    run_in_virtual_time(names["test_an_hour_passes"]())


def call_webhooks(names: Names) -> None:
    async def serve() -> None:
        leading = asyncio.Event()
        leading.set()
        async with Client(InProcessTransport(EmbeddedServer().handle)) as client:
            await client.create(Namespace(metadata=ObjectMeta(name="operators")))
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await names["serve"](client, leading=leading, port=0)

    asyncio.run(serve())


def call_workflow(names: Names) -> None:
    shop = names["Shop"].new("web", names["ShopSpec"](image="app:1"))
    run_in_virtual_time(operate(shop, *names["operator"].controllers))
    names["test_phases"]()
    shops = replace(
        names["shops"],
        components=(Component("backend", names["configured_backend"], kinds=(Deployment,)),),
        configuration=names["settings"],
    )
    reconciler = type("Configured", (names["ShopReconciler"],), {"workflow": shops})
    run_in_virtual_time(operate(shop, shops.builder().build(reconciler())))


CALLS: dict[str, Callable[[Names], None]] = {
    "README.md": call_readme,
    "docs/cache.md": call_cache,
    "docs/client.md": call_client,
    "docs/controllers.md": call_controllers,
    "docs/embedded.md": call_embedded,
    "docs/process-nodes.md": call_process_nodes,
    "docs/testing.md": call_testing,
    "docs/webhooks.md": call_webhooks,
    "docs/workflow.md": call_workflow,
    "packages/konverge/README.md": call_package_readme,
}
"""What to call after the blocks of a page; pages that call everything themselves are not here."""
