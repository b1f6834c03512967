"""The transport of one process of the operator: it counts requests, and applies the entries of the schedule to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, NoReturn, Self

from konverge.errors import TransportError
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import RecordedRequest, status_response
from konverge.wire.messages import BufferedResponse, Request, Response, Transport
from konverge_cluster.testing.simulation.audits import OPERATOR, Audit, Target, Write, is_background
from konverge_cluster.testing.simulation.foreign import ForeignClient
from konverge_cluster.testing.simulation.schedules import READ_FAULTS, WRITE_FAULTS, Schedule

__all__ = ["AuditTransport", "Faults", "ProcessTransport"]

_STATUS: Final = {
    "conflict": (409, "Conflict"),
    "busy": (429, ""),
    "error": (500, ""),
    "unavailable": (503, ""),
    "timeout": (504, ""),
}
_LATE: Final = 2.0
"""How many seconds a late response needs."""
_DELAYS: Final = (3.0, 0.0, 7.0)
"""The delays of watches after `delay-watches`, one after the other, by the order of opening."""


class AuditTransport:
    """The transport of the user: it records what was created."""

    def __init__(self, inner: Transport, audit: Audit, by: str) -> None:
        self._inner = inner
        self._audit = audit
        self._by = by

    async def send(self, request: Request) -> Response:
        response = await self._inner.send(request)
        if request.method == "GET":
            return response
        buffered = await buffer(response)
        self._audit.record(self._by, request, buffered.status, buffered.body)
        return buffered

    async def close(self) -> None:
        await self._inner.close()


@dataclass
class Faults:
    """What all processes of a run share: the schedule, the counts, and the lists that a stale list returns.

    `processes` are those that run now.
    """

    schedule: Schedule
    audit: Audit
    foreign: ForeignClient
    kinds: set[tuple[str, str]] = field(default_factory=set)
    """Group and plural of the kinds that the operator reconciles: their watches are never delayed.

    An operator without a finalizer that sees the end of its object late recreates what garbage collection deletes.
    """
    writes: int = 0
    reads: int = 0
    deletes: list[int] = field(default_factory=list)
    healthy: bool = False
    delayed: bool = False
    failures: list[str] = field(default_factory=list)
    processes: list[ProcessTransport] = field(default_factory=list)
    _lists: dict[tuple[str, str], tuple[Request, list[BufferedResponse]]] = field(default_factory=dict)

    def at(self, count: int, kinds: Mapping[str, str]) -> list[str]:
        """Return the faults of these kinds at a number."""
        return [one.fault for one in self.schedule if one.at == count and one.fault in kinds and not self.healthy]

    @property
    def has_stale_lists(self) -> bool:
        return any(one.fault == "stale-list" for one in self.schedule)

    @property
    def has_paused_watches(self) -> bool:
        return any(one.fault == "stall-watches" for one in self.schedule)

    async def refresh_lists(self, transport: Transport) -> None:
        """Repeat every list of the operator, for later stale lists."""
        for request, responses in self._lists.values():
            responses.append(await buffer(await transport.send(request)))

    def stale(self, request: Request) -> BufferedResponse | None:
        """Return an earlier response to a list, and note the list for later."""
        _, responses = self._lists.setdefault((request.path, str(request.query)), (request, []))
        return responses[-2] if len(responses) > 1 else None


class ProcessTransport(FaultTransport):
    """The transport of one process. Once it is dead nothing reaches the server any more, without an error."""

    def __init__(self, inner: Transport, faults: Faults, number: int) -> None:
        super().__init__(inner)
        self.number = number
        self.crashed = asyncio.Event()
        self.lease_lost = asyncio.Event()
        self._faults = faults
        self._watches = 0

    def kill(self) -> None:
        """Behave like the network of a process that was killed."""
        self.crashed.set()
        self.pause_streams()

    def break_watches(self, faults: list[str]) -> None:
        """Reset, close or stall the open watches, as the faults say."""
        if "cut-watches" in faults:
            self.reset_streams()
        if "close-watches" in faults:
            self.close_streams()
        if "stall-watches" in faults:
            self.pause_streams()

    async def send(self, request: Request) -> Response:
        if self.crashed.is_set():
            await _forever()
        if is_background(request):
            return await self._send_background(request)
        if request.method == "GET":
            return await self._read(request)
        return await self._write(request)

    async def call(self, send: Callable[[], Awaitable[Any]]) -> Any:
        """Call the external service, with the faults of the next write."""
        if self.crashed.is_set():
            await _forever()
        faults = self._next_write()
        if {"busy", "error", "unavailable", "timeout"} & set(faults):
            raise ConnectionError("the external service is not available: injected by the schedule")
        if "crash-before" in faults:
            await self._crash()
        result = await send()
        if "late-response" in faults:
            await asyncio.sleep(_LATE)
        if "crash-after" in faults:
            await self._crash()
        if "lost-response" in faults:
            raise ConnectionError("the response of the external service was lost: injected by the schedule")
        return result

    async def _send_background(self, request: Request) -> Response:
        if self.lease_lost.is_set() and Target.of(request.path).plural == "leases":
            raise TransportError(f"{request.method} {request.path}: injected by the schedule")
        return await super().send(request)

    # Reads

    async def _read(self, request: Request) -> Response:
        recorded = RecordedRequest.of(request)
        self._faults.reads += 1
        faults = self._faults.at(self._faults.reads, READ_FAULTS)
        if "failed-read" in faults:
            return _status(503)
        if recorded.watches:
            return _status(410, "Expired") if "expired-watch" in faults else await self._watch(request, recorded)
        stale = self._faults.stale(request) if not Target.of(request.path).name else None
        return stale if stale is not None and "stale-list" in faults else await super().send(request)

    async def _watch(self, request: Request, recorded: RecordedRequest) -> Response:
        if "sendInitialEvents" in recorded.query and self._faults.has_stale_lists:
            return _status(400)  # as a server without streaming lists: only a list in pages can be stale
        self._watches += 1
        target = Target.of(request.path)
        is_primary = (target.group, target.plural) in self._faults.kinds
        delay = 0.0 if is_primary else _DELAYS[self._watches % len(_DELAYS)]
        return _DelayedResponse(await super().send(request), lambda: delay if self._faults.delayed else 0.0)

    # Writes

    def _next_write(self) -> list[str]:
        self._faults.writes += 1
        return self._faults.at(self._faults.writes, WRITE_FAULTS)

    async def _write(self, request: Request) -> Response:
        faults = self._next_write()
        number, target = self._faults.writes, Target.of(request.path)
        if request.method == "DELETE":
            self._faults.deletes.append(number)
        await self._before(target, faults)
        if failed := [_STATUS[one] for one in faults if one in _STATUS]:
            return _status(*failed[0])
        if "crash-before" in faults:
            await self._crash()
        replacement = ""
        if "foreign-replace" in faults and request.method == "DELETE":
            replacement = await self._replace(target)
        response = await self._forward(request, target, number)
        if replacement and not await self._faults.foreign.remove(target, replacement):
            self._faults.failures.append(
                f"deleted {target} although another client had replaced it just before: delete with a precondition"
            )
        if "late-response" in faults:
            await asyncio.sleep(_LATE)
        if "crash-after" in faults:
            await self._crash()
        if "lost-response" in faults:
            raise TransportError(f"{request.method} {request.path}: the response was lost, injected by the schedule")
        return response

    async def _before(self, target: Target, faults: list[str]) -> None:
        for process in self._faults.processes:
            process.break_watches(faults)
        if "delay-watches" in faults:
            self._faults.delayed = True
        if "lose-lease" in faults:
            self.lease_lost.set()
        if "foreign-touch" in faults and target.name:
            await self._faults.foreign.touch(target)

    async def _replace(self, target: Target) -> str:
        """Replace the object, and count that as the delete that the operator wanted."""
        before = target.entry(self._faults.audit.storage)
        uid = await self._faults.foreign.replace(target)
        if uid:
            self._faults.audit.record_delete(target, before)
        return uid

    async def _forward(self, request: Request, target: Target, number: int) -> BufferedResponse:
        audit = self._faults.audit
        before, revision = target.entry(audit.storage), audit.storage.revision
        response = await buffer(await self._inner.send(request))
        audit.record(OPERATOR, request, response.status, response.body)
        is_foreign = before is not None and before.uid not in audit.creators
        if request.method == "DELETE" and response.status < 300 and not is_foreign:
            audit.record_delete(target, before)
        now = asyncio.get_running_loop().time()
        changed = response.status < 300 and audit.storage.revision != revision
        audit.writes.append(Write(number, self.number, now, request.method, target, response.status, changed))
        return response

    async def _crash(self) -> NoReturn:
        self.kill()
        await _forever()


class _DelayedResponse:
    """A watch whose data arrives some seconds after the server has sent it."""

    def __init__(self, inner: Response, delay: Callable[[], float]) -> None:
        self._inner = inner
        self._delay = delay
        self.status: int = inner.status
        self.headers: Mapping[str, str] = inner.headers
        self.warnings: tuple[str, ...] = inner.warnings

    async def read(self) -> bytes:
        return await self._inner.read()

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner.chunks():
            if delay := self._delay():
                await asyncio.sleep(delay)
            yield chunk

    async def close(self) -> None:
        await self._inner.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def buffer(response: Response) -> BufferedResponse:
    """Read a response to its end."""
    async with response:
        return BufferedResponse(response.status, await response.read(), dict(response.headers), response.warnings)


def _status(status: int, reason: str = "") -> BufferedResponse:
    fault = status_response(status, reason=reason)
    headers = {**fault.headers, "retry-after": "1"} if status == 429 else fault.headers
    return BufferedResponse(status, fault.body, headers)


async def _forever() -> NoReturn:
    await asyncio.get_running_loop().create_future()
    raise AssertionError("a future that nobody has was set")
