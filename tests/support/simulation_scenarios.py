"""One play of a user with widgets, for simulations: it is played with faults and without, and must end the same.

Each step waits until the one before it is done, so that what is made and deleted on the way is the same too.
"""

from __future__ import annotations

import asyncio
import itertools
import random
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
from widget_rigs import Way, WidgetRig, virtual_widgets

__all__ = [
    "FEW_STEPS",
    "STEPS",
    "Crash",
    "Ending",
    "Play",
    "SeededFaults",
    "Step",
    "deleted_while_down",
    "play_with_crash",
    "play_with_faults",
    "play_with_two",
    "play_without_faults",
]

PATIENCE = 900.0
"""So many virtual seconds a step may take under faults."""


# What the user does


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


# How it ends


@dataclass(frozen=True)
class Ending:
    """What is there in the end, what was made and deleted on the way, and what the ledger says."""

    widgets: dict[str, Any]
    children: dict[str, Any]
    counts: dict[str, int]
    open: dict[str, int]  # entries of the ledger, by widget, as opened and not closed
    closed: dict[str, int]


@dataclass
class Play:
    """One play and all that came of it."""

    rig: WidgetRig
    writes: int = 0
    crashes: int = 0
    faults: list[str] = field(default_factory=list)

    async def ending(self) -> Ending:
        rig = self.rig
        found = await rig.user.list(Widget, namespace=rig.namespace)
        living = {one.uid for one in found}
        keys = dict(line.split()[1:][::-1] for line in rig.ledger.lines)
        return Ending(
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


async def play_without_faults(steps: tuple[Step, ...] = STEPS) -> Ending:
    """Play it on a server that is well."""
    async with virtual_widgets() as rig:
        play = Play(rig)
        async with rig.operating():
            await _act(rig, steps)
        return await play.ending()


async def _act(rig: WidgetRig, steps: tuple[Step, ...], *, pause: Callable[[], float] = lambda: 0.0) -> None:
    for step in steps:
        await asyncio.sleep(pause())
        await step(rig)
        await rig.converges(within=PATIENCE)


# A crash at one write


@dataclass
class Crash:
    """The process is killed at one of its writes, before it reaches the server or after; `ledger` entries are writes.

    From then on nothing of that process goes anywhere.
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


class _Mortal:
    """A way whose writes may be the last ones."""

    def __init__(self, inner: Transport, crash: Crash) -> None:
        self._inner = inner
        self._crash = crash

    async def send(self, request: Request) -> Response:
        if request.method == "GET" or "accessreviews" in request.path:
            return await self._inner.send(request)
        answer: Response = await self._crash.write(lambda: self._inner.send(request))
        return answer

    async def close(self) -> None:
        await self._inner.close()


class _MortalLedger:
    def __init__(self, inner: Ledger, crash: Crash) -> None:
        self._inner = inner
        self._crash = crash

    async def note(self, line: str) -> None:
        await self._crash.write(lambda: self._inner.note(line))


async def play_with_crash(crash: Crash, steps: tuple[Step, ...] = STEPS) -> tuple[Play, Ending]:
    """Play it with a process that is killed at one write and started again at once."""
    async with virtual_widgets() as rig:
        play = Play(rig)
        async with asyncio.TaskGroup() as tasks:
            life = tasks.create_task(_two_lives(rig, crash))
            await _act(rig, steps)
            life.cancel()
        play.writes, play.crashes = crash.writes, int(crash.happened.is_set())
        return play, await play.ending()


async def _two_lives(rig: WidgetRig, crash: Crash) -> None:
    way = Way(_Mortal(rig.way("first"), crash))
    first = widgets().build(Widgets(_MortalLedger(rig.ledger, crash)))
    async with rig.operating(first, way=way):
        await crash.happened.wait()
        way.die()
    async with rig.operating(way=rig.way("second")):
        await asyncio.Event().wait()


async def deleted_while_down(crash: Crash) -> Play:
    """Kill the process at one write of a first reconcile, delete the widget, and only then start it again."""
    async with virtual_widgets() as rig:
        play = Play(rig)
        way = Way(_Mortal(rig.way("first"), crash))
        first = widgets().build(Widgets(_MortalLedger(rig.ledger, crash)))
        async with rig.operating(first, way=way):
            await rig.create("a", replicas=2)
            with suppress(TimeoutError):
                async with asyncio.timeout(60):
                    await crash.happened.wait()
            way.die()
        play.crashes = int(crash.happened.is_set())
        await rig.delete("a")
        async with rig.operating(way=rig.way("second")):
            await rig.converges(within=60)
            await asyncio.sleep(5)
        return play


# Faults that a seed decides


class SeededFaults:
    """Decides by one seed what goes wrong on the way: late, refused, lost and failed answers, old lists."""

    def __init__(self, inner: Transport, dice: Random, play: Play) -> None:
        self._inner = inner
        self._dice = dice
        self._play = play
        self._lists: dict[str, list[tuple[int, bytes, dict[str, str]]]] = {}
        self.well = False

    async def send(self, request: Request) -> Response:
        if self.well or "accessreviews" in request.path:
            return await self._inner.send(request)
        await asyncio.sleep(self._dice.choice((0.0, 0.0, 0.001, 0.05, 1.0)))
        query = dict(request.query)
        if "sendInitialEvents" in query:
            # Lists in pages, since those can be old.
            return BufferedResponse(400, status_response(400, reason="BadRequest").body, {"content-type": "application/json"})
        chance = self._dice.random()
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
        status = self._dice.choice((409, 429, 500, 503, 504) if request.method == "PATCH" else (429, 500, 503))
        said = status_response(status, reason="Conflict" if status == 409 else "")
        headers = {**said.headers, "retry-after": "1"} if status == 429 else said.headers
        self._play.faults.append(f"{status} for {request.method} {request.path}")
        return BufferedResponse(status, said.body, headers)

    async def _lost(self, request: Request, response: Response) -> Response:
        """The server did it, and nobody learns of it."""
        await response.close()
        self._play.faults.append(f"lost the answer to {request.method} {request.path}")
        raise TransportError(f"{request.method} {request.path}: the answer was lost")

    async def _listed(self, request: Request, response: Response) -> Response:
        async with response:
            answer = (response.status, await response.read(), dict(response.headers))
        known = self._lists.setdefault(f"{request.path} {request.query}", [])
        known.append(answer)
        chosen = self._dice.choice(known[-4:])
        if chosen is not answer:
            self._play.faults.append(f"an old answer to {request.path}")
        return BufferedResponse(*chosen)


async def play_with_faults(seed: int, steps: tuple[Step, ...] = STEPS) -> tuple[Play, Ending]:
    """Play it with faults on the way and crashes at any moment, as the seed decides."""
    async with virtual_widgets() as rig:
        play = Play(rig)
        dice = Random(seed)
        random.seed(seed)  # what the runtime draws its own chances from
        async with asyncio.TaskGroup() as tasks:
            lives = tasks.create_task(_lives(play, dice))
            await _act(rig, steps, pause=lambda: dice.uniform(0, 5))
            lives.cancel()
        return play, await play.ending()


async def _lives(play: Play, dice: Random) -> None:
    """One process after the other, each with streams that are cut, each killed after a while."""
    while True:
        faulty = SeededFaults(play.rig.way(f"life {play.crashes}"), dice, play)
        way = Way(faulty)
        async with play.rig.operating(way=way), _cutting(way, dice):
            await asyncio.sleep(dice.choice((0.5, 2, 5, 20, 60)) * dice.random())
            play.crashes += 1
            way.die()


# Two who compete


async def play_with_two(seed: int, steps: tuple[Step, ...] = STEPS, *, freezes: bool = True) -> tuple[Play, Ending]:
    """Play it with two processes that compete for one lease, under faults, each killed and started anew at times.

    Without `freezes` no stream falls silent unnoticed.
    """
    async with virtual_widgets() as rig:
        play = Play(rig)
        dice = Random(seed)
        random.seed(seed)
        async with asyncio.TaskGroup() as tasks:
            crowd = [tasks.create_task(_candidates(play, dice, letter, freezes)) for letter in "ab"]
            await _act(rig, steps, pause=lambda: dice.uniform(0, 20))
            for each in crowd:
                each.cancel()
        return play, await play.ending()


async def _candidates(play: Play, dice: Random, letter: str, freezes: bool) -> None:
    """One candidate after the other, each of a name of its own; who is killed gives nothing back."""
    for number in itertools.count():
        who = f"{letter}{number}"
        way = Way(SeededFaults(play.rig.way(who), dice, play))
        election = LeaderElection("widget-lease", play.rig.namespace, identity=who, clock=play.rig.now)
        cutting = _cutting(way, dice, freezes=freezes)
        async with play.rig.operating(way=way, leader_election=election) as (_, process), cutting:
            end = play.rig.now() + dice.choice((5, 60, 300)) * dice.random()
            while play.rig.now() < end and not process.lost_reason:  # noqa: ASYNC110 - on virtual time looking costs nothing
                await asyncio.sleep(0.5)
            play.crashes += 1
            if dice.random() < 0.7:
                way.die()


@asynccontextmanager
async def _cutting(way: Way, dice: Random, *, freezes: bool = True) -> AsyncGenerator[None]:
    ways = (way.reset_streams, way.close_streams, way.stall_streams if freezes else way.reset_streams)

    async def cut() -> None:
        while True:
            await asyncio.sleep(dice.choice((0.1, 1, 10)) * dice.random())
            dice.choice(ways)()

    async with asyncio.TaskGroup() as tasks:
        cutting = tasks.create_task(cut())
        yield
        cutting.cancel()
