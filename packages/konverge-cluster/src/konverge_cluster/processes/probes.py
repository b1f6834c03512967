"""Probes and hooks of containers: what is asked (exec, HTTP, TCP, gRPC), how often, and what the answers mean."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from konverge_cluster.processes.grpc_health import SERVING, check_health

__all__ = ["Answer", "ProbeOptions", "ProbeTarget", "run_handler", "run_probe"]

_OUTPUT_LIMIT: Final = 10 * 1024
_DEADLINE: Final = "context deadline exceeded"


@dataclass(frozen=True)
class Answer:
    """The result of one probe or hook, with what was printed or went wrong."""

    ok: bool
    message: str = ""


@dataclass(frozen=True)
class ProbeOptions:
    """The times and thresholds of a probe, with the defaults of Kubernetes."""

    initial_delay: float = 0.0
    period: float = 10.0
    timeout: float = 1.0
    success_threshold: int = 1
    failure_threshold: int = 3

    @classmethod
    def of(cls, probe: Mapping[str, Any]) -> ProbeOptions:
        """Read the options of a probe."""
        return cls(
            float(probe.get("initialDelaySeconds") or 0),
            float(probe.get("periodSeconds") or 10),
            float(probe.get("timeoutSeconds") or 1),
            probe.get("successThreshold") or 1,
            probe.get("failureThreshold") or 3,
        )


class ProbeTarget(Protocol):
    """The container that is probed."""

    @property
    def address(self) -> str:
        """The address of its pod."""
        ...

    def port(self, port: int | str) -> int:
        """Return the number of a port that may be named."""
        ...

    async def execute(self, command: list[str]) -> tuple[int, str]:
        """Run a command in it; return the exit code and the output."""
        ...


async def run_probe(
    options: ProbeOptions, once: Callable[[], Awaitable[Answer]], on_result: Callable[[Answer], bool]
) -> None:
    """Ask again and again; call `on_result` with each answer that reached its threshold, until that returns False."""
    await asyncio.sleep(options.initial_delay)
    last: bool | None = None
    count = 0
    while True:
        answer = await once()
        count = count + 1 if answer.ok is last else 1
        last = answer.ok
        needed = options.success_threshold if answer.ok else options.failure_threshold
        if count >= needed and not on_result(answer):
            return
        await asyncio.sleep(options.period)


async def run_handler(handler: Mapping[str, Any], target: ProbeTarget, *, timeout: float) -> Answer:
    """Run a probe or a hook once: exec, httpGet, tcpSocket, grpc or sleep."""
    try:
        async with asyncio.timeout(timeout):
            return await _run_once(handler, target)
    except TimeoutError:
        return Answer(False, f"command timed out after {timeout:g}s" if "exec" in handler else _DEADLINE)
    except OSError as error:
        return Answer(False, str(error))


async def _run_once(handler: Mapping[str, Any], target: ProbeTarget) -> Answer:
    if command := handler.get("exec"):
        code, output = await target.execute(list(command["command"]))
        return Answer(code == 0, output[:_OUTPUT_LIMIT])
    if request := handler.get("httpGet"):
        return await _http(request, target)
    if connection := handler.get("tcpSocket"):
        host, port = connection.get("host") or target.address, target.port(connection["port"])
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
        return Answer(True)
    if call := handler.get("grpc"):
        return await _grpc(call["port"], call.get("service") or "", target)
    if pause := handler.get("sleep"):
        await asyncio.sleep(float(pause["seconds"]))
        return Answer(True)
    return Answer(False, "missing probe handler")


async def _grpc(port: int, service: str, target: ProbeTarget) -> Answer:
    reader, writer = await asyncio.open_connection(target.address, port)
    try:
        status = await check_health(reader, writer, f"{target.address}:{port}", service)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    if status == SERVING:
        return Answer(True)
    if status:
        return Answer(False, f'service unhealthy (responded with "{status}")')
    return Answer(False, f'health rpc failed: no status of service "{service}" (grpc.health.v1.Health)')


async def _http(request: Mapping[str, Any], target: ProbeTarget) -> Answer:
    host, port = request.get("host") or target.address, target.port(request["port"])
    context = _unverified() if str(request.get("scheme", "")).upper() == "HTTPS" else None
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        writer.write(_http_request(request, f"{host}:{port}"))
        await writer.drain()
        status = (await reader.readline()).decode(errors="replace").split(" ", 2)
        if len(status) < 2 or not status[1].isdecimal():
            return Answer(False, "malformed HTTP response")
        code = int(status[1])
        return Answer(200 <= code < 400, f"HTTP probe failed with statuscode: {code}")
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def _http_request(request: Mapping[str, Any], host: str) -> bytes:
    headers = {"Host": host, "User-Agent": "kube-probe/1.36", "Accept": "*/*", "Connection": "close"}
    headers |= {one["name"]: one["value"] for one in request.get("httpHeaders") or ()}
    path = request.get("path") or "/"
    lines = [f"GET {path if path.startswith('/') else '/' + path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _unverified() -> ssl.SSLContext:
    """Return a context that accepts every certificate, as the kubelet does for probes."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
