"""Transports between workload controllers and the embedded server that count writes, or fail."""

from __future__ import annotations

from random import Random

from konverge.client import InProcessTransport
from konverge.errors import TransportError
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import status_response
from konverge.wire.messages import BufferedResponse, Request, Response
from workload_clusters import EmbeddedWorkloadCluster

__all__ = ["CountingTransport", "UnreliableTransport"]

SHARE = 0.25


class CountingTransport:
    """A transport that records writes, and rejects all of them after a number of writes."""

    def __init__(self, cluster: EmbeddedWorkloadCluster, max_writes: int = 10**9) -> None:
        self._inner = InProcessTransport(cluster.server.handle)
        self._most = max_writes
        self.writes: list[str] = []

    async def send(self, request: Request) -> Response:
        if request.method != "GET" and "/events" not in request.path and "accessreviews" not in request.path:
            if len(self.writes) >= self._most:
                raise TransportError("cut", sent=False)
            self.writes.append(f"{request.method} {request.path}")
        return await self._inner.send(request)

    async def close(self) -> None:
        await self._inner.close()


class UnreliableTransport:
    """A transport on which a quarter of the requests fail, until `faulty` is False."""

    def __init__(self, cluster: EmbeddedWorkloadCluster, seed: int) -> None:
        self._inner = FaultTransport(InProcessTransport(cluster.server.handle))
        self._random = Random(seed)
        self.faulty = True

    async def send(self, request: Request) -> Response:
        if not self.faulty or self._random.random() > SHARE:
            return await self._inner.send(request)
        fault_type = self._random.choice(["refused", "lost", "busy", "broken", "conflict", "cut"])
        if fault_type == "refused":
            raise TransportError("refused", sent=False)
        if fault_type == "cut":
            self._inner.reset_streams()
        if fault_type == "lost" and not request.stream:
            await (await self._inner.send(request)).read()
            raise TransportError("the response was lost")
        codes = {"busy": (429, "TooManyRequests"), "broken": (500, "InternalError"), "conflict": (409, "Conflict")}
        if fault_type in codes and request.method != "GET":
            code, reason = codes[fault_type]
            fault = status_response(code, reason=reason)
            return BufferedResponse(code, fault.body, fault.headers)
        return await self._inner.send(request)

    async def close(self) -> None:
        await self._inner.close()
