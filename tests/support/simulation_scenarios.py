"""A scenario of a user with widgets, for simulations: with and without faults it must end in the same state.

Each step waits until the one before it is done, so that the creates and deletes are the same too.
"""

from __future__ import annotations

import asyncio
import itertools
import random as global_random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from konverge.errors import TransportError
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager import LeaderElection
from konverge.testing.faults import status_response
from konverge.wire.messages import BufferedResponse, Request, Response, Transport
from widget_operator import Ledger, Widget, Widgets, widgets
from widget_rigs import OperatorTransport, WidgetRig, virtual_widgets

__all__ = [
    "FEW_STEPS",
    "STEPS",
    "Crash",
    "FinalState",
    "SeededFaults",
    "Step",
    "deleted_while_down",
    "run_with_crash",
    "run_with_faults",
    "run_with_two_candidates",
    "run_without_faults",
]

STEP_TIMEOUT = 900.0
"""The virtual seconds that a step may take with faults."""


# Steps of the user


async def _create(rig: WidgetRig) -> None:
    await rig.create("a", replicas=2, payload="one")


async def _scale_up(rig: WidgetRig) -> None:
    await rig.change("a", replicas=4)


async def _create_more(rig: WidgetRig) -> None:
    await rig.create("b", "c", replicas=1, payload="two")


async def _scale_down(rig: WidgetRig) -> None:
    await rig.change("a", replicas=1, payload="three")


async def _disturb(rig: WidgetRig) -> None:
    await rig.user.delete(ConfigMap, "b-0", namespace=rig.namespace)
    await rig.user.patch(ConfigMap, "c-0", {"data": {"payload": "wrong"}}, namespace=rig.namespace)


async def _delete(rig: WidgetRig) -> None:
    await rig.delete("b")


async def _create_again(rig: WidgetRig) -> None:
    await rig.create("b", replicas=2, payload="four")


Step = Callable[[WidgetRig], Awaitable[None]]
STEPS: tuple[Step, ...] = (_create, _scale_up, _create_more, _scale_down, _disturb, _delete, _create_again)


async def _delete_first(rig: WidgetRig) -> None:
    await rig.delete("a")


FEW_STEPS: tuple[Step, ...] = (_create, _scale_down, _delete_first)


# Final state


@dataclass(frozen=True)
class FinalState:
    """The final objects, the creates and deletes, and the ledger."""

    widgets: dict[str, Any]
    children: dict[str, Any]
    counts: dict[str, int]
    open: dict[str, int]  # entries of the ledger, by widget, as opened and not closed
    closed: dict[str, int]


@dataclass
class Scenario:
    """One run of the scenario, and its counts."""

    rig: WidgetRig
    writes: int = 0
    crashes: int = 0
    faults: list[str] = field(default_factory=list)

    async def final_state(self) -> FinalState:
        rig = self.rig
        found = await rig.user.list(Widget, namespace=rig.namespace)
        living = {one.uid for one in found}
        keys = dict(line.split()[1:][::-1] for line in rig.ledger.lines)
        return FinalState(
            widgets={one.name: (one.spec, one.status, one.metadata.finalizers) for one in found},
            children={
                name: (child.data, [owner.name for owner in child.metadata.owner_references or ()])
                for name, child in (await rig.children()).items()
            },
            counts=dict(rig.counts()),
            open=_by_key(keys, rig.ledger.uids("open") - rig.ledger.uids("close")),
            closed=_by_key(keys, rig.ledger.uids("close") - living),
        )


