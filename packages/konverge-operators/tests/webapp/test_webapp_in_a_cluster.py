"""The WebApp operator in an embedded cluster: three replicas, namespace deletion, garbage collection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from konverge import Client, Manager, ObjectMeta, crd_for
from konverge.client import ClientOptions, InProcessTransport
from konverge.k8s.apps.v1 import Deployment, ReplicaSet
from konverge.k8s.core.v1 import Namespace, Pod
from konverge.manager import LeaderElection
from konverge.testing import settle
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import any_request, lists, status_response
from konverge.webhooks import Address, Webhooks, configurations_for
from konverge.workflow import PhaseMetrics
from konverge_cluster import EmbeddedCluster
from konverge_cluster.nodes import Behavior
from konverge_operators.webapp.api import Phase, WebApp
from konverge_operators.webapp.operator import operator
from konverge_operators.webapp.reconciler import controllers
from webapp_accounts import operating_in, refusals
from webapp_points import check_points
from webapps import unexpected, webapp

START = 1_800_000_000.0


def clock() -> float:
    return START + asyncio.get_running_loop().time()


def now() -> float:
    return asyncio.get_running_loop().time()


async def until(claim: Callable[[], Awaitable[bool]], *, within: float = 120.0) -> float:
    begin = now()
    while not await claim():
        assert now() - begin < within, f"not true within {within} s"
        await asyncio.sleep(0.5)
    return now() - begin


class Replica:
    """One replica of the operator, with its own transport that can be cut."""

    def __init__(self, cluster: EmbeddedCluster, number: int) -> None:
        self.transport = FaultTransport(InProcessTransport(cluster.server.handle))
        self.lifecycle = PhaseMetrics("webapp")
        election = LeaderElection("webapp-operator", "default", identity=f"replica-{number}", clock=now)
        client = Client(self.transport, options=ClientOptions(namespace="default"))
        self.manager = Manager(client, name="webapp-operator", leader_election=election)
        self.manager.add(*controllers(self.lifecycle))
        self.is_leader = False
        self.manager.on_leader_change(self._on_leader_change)

    def _on_leader_change(self, lease: str, leads: bool) -> None:
        self.is_leader = leads


@asynccontextmanager
async def cluster() -> AsyncGenerator[EmbeddedCluster]:
    async with EmbeddedCluster(nodes=2, clock=clock, seed=1, heartbeat=0.0) as found:
        await found.client().create(crd_for(WebApp))
        yield found


async def is_ready(client: Client, name: str = "web") -> bool:
    app = await client.get(WebApp, name)
    return app.status.phase is Phase.READY and app.status.observed_generation == app.metadata.generation


async def test_a_standby_becomes_leader_within_the_lease_duration() -> None:
    async with cluster() as world, AsyncExitStack() as stack:
        client = world.client()
        replicas = [Replica(world, number) for number in range(3)]
        for one in replicas:
            await stack.enter_async_context(one.manager.running())
        await client.create(webapp())
        await until(lambda: is_ready(client))
        (leader,) = [one for one in replicas if one.is_leader]
        standbys = [one for one in replicas if one is not leader]

        cut = now()
        leader.transport.script.add(any_request, status_response(503))  # from here on nothing of it reaches the server
        leader.transport.reset_streams()
        await client.scale(WebApp, "web", 4)

        async def is_scaled() -> bool:
            return (await client.get(Deployment, "web")).spec.replicas == 4

        took = await until(is_scaled)
        assert took <= 15 + 2 + 1 + 0.5  # the lease, a retry, a second, and how often this looks
        (successor,) = [one for one in standbys if one.is_leader]
        assert not successor.transport.script.requests(lists("webapps"), since=cut)  # it was warm
        await until(lambda: is_ready(client))
        assert [unexpected(one.lifecycle) for one in replicas] == [{}, {}, {}]


async def test_t30_a_namespace_with_fifty_applications_is_deleted() -> None:
    async with cluster() as world, AsyncExitStack() as stack:
        client = world.client()
        address = Address(service="webapp-operator-webhooks", namespace="operators")
        world.server.webhook_client.serve(
            "operators", "webapp-operator-webhooks", Webhooks(*operator.webhooks).handle_review
        )
        for configuration in configurations_for(operator.webhooks, address, name=operator.name):
            await client.create(configuration)
        manager = Manager(world.client(), name="webapp-operator")
        manager.add(*controllers(PhaseMetrics("webapp")))
        await stack.enter_async_context(manager.running())
        await client.create(Namespace(metadata=ObjectMeta(name="shop")))
        await settle()
        for number in range(50):
            app = webapp(f"web-{number}", replicas=0)
            app.metadata.namespace = "shop"
            await client.create(app)
        await asyncio.sleep(5)
        assert len(await client.list(Deployment, namespace="shop")) == 50

        await client.delete(Namespace, "shop")

        async def is_gone() -> bool:
            return all(one.name != "shop" for one in await client.list(Namespace))

        await until(is_gone, within=300)
        assert manager.stats()[0].queue.retries == 0
        assert await client.list(WebApp, namespace="shop") == []
        assert await client.list(Deployment, namespace="shop") == []


async def test_the_children_of_an_application_are_garbage_collected() -> None:
    async with cluster() as world:
        client = world.client()
        manager = Manager(world.client(), name="webapp-operator")
        manager.add(*controllers(PhaseMetrics("webapp")))
        async with manager.running():
            await client.create(webapp(replicas=3))
            await until(lambda: is_ready(client))
            assert len(await client.list(Pod, namespace="default")) == 3
            await client.delete(WebApp, "web")

            async def is_clean() -> bool:
                left = [await client.list(kind, namespace="default") for kind in (WebApp, Deployment, ReplicaSet, Pod)]
                return not any(left)

            await until(is_clean)


async def test_every_point_holds_in_an_embedded_cluster_with_generated_permissions_only() -> None:
    async with EmbeddedCluster(nodes=2, clock=clock, seed=1, heartbeat=0.0) as world, operating_in(world) as manager:
        world.program(Behavior(image="*bad*", never_ready=True))
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        await world.client().create(Namespace(metadata=ObjectMeta(name="points", labels=labels)))
        await check_points(world.client("points"))
        assert refusals(manager) == []
