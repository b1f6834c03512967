"""The stages of a process that serve webhooks: the certificate, and the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from konverge.client import Client
from konverge.errors import KonvergeError
from konverge.manager.background import background
from konverge.objects import Key

if TYPE_CHECKING:
    from konverge.webhooks import BundleTarget, CertificateSource, ManagedCertificates, Webhooks, WebhookServer

__all__ = ["WebhookServing", "WebhookStages"]

_log = logging.getLogger("konverge.manager")

_RETRY_PERIOD = 2.0


@dataclass(frozen=True, kw_only=True)
class WebhookServing:
    """Where webhooks are served, and with which certificate.

    With `certificate` and `key`, these files are used and reloaded when they change: cert-manager, or a mounted Secret.
    Without them, a certificate authority of our own is stored in the Secret `secret`, renewed by the leader, and
    injected into `targets`. `hosts` are the names in the certificate; the default is the names of the Service
    `service`.
    """

    hooks: Webhooks
    host: str | None = None
    port: int = 9443
    service: Key | None = None
    secret: Key | None = None
    hosts: tuple[str, ...] = ()
    targets: tuple[BundleTarget, ...] = ()
    certificate: str | Path = ""
    key: str | Path = ""

    def __post_init__(self) -> None:
        if not self.certificate and (self.secret is None or not (self.hosts or self.service)):
            raise ValueError(
                "webhooks need a certificate: pass files (certificate and key), or a secret and a service to manage one"
            )


class WebhookStages:
    """Two stages of a process: a certificate, then the server that uses it.

    Promises: the first stage waits until there is a valid pair, however long that takes; meanwhile `not_ready_reason`
    says why it waits. Every replica reloads the certificate when it changes; the leader renews it.
    """

    def __init__(self, serving: WebhookServing, stopping: asyncio.Event) -> None:
        self.serving = serving
        self.not_ready_reason = "not started"
        self.server: WebhookServer | None = None
        self._stopping = stopping
        self._source: CertificateSource | None = None
        self._managed: ManagedCertificates | None = None

    @asynccontextmanager
    async def certificates(self, client: Client, leading: asyncio.Event | None) -> AsyncGenerator[None]:
        """Wait for a certificate, and renew it while this process leads."""
        # Imported here, so that only processes with webhooks load the HTTP library and cryptography.
        from konverge.webhooks import CertificateFiles, ManagedCertificates, WebhookServer, service_hosts

        serving = self.serving
        self.server = WebhookServer(serving.hooks, host=serving.host, port=serving.port)
        if serving.certificate:
            self._source = CertificateFiles(serving.certificate, serving.key)
            load: Callable[[], Any] = self._source.load
        else:
            assert serving.secret is not None, "checked in __post_init__"
            service = serving.service or serving.secret
            hosts = serving.hosts or service_hosts(service.name, service.namespace)
            self._managed = ManagedCertificates(client, serving.secret, hosts=hosts, targets=serving.targets)
            self._source = self._managed
            load = self._managed.ensure
        if await self._wait_for_certificate(load):
            async with background(*([self._renew(self._managed, leading)] if self._managed is not None else [])):
                yield
        else:
            yield

    @asynccontextmanager
    async def serve(self) -> AsyncGenerator[None]:
        """Serve, and reload the certificate when it changes."""
        from konverge.webhooks import reload_certificates

        if self.server is None or self.server.pair is None or self._source is None:
            yield  # stopped before there was a certificate
            return
        async with self.server, background(reload_certificates(self._source, self.server.set_certificate)):
            yield

    async def _wait_for_certificate(self, load: Callable[[], Any]) -> bool:
        """Retry until there is a certificate; return False when the process stops first."""
        assert self.server is not None
        while not self._stopping.is_set():
            try:
                self.server.set_certificate(await load())
            except (KonvergeError, ValueError) as error:
                self.not_ready_reason = f"no certificate: {error}"
                _log.warning("waiting for webhook certificate", extra={"reason": str(error)})
            else:
                self.not_ready_reason = ""
                return True
            with suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_PERIOD):
                    await self._stopping.wait()
        return False

    async def _renew(self, managed: ManagedCertificates, leading: asyncio.Event | None) -> None:
        if leading is not None:
            await leading.wait()
        await managed.run()