def _by_key(keys: dict[str, str], uids: set[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for uid in uids:
        found[keys[uid]] = found.get(keys[uid], 0) + 1
    return found


# Without faults


async def run_without_faults(steps: tuple[Step, ...] = STEPS) -> FinalState:
    """Run the scenario on a healthy server."""
    async with virtual_widgets() as rig:
        scenario = Scenario(rig)
        async with rig.operating():
            await _act(rig, steps)
        return await scenario.final_state()


async def _act(rig: WidgetRig, steps: tuple[Step, ...], *, pause: Callable[[], float] = lambda: 0.0) -> None:
    for step in steps:
        await asyncio.sleep(pause())
        await step(rig)
        await rig.converges(within=STEP_TIMEOUT)


# A crash at one write


@dataclass
class Crash:
    """The process is killed at one of its writes, before or after it reaches the server; ledger entries are writes.

    From then on the process sends nothing.
    """

    at: int
    after: bool
    writes: int = 0
    happened: asyncio.Event = field(default_factory=asyncio.Event)

    async def write(self, send: Callable[[], Awaitable[Any]]) -> Any:
        if self.happened.is_set():
            await asyncio.get_running_loop().create_future()
        self.writes += 1
        if self.writes != self.at:
            return await send()
        if self.after:
            await send()
        self.happened.set()
        return await asyncio.get_running_loop().create_future()


class _CrashingTransport:
    """A transport that crashes at a write."""

    def __init__(self, inner: Transport, crash: Crash) -> None:
        self._inner = inner
        self._crash = crash

    async def send(self, request: Request) -> Response:
        if request.method == "GET" or "accessreviews" in request.path:
            return await self._inner.send(request)
        response: Response = await self._crash.write(lambda: self._inner.send(request))
        return response

    async def close(self) -> None:
        await self._inner.close()


class _CrashingLedger:
    def __init__(self, inner: Ledger, crash: Crash) -> None:
        self._inner = inner
        self._crash = crash

    async def note(self, line: str) -> None:
        await self._crash.write(lambda: self._inner.note(line))


async def run_with_crash(crash: Crash, steps: tuple[Step, ...] = STEPS) -> tuple[Scenario, FinalState]:
    """Run the scenario with a process that is killed at one write and restarted at once."""
    async with virtual_widgets() as rig:
        scenario = Scenario(rig)
        async with asyncio.TaskGroup() as tasks:
            processes = tasks.create_task(_run_two_processes(rig, crash))
            await _act(rig, steps)
            processes.cancel()
        scenario.writes, scenario.crashes = crash.writes, int(crash.happened.is_set())
        return scenario, await scenario.final_state()


async def _run_two_processes(rig: WidgetRig, crash: Crash) -> None:
    transport = OperatorTransport(_CrashingTransport(rig.transport("first"), crash))
    first = widgets().build(Widgets(_CrashingLedger(rig.ledger, crash)))
    async with rig.operating(first, transport=transport):
        await crash.happened.wait()
        transport.kill()
    async with rig.operating(transport=rig.transport("second")):
        await asyncio.Event().wait()


async def deleted_while_down(crash: Crash) -> Scenario:
    """Kill the process at one write of a first reconcile, delete the widget, and only then start it again."""
    async with virtual_widgets() as rig:
        scenario = Scenario(rig)
        transport = OperatorTransport(_CrashingTransport(rig.transport("first"), crash))
        first = widgets().build(Widgets(_CrashingLedger(rig.ledger, crash)))
        async with rig.operating(first, transport=transport):
            await rig.create("a", replicas=2)
            with suppress(TimeoutError):
                async with asyncio.timeout(60):
                    await crash.happened.wait()
            transport.kill()
        scenario.crashes = int(crash.happened.is_set())
        await rig.delete("a")
        async with rig.operating(transport=rig.transport("second")):
            await rig.converges(within=60)
            await asyncio.sleep(5)
        return scenario


# Faults that a seed decides


class SeededFaults:
    """A transport with faults of one seed: late, rejected, lost and failed responses, stale lists."""

    def __init__(self, inner: Transport, random: Random, scenario: Scenario) -> None:
        self._inner = inner
        self._random = random
        self._scenario = scenario
        self._lists: dict[str, list[tuple[int, bytes, dict[str, str]]]] = {}
        self.healthy = False

    async def send(self, request: Request) -> Response:
        if self.healthy or "accessreviews" in request.path:
            return await self._inner.send(request)
        await asyncio.sleep(self._random.choice((0.0, 0.0, 0.001, 0.05, 1.0)))
        query = dict(request.query)
        if "sendInitialEvents" in query:
            # Lists in pages, since those can be stale.
            return BufferedResponse(
                400, status_response(400, reason="BadRequest").body, {"content-type": "application/json"}
            )
        chance = self._random.random()
        if chance < 0.25:
            return self._failed(request)
        response = await self._inner.send(request)
        if request.method == "GET" and "watch" not in query and response.status == 200:
            return await self._listed(request, response)
        if chance > 0.9:
            return await self._lost(request, response)
        return response

    async def close(self) -> None:
        await self._inner.close()

    def _failed(self, request: Request) -> Response:
        status = self._random.choice((409, 429, 500, 503, 504) if request.method == "PATCH" else (429, 500, 503))
        response = status_response(status, reason="Conflict" if status == 409 else "")
        headers = {**response.headers, "retry-after": "1"} if status == 429 else response.headers
        self._scenario.faults.append(f"{status} for {request.method} {request.path}")
        return BufferedResponse(status, response.body, headers)

    async def _lost(self, request: Request, response: Response) -> Response:
        """Lose the response to a request that the server has processed."""
        await response.close()
        self._scenario.faults.append(f"lost the response to {request.method} {request.path}")
        raise TransportError(f"{request.method} {request.path}: the response was lost")

    async def _listed(self, request: Request, response: Response) -> Response:
        async with response:
            latest = (response.status, await response.read(), dict(response.headers))
        known = self._lists.setdefault(f"{request.path} {request.query}", [])
        known.append(latest)
        chosen = self._random.choice(known[-4:])
        if chosen is not latest:
            self._scenario.faults.append(f"a stale response to {request.path}")
        return BufferedResponse(*chosen)


async def run_with_faults(seed: int, steps: tuple[Step, ...] = STEPS) -> tuple[Scenario, FinalState]:
    """Run the scenario with faults and crashes at any time, as the seed decides."""
    async with virtual_widgets() as rig:
        scenario = Scenario(rig)
        random = Random(seed)
        global_random.seed(seed)  # the runtime uses it for jitter
        async with asyncio.TaskGroup() as tasks:
            processes = tasks.create_task(_run_processes(scenario, random))
            await _act(rig, steps, pause=lambda: random.uniform(0, 5))
            processes.cancel()
        return scenario, await scenario.final_state()


async def _run_processes(scenario: Scenario, random: Random) -> None:
    """Run one process after the other, each with broken streams, each killed after some time."""
    while True:
        faulty = SeededFaults(scenario.rig.transport(f"process {scenario.crashes}"), random, scenario)
        transport = OperatorTransport(faulty)
        async with scenario.rig.operating(transport=transport), _breaking_streams(transport, random):
            await asyncio.sleep(random.choice((0.5, 2, 5, 20, 60)) * random.random())
            scenario.crashes += 1
            transport.kill()


# Two candidates


async def run_with_two_candidates(
    seed: int, steps: tuple[Step, ...] = STEPS, *, freezes: bool = True
) -> tuple[Scenario, FinalState]:
    """Run the scenario with two candidates for one lease, with faults; each is killed and restarted at times.

    Without `freezes` no stream stalls.
    """
    async with virtual_widgets() as rig:
        scenario = Scenario(rig)
        random = Random(seed)
        global_random.seed(seed)
        async with asyncio.TaskGroup() as tasks:
            candidates = [tasks.create_task(_run_candidates(scenario, random, letter, freezes)) for letter in "ab"]
            await _act(rig, steps, pause=lambda: random.uniform(0, 20))
            for each in candidates:
                each.cancel()
        return scenario, await scenario.final_state()


async def _run_candidates(scenario: Scenario, random: Random, letter: str, freezes: bool) -> None:
    """Run one candidate after the other, each with its own identity; a killed one does not release the lease."""
    for number in itertools.count():
        identity = f"{letter}{number}"
        transport = OperatorTransport(SeededFaults(scenario.rig.transport(identity), random, scenario))
        election = LeaderElection("widget-lease", scenario.rig.namespace, identity=identity, clock=scenario.rig.now)
        breaking = _breaking_streams(transport, random, freezes=freezes)
        async with scenario.rig.operating(transport=transport, leader_election=election) as (_, process), breaking:
            end = scenario.rig.now() + random.choice((5, 60, 300)) * random.random()
            while scenario.rig.now() < end and not process.lost_reason:  # noqa: ASYNC110 - polling costs nothing on virtual time
                await asyncio.sleep(0.5)
            scenario.crashes += 1
            if random.random() < 0.7:
                transport.kill()


@asynccontextmanager
async def _breaking_streams(
    transport: OperatorTransport, random: Random, *, freezes: bool = True
) -> AsyncGenerator[None]:
    faults = (
        transport.reset_streams,
        transport.close_streams,
        transport.pause_streams if freezes else transport.reset_streams,
    )

    async def break_streams() -> None:
        while True:
            await asyncio.sleep(random.choice((0.1, 1, 10)) * random.random())
            random.choice(faults)()

    async with asyncio.TaskGroup() as tasks:
        breaking = tasks.create_task(break_streams())
        yield
        breaking.cancel()
