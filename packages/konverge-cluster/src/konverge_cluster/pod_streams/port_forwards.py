"""Connections to the ports of a pod: `pods/portforward`, as frames of SPDY/3.1 inside of a WebSocket.

A client opens two streams for each connection, with the same `requestid`: one for errors, then one for the data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from konverge.errors import DecodeError, TransportError
from konverge.wire.messages import WebSocket
from konverge_cluster.api import status_errors
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.responses import Response, upgrade_response
from konverge_cluster.pod_streams.process_pods import SimulatedPod, find_process_pod
from konverge_cluster.pod_streams.requests import check_create, check_node, choose_protocol, find_pod
from konverge_cluster.pod_streams.spdy_frames import (
    FrameReader,
    FrameWriter,
    NewStream,
    Ping,
    StreamData,
    StreamReset,
)
from konverge_cluster.processes.runtime import Processes

__all__ = ["PORT_FORWARD", "PortForwards", "port_forward_handler"]

PORT_FORWARD: Final = "SPDY/3.1+portforward.k8s.io"
_READ_BYTES: Final = 32768
_QUEUED: Final = 16


def port_forward_handler(runtime: Processes | None) -> Callable[[Cluster, Call], Awaitable[Response]]:
    """Return the handler of `pods/portforward`."""

    async def handle(cluster: Cluster, call: Call) -> Response:
        check_create(cluster, call)
        pod = find_pod(cluster, call)
        if not pod["spec"].get("nodeName"):
            raise status_errors.bad_request(f"pod {call.name} does not have a host assigned")
        check_node(cluster, pod)
        try:
            container = pod["spec"]["containers"][0]["name"]
            running = find_process_pod(runtime, pod, container, "no port can be forwarded to it")
        except SimulatedPod as simulated:
            raise status_errors.bad_request(str(simulated)) from None
        if running is None:
            raise status_errors.bad_request(f"pod {call.name} has not started")
        name = f"{call.name}, uid {running.uid}"
        protocol = choose_protocol(call, (PORT_FORWARD,))
        return upgrade_response(protocol, PortForwards(running.addresses.pod_ip, name).serve)

    return handle


class PortForwards:
    """The connections of one client to the ports at an address."""

    def __init__(self, address: str, pod: str) -> None:
        self._address = address
        self._pod = pod
        self._frames = FrameWriter()
        self._errors: dict[str, int] = {}
        self._connections: dict[int, tuple[asyncio.Queue[bytes], asyncio.Task[None]]] = {}

    async def serve(self, websocket: WebSocket) -> None:
        """Serve a client until it disconnects, or sends what is not SPDY/3.1."""
        try:
            with suppress(TransportError, DecodeError):
                reader = FrameReader()
                while (message := await websocket.receive()) is not None:
                    for frame in reader.feed(message):
                        await self._handle(frame, websocket)
        finally:
            tasks = [task for _, task in self._connections.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _handle(self, frame: NewStream | StreamData | StreamReset | Ping, websocket: WebSocket) -> None:
        if isinstance(frame, NewStream):
            await self._open(frame, websocket)
        elif isinstance(frame, Ping):
            await websocket.send(self._frames.answer_ping(frame))
        elif frame.stream in self._connections:
            received, task = self._connections[frame.stream]
            if isinstance(frame, StreamReset):
                task.cancel()
                return
            if frame.content:
                await received.put(frame.content)  # a pod that does not read holds this client up
            if frame.last:
                await received.put(b"")

    async def _open(self, opened: NewStream, websocket: WebSocket) -> None:
        kind, request, port = (opened.headers.get(name, "") for name in ("streamtype", "requestid", "port"))
        if kind == "error":
            self._errors[request] = opened.stream
        elif kind != "data" or request not in self._errors or not port.isdecimal():
            await websocket.send(self._frames.reset(opened.stream))
            return
        await websocket.send(self._frames.reply(opened.stream))
        if kind == "data":
            received = asyncio.Queue[bytes](_QUEUED)
            connection = self._connect(opened.stream, self._errors.pop(request), int(port), received, websocket)
            self._connections[opened.stream] = received, asyncio.ensure_future(connection)

    async def _connect(
        self, stream: int, errors: int, port: int, received: asyncio.Queue[bytes], websocket: WebSocket
    ) -> None:
        """Forward one connection until the pod ends it, then end both of its streams."""
        problem = ""
        try:
            await self._forward(stream, port, received, websocket)
        except OSError as error:
            problem = f"error forwarding port {port} to pod {self._pod}: {error}"
        finally:
            del self._connections[stream]
        with suppress(TransportError):
            await websocket.send(self._frames.data(errors, problem.encode(), last=True))
            await websocket.send(self._frames.data(stream, b"", last=True))

    async def _forward(self, stream: int, port: int, received: asyncio.Queue[bytes], websocket: WebSocket) -> None:
        reader, writer = await asyncio.open_connection(self._address, port)
        sending = asyncio.ensure_future(_send(received, writer))
        try:
            with suppress(TransportError):
                while content := await reader.read(_READ_BYTES):
                    await websocket.send(self._frames.data(stream, content))
        finally:
            sending.cancel()
            writer.transport.abort()
            await asyncio.gather(sending, return_exceptions=True)


async def _send(received: asyncio.Queue[bytes], writer: asyncio.StreamWriter) -> None:
    """Send what the client sends to the pod; b"" is its end. What a pod that has closed does not read is dropped."""
    while True:
        content = await received.get()
        with suppress(OSError):
            if content:
                writer.write(content)
                await writer.drain()
            elif writer.can_write_eof():
                writer.write_eof()
