"""The WebApp operator on a real control plane: with the real controllers, and the permissions that are generated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from konverge import Client, Manager, ObjectMeta, load_config
from konverge.client import exists, is_deleted, is_deployment_complete
from konverge.errors import KonvergeError
from konverge.k8s.apps.v1 import Deployment, ReplicaSet
from konverge.k8s.core.v1 import Namespace, Service
from konverge.manager import LeaderElection
from konverge.objects import AnyObject
from konverge.testing import ControlPlane
from konverge.webhooks import Address, Webhooks, WebhookServer, configurations_for
from konverge_cluster.nodes import Behavior, SimulatedNodes
from konverge_operators.protection import PROTECTED
from konverge_operators.webapp.api import Phase, WebApp
from konverge_operators.webapp.beta import WebAppV1Beta1
from konverge_operators.webapp.operator import operator
from webapp_accounts import ACCOUNT, GROUPS, HOME, generated, refusals
from webapp_points import check_points
from webapps import webapp
from webhook_certificates import authority, pair_of

pytestmark = [pytest.mark.control_plane, pytest.mark.usefixtures("control_plane")]

LIMIT = 150.0


@pytest.fixture(scope="module")
def managed_plane() -> Iterator[ControlPlane]:
    with ControlPlane(controller_manager=True) as plane:
        yield plane


@asynccontextmanager
async def installed(plane: ControlPlane) -> AsyncGenerator[Client]:
    """Install the generated manifests; this process serves the webhooks, because no pod runs."""
    signer = authority()
    server = WebhookServer(Webhooks(*operator.webhooks), host="127.0.0.1", port=0)
    server.set_certificate(pair_of(signer))
    async with server, Client.connect(load_config(kubeconfig=plane.kubeconfig)) as admin:
        address = Address(url=f"https://127.0.0.1:{server.port}", ca_bundle=signer.certificate)
        for one in (*generated("namespace", "rbac", "operator"), *operator.crds(address)):
            await admin.apply(one, force=True)
        for configuration in configurations_for(operator.webhooks, address, name=operator.name, exclude=(HOME,)):
            await admin.apply(configuration, force=True)
        yield admin


@asynccontextmanager
async def operating(plane: ControlPlane) -> AsyncGenerator[Manager]:
    """Run the operator as its service account."""
    config = load_config(kubeconfig=plane.kubeconfig_for(ACCOUNT, groups=GROUPS))
    election = LeaderElection(
        operator.name, HOME, lease_duration=120, renew_deadline=90
    )  # longer than any pause of this process
    manager = operator.manager(config, leader_election=election)
    async with manager.running():
        yield manager


async def until(claim: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a check returns True; an API error counts as False."""
    async with asyncio.timeout(LIMIT):
        while True:
            try:
                if await claim():
                    return
            except KonvergeError:
                pass
            await asyncio.sleep(0.2)


def is_in(phase: Phase) -> Callable[[AnyObject | None], bool]:
    def check(app: AnyObject | None) -> bool:
        assert app is None or isinstance(app, WebApp)
        return (
            app is not None and app.status.phase is phase and app.status.observed_generation == app.metadata.generation
        )

    return check


@pytest.mark.real_time(limit=600)
async def test_the_whole_scenario_on_a_real_cluster_with_generated_permissions_only(
    managed_plane: ControlPlane,
) -> None:
    plane = managed_plane
    async with (
        installed(plane) as admin,
        Client.connect(load_config(kubeconfig=plane.kubeconfig)) as own,
        SimulatedNodes(own, nodes=2).running() as nodes,
        operating(plane) as manager,
    ):
        nodes.program(Behavior(image="*bad*", never_ready=True))
        await admin.create(Namespace(metadata=ObjectMeta(name="shop")))
        client = admin.using(namespace="shop")
        await _run_scenario(client, plane)
        # S4: the generated Deployment is admitted in a namespace for restricted pods.
        await admin.wait_for(Deployment, operator.name, is_deployment_complete(), namespace=HOME, timeout=LIMIT)
        assert refusals(manager) == []
        await _delete_namespace(client)
        assert manager.stats()[0].queue.retries == 0


