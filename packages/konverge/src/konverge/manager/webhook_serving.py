"""The part of a process that answers webhooks: its certificate, and the server."""

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

__all__ = ["WebhookParts", "WebhookServing"]

_log = logging.getLogger("konverge.manager")

_TRY_AGAIN = 2.0


@dataclass(frozen=True, kw_only=True)
class WebhookServing:
    """Where webhooks are served, and with which certificate.

    With `certificate` and `key` these files are followed: cert-manager, or a mounted Secret. Without, an authority of
    our own is kept in the Secret `secret`, renewed by the leader, and injected into `targets`; `hosts` is what the
    certificate is for, the names of the Service `service` unless it is given.
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
                "webhooks need a certificate: give files (certificate and key), or a secret and a service to keep one"
            )


class WebhookParts:
    """Two stages of a process: a certificate, then the server that shows it.

    Promises: the first does not end before a valid pair is on hand, however long that takes, and says why it waits;
    every replica follows the certificate, the leader renews it.
    """

    def __init__(self, serving: WebhookServing, stopping: asyncio.Event) -> None:
        self.serving = serving
        self.trouble = "not started"
        self.server: WebhookServer | None = None
        self._stopping = stopping
        self._source: CertificateSource | None = None
        self._managed: ManagedCertificates | None = None

    @asynccontextmanager
    async def certificates(self, client: Client, leading: asyncio.Event | None) -> AsyncGenerator[None]:
        """Get hold of a certificate, and look after it."""
        # Loaded here, so that only who serves webhooks pays for the HTTP library and for cryptography.
        from konverge.webhooks import CertificateFiles, ManagedCertificates, WebhookServer, service_hosts

        serving = self.serving
        self.server = WebhookServer(serving.hooks, host=serving.host, port=serving.port)
        if serving.certificate:
            self._source = CertificateFiles(serving.certificate, serving.key)
            first: Callable[[], Any] = self._source.load
        else:
            assert serving.secret is not None, "checked when it was made"
            service = serving.service or serving.secret
            hosts = serving.hosts or service_hosts(service.name, service.namespace)
            self._managed = ManagedCertificates(client, serving.secret, hosts=hosts, targets=serving.targets)
            self._source = self._managed
            first = self._managed.ensure
        if await self._patiently(first):
            async with background(*([self._renew(self._managed, leading)] if self._managed is not None else [])):
                yield
        else:
            yield

    @asynccontextmanager
    async def serve(self) -> AsyncGenerator[None]:
        """Serve, and follow the certificate."""
        from konverge.webhooks import follow

        if self.server is None or self.server.pair is None or self._source is None:
            yield  # stopped before there was a certificate
            return
        async with self.server, background(follow(self._source, self.server.swap)):
            yield

    async def _patiently(self, first: Callable[[], Any]) -> bool:
        """Try until there is a certificate, or until told to stop."""
        assert self.server is not None
        while not self._stopping.is_set():
            try:
                self.server.swap(await first())
            except (KonvergeError, ValueError) as error:
                self.trouble = f"no certificate: {error}"
                _log.warning("Webhooks wait for a certificate: %s", error)
            else:
                self.trouble = ""
                return True
            with suppress(TimeoutError):
                async with asyncio.timeout(_TRY_AGAIN):
                    await self._stopping.wait()
        return False

    async def _renew(self, managed: ManagedCertificates, leading: asyncio.Event | None) -> None:
        if leading is not None:
            await leading.wait()
        await managed.run()
