"""The story of the demo: what is built so far, step by step on the embedded API server, each step checked.

No cluster, no socket, nothing left behind. A step that does not hold is an error that says which.
"""

from __future__ import annotations

import time
from collections import Counter

import click

from konverge.cli.sample import WebApp, WebAppSpec
from konverge.client import Client, InProcessTransport, condition
from konverge.controlplane import EmbeddedServer
from konverge.errors import ApplyConflict, Invalid, NotFound
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec
from konverge.k8s.core.v1 import Container, PodSpec, PodTemplateSpec
from konverge.k8s.meta.v1 import LabelSelector
from konverge.objects import ObjectMeta, OwnerReference
from konverge.schema import crd_for, validate
from konverge.telemetry import Exchange

__all__ = ["Story"]

_WRITES = ("create", "update", "patch", "apply", "delete")


class Story:
    """The steps, in order; each says what it shows and fails loudly when that is not so."""

    def __init__(self) -> None:
        self._writes: Counter[str] = Counter()
        self._step = 0

    async def tell(self) -> None:
        began = time.perf_counter()
        server = EmbeddedServer()
        async with Client(InProcessTransport(server.handle), observers=(self._count,)) as client:
            self._say(f"an API server in this process, up in {(time.perf_counter() - began) * 1000:.0f} ms")
            await self._install(client)
            app = await self._create(client)
            await self._refuse(client)
            await self._reconcile(client, app)
            await self._heal(client, app)
            await self._delete(client, app)
        click.echo(
            f"\nDone in {time.perf_counter() - began:.1f} s. Still being built: cache, controllers and manager (so a"
            " reconcile was\ncalled by hand here), and the stand-ins that make pods run."
        )

    async def _install(self, client: Client) -> None:
        await client.apply(crd_for(WebApp))
        await client.wait_for("crd", "webapps.example.com", condition("Established"), timeout=10)
        self._say("the CRD of the Python class WebApp is installed and Established")

    async def _create(self, client: Client) -> WebApp:
        app = WebApp(metadata=ObjectMeta(name="nginx-app"), spec=WebAppSpec(image="nginx:1.25", replicas=3))
        app = await client.create(app)
        self._check(app.metadata.generation == 1, "it has a generation")
        self._say(f"WebApp {app.key} is created: image {app.spec.image}, {app.spec.replicas} replicas")
        return app

    async def _refuse(self, client: Client) -> None:
        bad = WebApp(metadata=ObjectMeta(name="bad"), spec=WebAppSpec(image="nginx:1.25", replicas=300))
        (problem,) = validate(bad)
        try:
            await client.create(bad)
        except Invalid as refused:
            self._check(problem.path in str(refused), "konverge and the server name the same field")
            self._say(f"a bad one is refused by konverge and by the server: {refused.causes[0].message}")
        else:
            self._check(False, "300 replicas are refused")

    async def _reconcile(self, client: Client, app: WebApp) -> None:
        await reconcile(client, app)
        deployment = await client.get(Deployment, "nginx-app")
        self._check(deployment.spec.replicas == 3, "the Deployment has 3 replicas")
        self._say(f"a reconcile applies Deployment {deployment.key}, owned by the WebApp")
        before = deployment.resource_version
        await reconcile(client, await client.get(WebApp, "nginx-app"))
        after = (await client.get(Deployment, "nginx-app")).resource_version
        self._check(before == after, "nothing changed, so nothing is written")
        self._say("a second reconcile changes nothing")

    async def _heal(self, client: Client, app: WebApp) -> None:
        by_hand = client.using(field_manager="somebody")
        try:
            await by_hand.apply(deployment_for(app, replicas=1))
        except ApplyConflict as conflict:
            self._say(f"an edit by somebody else is a conflict that names owner and path: {conflict}")
        else:
            self._check(False, "an apply of somebody else conflicts")
        await by_hand.scale(Deployment, "nginx-app", 1)
        await reconcile(client, app)
        self._check(await client.get_scale(Deployment, "nginx-app") == 3, "the replicas are back")
        self._say("scaled to 1 by hand, put back to 3 by the next reconcile")

    async def _delete(self, client: Client, app: WebApp) -> None:
        await client.delete(app)
        try:
            await client.get(WebApp, "nginx-app")
        except NotFound:
            self._say(f"deleted. Writes in all: {sum(self._writes.values())}")
        else:
            self._check(False, "the WebApp is gone")

    def _count(self, exchange: Exchange) -> None:
        if exchange.verb.startswith(_WRITES):
            self._writes[exchange.verb] += 1

    def _say(self, text: str) -> None:
        self._step += 1
        click.echo(f"{self._step}. {text}")

    def _check(self, holds: bool, claim: str) -> None:
        if not holds:
            raise click.ClickException(f"step {self._step + 1}: not so: {claim}")


def deployment_for(app: WebApp, *, replicas: int | None = None) -> Deployment:
    """Give the Deployment that a WebApp asks for."""
    labels = {"app": app.name}
    owner = OwnerReference(api_version=app.api_version, kind=app.kind, name=app.name, uid=app.uid, controller=True)
    return Deployment(
        metadata=ObjectMeta(name=app.name, namespace=app.namespace, owner_references=[owner]),
        spec=DeploymentSpec(
            replicas=app.spec.replicas if replicas is None else replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels),
                spec=PodSpec(containers=[Container(name="web", image=app.spec.image)]),
            ),
        ),
    )


async def reconcile(client: Client, app: WebApp) -> None:
    """Make the world as the WebApp wants it, and write down how far it is."""
    deployment = await client.apply(deployment_for(app), force=True)
    app.status.available_replicas = deployment.status.available_replicas or 0
    await client.update_status(app)
