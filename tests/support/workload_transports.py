"""A transport between workload controllers and the embedded server that records writes."""

from __future__ import annotations

from konverge.client import InProcessTransport
from konverge.wire.messages import Request, Response
from workload_clusters import EmbeddedWorkloadCluster

__all__ = ["CountingTransport"]


class CountingTransport:
    """A transport that records writes."""

    def __init__(self, cluster: EmbeddedWorkloadCluster) -> None:
        self._inner = InProcessTransport(cluster.server.handle)
        self.writes: list[str] = []

    async def send(self, request: Request) -> Response:
        if request.method != "GET" and "/events" not in request.path and "accessreviews" not in request.path:
            self.writes.append(f"{request.method} {request.path}")
        return await self._inner.send(request)

    async def close(self) -> None:
        await self._inner.close()