@pytest.mark.real_time(limit=600)
async def test_every_point_holds_on_a_real_cluster_with_generated_permissions_only(
    managed_plane: ControlPlane,
) -> None:
    async with (
        installed(managed_plane) as admin,
        Client.connect(load_config(kubeconfig=managed_plane.kubeconfig)) as own,
        SimulatedNodes(own, nodes=2).running() as nodes,
        operating(managed_plane) as manager,
    ):
        nodes.program(Behavior(image="*bad*", never_ready=True))
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        await admin.create(Namespace(metadata=ObjectMeta(name="points", labels=labels)))
        await check_points(admin.using(namespace="points"))
        assert refusals(manager) == []


async def _run_scenario(client: Client, plane: ControlPlane) -> None:
    app = webapp(replicas=3, rollback=True, ingress={"host": "a.example.com"})
    app.metadata.namespace = "shop"

    async def refused() -> bool:
        bad = webapp(image="nginx")
        bad.metadata.namespace = "shop"
        try:
            await client.using(dry_run=True).create(bad)
        except KonvergeError as error:
            return "the image needs a tag" in str(error)
        return False

    await until(refused)
    await client.create(app)
    await asyncio.to_thread(plane.kubectl, "wait", "wa/web", "--for=condition=Ready", "-n", "shop", "--timeout=100s")
    app = await client.get(WebApp, "web")
    assert (app.status.phase, app.status.ready_replicas) == (Phase.READY, 3)
    assert (await client.get(WebAppV1Beta1, "web")).spec.size == 3

    await asyncio.to_thread(plane.kubectl, "scale", "wa", "web", "--replicas=5", "-n", "shop")
    await client.wait_for(Deployment, "web", lambda one: one is not None and _size(one) == 5, timeout=LIMIT)
    await client.wait_for(WebApp, "web", is_in(Phase.READY), timeout=LIMIT)
    await client.delete(Deployment, "web")
    await client.wait_for(Deployment, "web", exists(), timeout=LIMIT)
    await client.wait_for(WebApp, "web", is_in(Phase.READY), timeout=LIMIT)

    await client.patch(WebApp, "web", {"spec": {"image": "nginx:bad", "progressDeadlineSeconds": 5}})
    rolled = await client.wait_for(
        WebApp, "web", lambda one: isinstance(one, WebApp) and one.status.failed_image == "nginx:bad", timeout=LIMIT
    )
    assert rolled is not None
    good = {"image": "nginx:1.27", "progressDeadlineSeconds": 600, "ingress": None}
    await client.patch(WebApp, "web", {"spec": good})
    await client.wait_for(WebApp, "web", is_in(Phase.READY), timeout=LIMIT)

    await client.patch(WebApp, "web", {"spec": {"autoscaling": {"minReplicas": 2, "maxReplicas": 8}}})
    await client.wait_for("horizontalpodautoscalers.autoscaling", "web", exists(), timeout=LIMIT)
    await client.patch(WebApp, "web", {"spec": {"autoscaling": None}})
    await client.wait_for("horizontalpodautoscalers.autoscaling", "web", is_deleted(), timeout=LIMIT)
    assert _size(await client.get(Deployment, "web")) == 5

    await client.delete(WebApp, "web")
    await client.wait_for(WebApp, "web", is_deleted(), timeout=LIMIT)
    for kind in (Deployment, Service):
        await client.wait_for(kind, "web", is_deleted(), timeout=LIMIT)

    async def collected() -> bool:
        return not await client.list(ReplicaSet, namespace="shop")

    await until(collected)


async def _delete_namespace(client: Client) -> None:
    """A protected WebApp cannot be deleted, except with its namespace."""
    app = webapp("kept", annotations={PROTECTED: "true"})
    app.metadata.namespace = "shop"
    await client.create(app)
    await client.wait_for(WebApp, "kept", is_in(Phase.READY), timeout=LIMIT)
    with pytest.raises(KonvergeError, match="the WebApp is protected"):
        await client.delete(WebApp, "kept")
    await client.delete(Namespace, "shop")
    await client.wait_for(Namespace, "shop", is_deleted(), timeout=LIMIT)


def _size(deployment: AnyObject) -> int | None:
    assert isinstance(deployment, Deployment)
    return deployment.spec.replicas
