"""Endpoints: where a process serves probes and metrics, and to whom."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from konverge.client import Client
from konverge.manager.health import Health

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from konverge.manager.probes import ProbeServer, Why

__all__ = ["Endpoints"]


@dataclass(frozen=True)
class Endpoints:
    """An address, as "host:port" or ":8081", and how it is protected.

    With `protected`, only users whom the API server allows to get /metrics and /debug can read them (TokenReview and
    SubjectAccessReview). `certificate` and `key` are files; with them the server speaks HTTPS.
    """

    address: str
    protected: bool = False
    certificate: str | Path = ""
    key: str | Path = ""

    def server(
        self,
        health: Health,
        *,
        registry: CollectorRegistry,
        why: Why,
        connect: Callable[[], AbstractAsyncContextManager[Client]],
    ) -> ProbeServer:
        """Create the server; it does not listen yet."""
        # Imported here, so that only processes with probes load the HTTP library.
        from konverge.manager.metrics_access import AccessReviews
        from konverge.manager.probes import ProbeServer
        from konverge.manager.tls_files import TlsFiles

        return ProbeServer(
            self.address,
            health,
            registry=registry,
            why=why,
            access=AccessReviews(connect) if self.protected else None,
            tls=TlsFiles(self.certificate, self.key) if self.certificate else None,
        )
