"""The webhooks of `webhook_examples` on a real socket, behind the embedded API server or a real one."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from konverge import Client, crd_for, load_config
from konverge.client import InProcessTransport
from konverge.errors import KonvergeError
from konverge.k8s.core.v1 import Namespace
from konverge.objects import LabelSelector, ObjectMeta, Unstructured
from konverge.testing import ControlPlane
from konverge.webhooks import (
    Address,
    AdmissionWebhook,
    CertificatePair,
    Deny,
    MutatingWebhook,
    ValidatingWebhook,
    Webhooks,
    WebhookServer,
    configurations_for,
    conversion_for,
)
from konverge_cluster import EmbeddedServer
from webhook_certificates import authority, pair_of
from webhook_examples import OldSpec, OldWebApp, WebApp, WebAppSpec, conversion

_numbers = itertools.count(1)

_PROBES = LabelSelector.parse("probe=true")
MARKERS: list[AdmissionWebhook[Any]] = [
    ValidatingWebhook(WebApp, lambda *_: Deny("ready"), name="ready", objects=_PROBES),
    MutatingWebhook(WebApp, lambda *_: None, name="ready", objects=_PROBES),
]


class WebhookSetup:
    """An API server with a new namespace, and the webhook server that it calls."""

    def __init__(self, client: Client, server: WebhookServer, address: Address, namespace: str) -> None:
        self.client = client
        self.server = server
        self.address = address
        self.namespace = namespace
        self.configurations: list[Any] = []
        self.crd: Unstructured = crd_for(WebApp, OldWebApp, conversion=conversion_for(conversion, address))

    def webapp(self, name: str = "web", *, namespace: str = "", **spec: Any) -> WebApp:
        metadata = ObjectMeta(name=name, namespace=namespace or self.namespace)
        return WebApp(metadata=metadata, spec=WebAppSpec(**{"image": "nginx:1.25", **spec}))

    async def create(self, name: str = "web", **spec: Any) -> WebApp:
        return await self.client.create(self.webapp(name, **spec))

    async def until(self, claim: Callable[[], Any]) -> None:
        """Wait until `claim` returns a true value; errors of the API count as false."""
        async with asyncio.timeout(30):
            while True:
                try:
                    if await claim():
                        return
                except KonvergeError:
                    pass
                await asyncio.sleep(0.05)

    async def install(self, hooks: Sequence[AdmissionWebhook[Any]], exclude: Sequence[str]) -> None:
        """Store the CRD and the configurations, and wait until the API server uses them."""
        await self.client.apply(self.crd, force=True)
        await self.until(self._converts)
        name = f"webapp-{next(_numbers)}"
        self.configurations = configurations_for([*hooks, *MARKERS], self.address, name=name, exclude=exclude)
        for each in self.configurations:
            await self.client.create(each)
        await self.until(self._counts)

    async def _converts(self) -> bool:
        metadata = ObjectMeta(name="probe", namespace=self.namespace)
        before = self.server.stats().handled
        spec = OldSpec(repository="x", tag="1")
        await self.client.using(dry_run=True).create(OldWebApp(metadata=metadata, spec=spec))
        return self.server.stats().handled > before

    async def _counts(self) -> bool:
        """Report whether both configurations are in use: the last webhook of each has been called."""
        before = self._asked()
        probe = self.webapp("probe")
        probe.metadata.labels["probe"] = "true"
        with suppress(KonvergeError):
            await self.client.using(dry_run=True).create(probe)
        return all(now > then for now, then in zip(self._asked(), before, strict=True))

    def _asked(self) -> list[int]:
        paths = [marker.path for marker in MARKERS]
        counted = [each for each in self.server.webhooks.stats().endpoints if each.path in paths]
        return [each.allowed + each.denied for each in counted]

    async def restart(self, pair: CertificatePair) -> None:
        """Restart with another certificate, and wait until the API server accepts it for all webhooks."""
        await self.server.stop()
        self.server.set_certificate(pair)
        await self.server.start()
        await self.until(self._accepts)

    async def _accepts(self) -> bool:
        await self.client.using(dry_run=True).create(self.webapp("probe"))
        return await self._converts()

    async def leave(self) -> None:
        for each in self.configurations:
            await self.client.delete(each, missing_ok=True)
        await self.client.delete(Namespace, self.namespace)


@asynccontextmanager
async def api_client(plane: ControlPlane | None) -> AsyncIterator[Client]:
    """A client of a real control plane, or of an embedded one of its own."""
    if plane is None:
        embedded = EmbeddedServer()
        async with Client(InProcessTransport(embedded.handle)) as client:
            yield client
        await embedded.webhook_client.close()
    else:
        async with Client.connect(load_config(kubeconfig=plane.kubeconfig)) as client:
            yield client


@asynccontextmanager
async def webhook_setup(
    client: Client, *hooks: AdmissionWebhook[Any], exclude: Sequence[str] = ()
) -> AsyncIterator[WebhookSetup]:
    """Serve these webhooks and the conversion, and configure the API server to call them."""
    signer = authority()
    server = WebhookServer(Webhooks(*hooks, *MARKERS, conversion), host="127.0.0.1", port=0)
    server.set_certificate(pair_of(signer))
    async with server:
        address = Address(url=f"https://127.0.0.1:{server.port}", ca_bundle=signer.certificate)
        made = await client.create(Namespace(metadata=ObjectMeta(generate_name="hooks-")))
        scene = WebhookSetup(client, server, address, made.name)
        try:
            await scene.install(hooks, exclude)
            yield scene
        finally:
            await scene.leave()
