"""Commands in a container and its own streams: `pods/exec` and `pods/attach`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeAlias

from konverge.wire.channels import Channel, pack_message
from konverge.wire.messages import WebSocket
from konverge_cluster.api import status_errors
from konverge_cluster.api.calls import Call
from konverge_cluster.api.cluster import Cluster
from konverge_cluster.api.field_errors import quote
from konverge_cluster.api.responses import Response, ServeWebSocket, upgrade_response
from konverge_cluster.pod_streams.log_files import LogLine, read_lines
from konverge_cluster.pod_streams.log_requests import is_terminated
from konverge_cluster.pod_streams.process_pods import SimulatedPod, find_process_pod
from konverge_cluster.pod_streams.requests import (
    LogOptions,
    StreamOptions,
    check_create,
    check_node,
    choose_protocol,
    find_pod,
    select_container,
)
from konverge_cluster.pod_streams.sessions import (
    ContainerInput,
    Streams,
    exit_status,
    receive_messages,
    send_status,
    serve_until,
)
from konverge_cluster.processes.process_pod import ProcessPod
from konverge_cluster.processes.runtime import Processes

__all__ = ["attach_handler", "exec_handler"]

_Serve: TypeAlias = Callable[[ProcessPod, str, StreamOptions, WebSocket], Awaitable[None]]


def exec_handler(runtime: Processes | None) -> Callable[[Cluster, Call], Awaitable[Response]]:
    """Return the handler of `pods/exec`."""
    return _handler(runtime, _execute, "no command can be executed in it")


def attach_handler(runtime: Processes | None) -> Callable[[Cluster, Call], Awaitable[Response]]:
    """Return the handler of `pods/attach`."""
    return _handler(runtime, _attach, "there is nothing to attach to")


def _handler(runtime: Processes | None, serve: _Serve, what: str) -> Callable[[Cluster, Call], Awaitable[Response]]:
    async def handle(cluster: Cluster, call: Call) -> Response:
        check_create(cluster, call)
        options = StreamOptions.read(call.query)
        pod = find_pod(cluster, call)
        name = select_container(pod, options.container)
        if not pod["spec"].get("nodeName"):
            raise status_errors.bad_request(f"pod {call.name} does not have a host assigned")
        check_node(cluster, pod)
        try:
            running = find_process_pod(runtime, pod, name, what)
        except SimulatedPod as simulated:
            raise status_errors.bad_request(str(simulated)) from None
        return upgrade_response(choose_protocol(call), _serving(running, name, options, serve))

    return handle


def _serving(running: ProcessPod | None, name: str, options: StreamOptions, serve: _Serve) -> ServeWebSocket:
    async def serve_websocket(websocket: WebSocket) -> None:
        if running is None or not running.containers[name].is_running:
            await _refuse(websocket, f"unable to upgrade connection: container not found ({quote(name)})")
        elif not (options.stdin or options.stdout or options.stderr):
            await _refuse(
                websocket, "unable to upgrade connection: you must specify at least 1 of stdin, stdout, stderr"
            )
        else:
            await serve(running, name, options, websocket)

    return serve_websocket


async def _refuse(websocket: WebSocket, message: str) -> None:
    await send_status(websocket, status_errors.internal_error(message).status)


async def _execute(pod: ProcessPod, name: str, options: StreamOptions, websocket: WebSocket) -> None:
    """Run a command until it ends, or until the client disconnects: then it is killed."""
    streams = Streams(stdin=options.stdin, stdout=options.stdout, stderr=options.stderr, tty=options.tty)
    try:
        try:
            if not options.command:
                raise OSError("no command specified")
            running = pod.containers[name].open(options.command, streams.descriptors, tty=options.tty)
        except OSError as error:
            await _refuse(websocket, f"error executing command in container: {error}")
            return
        finally:
            streams.close_descriptors()

        async def work() -> None:
            async with asyncio.TaskGroup() as outputs:
                for channel in streams.outputs:
                    outputs.create_task(streams.copy(channel, websocket))
            ended = await asyncio.shield(running.exited)
            await send_status(websocket, exit_status(ended.code, ended.error))

        try:
            await serve_until(work(), receive_messages(websocket, streams))
        finally:
            if running.exit is None:
                pod.sandbox.supervisor.signal(running.id, signal.SIGKILL)
    finally:
        streams.close()


async def _attach(pod: ProcessPod, name: str, options: StreamOptions, websocket: WebSocket) -> None:
    """Connect the client with the streams of the container, until that ends or the client disconnects."""
    container = pod.containers[name]
    run = container.state.restarts
    path = pod.sandbox.log_path(name, run)
    lines = read_lines(path, LogOptions(follow=True), lambda: is_terminated(container, run), from_end=True)

    async def work() -> None:
        async with aclosing(lines):
            await _send_lines(lines, options, websocket)
        await send_status(websocket, exit_status(0))

    stdin = container.stdin if options.stdin else None
    received = None if stdin is None else ContainerInput(stdin, lambda: container.detach(run))
    try:
        await serve_until(work(), receive_messages(websocket, received))
    finally:
        if received is not None:
            received.close()


async def _send_lines(lines: AsyncIterator[LogLine | None], options: StreamOptions, websocket: WebSocket) -> None:
    wanted = {"stdout": options.stdout, "stderr": options.stderr or options.tty}
    channels = {"stdout": Channel.STDOUT, "stderr": Channel.STDOUT if options.tty else Channel.STDERR}
    async for line in lines:
        if line is not None and wanted.get(line.stream):
            await websocket.send(pack_message(channels[line.stream], line.output))
