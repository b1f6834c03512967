"""A scenario with random writes and a bad connection, after which each key must have been enqueued for the last change.

One seed decides all of it: how late watches and responses are, which responses are lost, what users and reconciles
write and when, which streams break. Then all writes stop, and what each key has seen last is compared with the server.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from delayed_watches import DelayedWatches
from gadgets import Gadget, World, gadget, world_with_gadgets
from konverge import Client, Key, Manager, controller_for
from konverge.client import ClientOptions
from konverge.errors import ApiError, NotFound
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import Resource
from konverge.reconcile import Journal
from konverge.testing.faults import status_response, watches
from konverge.triggers import anything
from late_responses import LateResponses
from sandbox_runs import (
    BoxRuns,
    FinalizedGadgetRuns,
    GadgetRuns,
    Observation,
    RandomWriter,
    ScenarioLog,
    box,
    box_of,
    is_owned,
)

__all__ = ["EnqueueScenario", "run_enqueue_scenario"]

T = TypeVar("T", bound=Resource)

NAMES = ("g0", "g1")
ROUNDS = 6
"""Only the last change of a round can be lost unnoticed: every later one enqueues its key again."""
QUIET = 600.0
"""Virtual seconds after the last write in which every key is reconciled: longer than any backoff or idle timeout."""


@dataclass
class EnqueueScenario:
    """One scenario: its world, its two writers, and what users do to both."""

    seed: int
    world: World
    dice: Random
    log: ScenarioLog
    gadgets: RandomWriter
    boxes: RandomWriter
    has_boxes: bool  # whether a second controller reconciles the boxes
    breaks: float  # the share of broken streams among the actions of users
    unseen: list[str] = field(default_factory=list)  # seed, key, what was seen and what exists, and the log up to there

    async def round(self) -> None:
        """Write, then pause; record which keys have not seen the last state that others wrote."""
        self.gadgets.paused = self.boxes.paused = False
        await asyncio.gather(self._disturb(7), self._disturb(3))
        await asyncio.sleep(self.dice.choice((0, 5, 60)))
        self.gadgets.paused = self.boxes.paused = True
        self.log.add("", "all writes stop")
        await asyncio.sleep(QUIET)
        for name in NAMES:
            wrong = await self._unseen_of(name)
            self.unseen += [f"seed {self.seed}, {one}\n{self.log.end_of(name)}" for one in wrong]

    async def _unseen_of(self, name: str) -> list[str]:
        key, box_key = Key("default", name), box_of(name)
        owner, found = await self._read(Gadget, key), await self._read(ConfigMap, box_key)
        wrong = {f"Gadget {key}": _unseen_gadget(self.gadgets.observations.get(key), owner, found)}
        if self.has_boxes:
            wrong[f"ConfigMap {box_key}"] = _unseen_box(self.boxes.observations.get(box_key), found)
        return [f"{where}: {what}" for where, what in wrong.items() if what]

    async def _read(self, kind: type[T], key: Key) -> T | None:
        try:
            return await self.world.client.get(kind, key)
        except NotFound:
            return None

    # Actions of users

    async def _disturb(self, times: int) -> None:
        """Write a number of times as a user, or break streams; errors of the server are ignored."""
        for number in range(times):
            await asyncio.sleep(self.dice.choice((0, 0, self.dice.uniform(0, 0.3), self.dice.uniform(0, 4))))
            name, act = self.dice.choice(NAMES), self._any_act()
            with suppress(ApiError):
                await act(name, number)
                self.log.add(name, f"a user did {act.__name__.strip('_')} {number}")

    def _any_act(self) -> Callable[[str, int], Awaitable[None]]:
        if self.dice.random() < self.breaks:
            return self.dice.choice((self._cut, self._end, self._expire))
        return self.dice.choice(
            (
                *(
                    self._resize,
                    self._fill,
                    self._fill,
                    self._fill,
                    self._delete_box,
                    self._create_box,
                    self._create_box,
                ),
                *(self._recreate_box, self._delete_gadget, self._create_gadget, self._create_gadget),
            )
        )

    async def _resize(self, name: str, number: int) -> None:
        await self.world.client.patch(Gadget, name, {"spec": {"size": number}})

    async def _fill(self, name: str, number: int) -> None:
        await self.world.client.patch(ConfigMap, box_of(name), {"data": {"user": str(number)}})

    async def _delete_box(self, name: str, number: int) -> None:
        await self.world.client.delete(ConfigMap, box_of(name))

    async def _create_box(self, name: str, number: int) -> None:
        owner = await self.world.client.get(Gadget, name)
        await self.world.client.create(box(name, {"user": str(number)}, owner=owner))

    async def _recreate_box(self, name: str, number: int) -> None:
        await self.world.client.delete(ConfigMap, box_of(name), missing_ok=True)
        await self._create_box(name, number)

    async def _delete_gadget(self, name: str, number: int) -> None:
        await self.world.client.delete(Gadget, name)

    async def _create_gadget(self, name: str, number: int) -> None:
        await self.world.client.create(gadget(name, size=number))

    async def _cut(self, name: str, number: int) -> None:
        self._broken(self.world.transport.reset_streams())

    async def _end(self, name: str, number: int) -> None:
        self._broken(self.world.transport.close_streams())

    async def _expire(self, name: str, number: int) -> None:
        self.world.transport.script.add(watches("configmaps"), status_response(410, reason="Expired"), times=1)
        self._broken(self.world.transport.reset_streams())

    def _broken(self, streams: int) -> None:
        self.log.add("", f"{streams} streams broke")


def _unseen_gadget(observation: Observation | None, owner: Gadget | None, found: ConfigMap | None) -> str:
    """Return what the key of a gadget has not seen: the gadget, or a box that it owns or has last seen as owned."""
    if observation is None or owner is None:
        return "" if observation is None and owner is None else f"the gadget is {_named(owner)}, seen was {observation}"
    if (observation.uid, observation.size) != (owner.uid, owner.spec.size):
        return f"the gadget is {_named(owner)} of size {owner.spec.size}, seen was {observation}"
    if not observation.owned and (found is None or not is_owned(found, owner.uid)):
        return ""
    return _differs(observation, observation.of_box(found, "gadget"))


def _unseen_box(observation: Observation | None, found: ConfigMap | None) -> str:
    """Return what the key of a box has not seen of it; its own deletion of the box enqueues it too."""
    if observation is None or found is None:
        return "" if observation is None and found is None else f"the box is {_named(found)}, seen was {observation}"
    return _differs(observation, observation.of_box(found, "box"))


def _differs(seen: Observation, now: Observation) -> str:
    same = (seen.box, seen.theirs) == (now.box, now.theirs)
    return "" if same else f"the box is {now.box or 'gone'} with {now.theirs}, seen was {seen}"


def _named(obj: Resource | None) -> str:
    return "gone" if obj is None else obj.uid


async def run_enqueue_scenario(seed: int, *, new_journal: Callable[[], Journal] = Journal) -> EnqueueScenario:
    """Run all rounds, and return the scenario; `new_journal` creates the journals of the operator."""
    dice, log = Random(seed), ScenarioLog()
    random.seed(seed)  # the runtime uses it for jitter
    world = await world_with_gadgets()
    scenario = EnqueueScenario(
        seed=seed,
        world=world,
        dice=dice,
        log=log,
        gadgets=RandomWriter("gadget", dice, log),
        boxes=RandomWriter("box", dice, log),
        has_boxes=dice.random() < 0.5,
        breaks=dice.choice((0.0, 0.1, 0.3)),
    )
    for name in NAMES:
        await world.client.create(gadget(name))
    async with _operator(scenario, new_journal).running():
        for _ in range(ROUNDS):
            await scenario.round()
    return scenario


def _operator(scenario: EnqueueScenario, new_journal: Callable[[], Journal]) -> Manager:
    dice, late = scenario.dice, (0, 0.01, 0.3, 1, 3)
    most = dice.choice(late)
    transport = DelayedWatches(scenario.world.transport, "configmaps", "gadgets", by=lambda: dice.uniform(0, most))
    client = Client(
        LateResponses(transport, dice, by=dice.choice(late), lost=dice.choice((0, 0, 0.1))),
        options=ClientOptions(namespace="default"),
    )
    manager = Manager(client, name="gadget-operator")
    manager.use_journal(new_journal)
    runs = (FinalizedGadgetRuns if dice.random() < 0.3 else GadgetRuns)(scenario.gadgets)
    manager.add(controller_for(Gadget).predicate(anything).owns(ConfigMap).timeout(30).build(runs))
    if scenario.has_boxes:
        manager.add(controller_for(ConfigMap).timeout(30).build(BoxRuns(scenario.boxes)))
    return manager
