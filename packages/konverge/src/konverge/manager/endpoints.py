"""Endpoints: where a process serves probes and metrics, and to whom."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from konverge.client import Client
from konverge.listener import is_loopback

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from konverge.manager.health import Health
    from konverge.manager.probes import ProbeServer, ServingCertificate, Why

__all__ = ["Endpoints"]


@dataclass(frozen=True)
class Endpoints:
    """The address of metrics, debug and probes, as "host:port" or ":8081", and how it is protected.

    With `protected`, the server speaks HTTPS, and only users whom the API server allows to get /metrics and /debug can
    read them (TokenReview and SubjectAccessReview). That is the default except for loopback addresses. `certificate`
    and `key` are files; without them the certificate is self-signed. Probes are never protected; `probes` is an
    additional address that serves them, and nothing else, in plain HTTP.
    """

    address: str
    protected: bool | None = None
    certificate: str | Path = ""
    key: str | Path = ""
    probes: str = ""

    @property
    def is_protected(self) -> bool:
        """Report whether metrics and debug are protected."""
        return not is_loopback(self.address.rpartition(":")[0]) if self.protected is None else self.protected

    def servers(
        self,
        health: Health,
        *,
        registry: CollectorRegistry,
        why: Why,
        connect: Callable[[], AbstractAsyncContextManager[Client]],
    ) -> list[ProbeServer]:
        """Create the servers; they do not listen yet."""
        # Imported here, so that only processes with probes load the HTTP library.
        from konverge.manager.metrics_access import AccessReviews
        from konverge.manager.probes import ProbeServer

        access = AccessReviews(connect) if self.is_protected else None
        main = ProbeServer(self.address, health, registry=registry, why=why, access=access, tls=self._certificate())
        return [main, *([ProbeServer(self.probes, health)] if self.probes else [])]

    def _certificate(self) -> ServingCertificate | None:
        from konverge.manager.self_signed import SelfSignedCertificate
        from konverge.manager.tls_files import TlsFiles

        if self.certificate:
            return TlsFiles(self.certificate, self.key)
        return SelfSignedCertificate("localhost") if self.is_protected else None
