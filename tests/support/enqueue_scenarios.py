"""A play in which everybody writes at random, the way to the server is bad, and in the end each key must be awake.

One seed decides all of it: how late watches and answers are, which answers are lost, what strangers and runs write and
when, which streams break. Then everybody rests, and what each key has seen last is compared with what is.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from gadgets import Gadget, World, gadget, world_with_gadgets
from konverge import Client, Key, Manager, controller_for
from konverge.client import ClientOptions
from konverge.errors import ApiError, NotFound
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import Resource
from konverge.testing.faults import status_response, watches
from konverge.triggers import anything
from late_responses import LateAnswers
from delayed_watches import DelayedWatches
from sandbox_runs import BoxRuns, FinalizedGadgetRuns, GadgetRuns, Hand, Sight, Story, box, box_of, is_owned

__all__ = ["WakePlay", "play_wakes"]

T = TypeVar("T", bound=Resource)

NAMES = ("g0", "g1")
ROUNDS = 6
"""Only the last change of a round can be lost unnoticed: every later one wakes its key again."""
QUIET = 600.0
"""So many virtual seconds after the last write whatever wakes has woken: longer than any back-off or silence."""


@dataclass
class WakePlay:
    """One play: its world, its two writers, and what strangers do to both."""

    seed: int
    world: World
    dice: Random
    story: Story
    gadgets: Hand
    boxes: Hand
    has_boxes: bool  # whether a second controller reconciles the boxes
    breaks: float  # the share of streams that break among what strangers do
    unseen: list[str] = field(default_factory=list)  # seed, key, what was seen and what is, and the story up to there

    async def round(self) -> None:
        """Have everybody write, then rest; note which keys have not seen the last state that others made."""
        self.gadgets.resting = self.boxes.resting = False
        await asyncio.gather(self._disturb(7), self._disturb(3))
        await asyncio.sleep(self.dice.choice((0, 5, 60)))
        self.gadgets.resting = self.boxes.resting = True
        self.story.tell("", "everybody rests")
        await asyncio.sleep(QUIET)
        for name in NAMES:
            wrong = await self._unseen_of(name)
            self.unseen += [f"seed {self.seed}, {one}\n{self.story.end_of(name)}" for one in wrong]

    async def _unseen_of(self, name: str) -> list[str]:
        key, box_key = Key("default", name), box_of(name)
        owner, found = await self._read(Gadget, key), await self._read(ConfigMap, box_key)
        wrong = {f"Gadget {key}": _judge_gadget(self.gadgets.sights.get(key), owner, found)}
        if self.has_boxes:
            wrong[f"ConfigMap {box_key}"] = _judge_box(self.boxes.sights.get(box_key), found)
        return [f"{where}: {what}" for where, what in wrong.items() if what]

    async def _read(self, kind: type[T], key: Key) -> T | None:
        try:
            return await self.world.client.get(kind, key)
        except NotFound:
            return None

    # What strangers do

    async def _disturb(self, times: int) -> None:
        """Write so many times as somebody else, or break what is being read; what the server refuses is left."""
        for number in range(times):
            await asyncio.sleep(self.dice.choice((0, 0, self.dice.uniform(0, 0.3), self.dice.uniform(0, 4))))
            name, act = self.dice.choice(NAMES), self._any_act()
            with suppress(ApiError):
                await act(name, number)
                self.story.tell(name, f"a stranger did {act.__name__.strip('_')} {number}")

    def _any_act(self) -> Callable[[str, int], Awaitable[None]]:
        if self.dice.random() < self.breaks:
            return self.dice.choice((self._cut, self._end, self._expire))
        return self.dice.choice(
            (
                *(self._resize, self._fill, self._fill, self._fill, self._delete_box, self._make_box, self._make_box),
                *(self._make_box_anew, self._delete_gadget, self._make_gadget, self._make_gadget),
            )
        )

    async def _resize(self, name: str, number: int) -> None:
        await self.world.client.patch(Gadget, name, {"spec": {"size": number}})

    async def _fill(self, name: str, number: int) -> None:
        await self.world.client.patch(ConfigMap, box_of(name), {"data": {"stranger": str(number)}})

    async def _delete_box(self, name: str, number: int) -> None:
        await self.world.client.delete(ConfigMap, box_of(name))

    async def _make_box(self, name: str, number: int) -> None:
        owner = await self.world.client.get(Gadget, name)
        await self.world.client.create(box(name, {"stranger": str(number)}, owner=owner))

    async def _make_box_anew(self, name: str, number: int) -> None:
        await self.world.client.delete(ConfigMap, box_of(name), missing_ok=True)
        await self._make_box(name, number)

    async def _delete_gadget(self, name: str, number: int) -> None:
        await self.world.client.delete(Gadget, name)

    async def _make_gadget(self, name: str, number: int) -> None:
        await self.world.client.create(gadget(name, size=number))

    async def _cut(self, name: str, number: int) -> None:
        self._broken(self.world.way.reset_streams())

    async def _end(self, name: str, number: int) -> None:
        self._broken(self.world.way.close_streams())

    async def _expire(self, name: str, number: int) -> None:
        self.world.way.script.add(watches("configmaps"), status_response(410, reason="Expired"), times=1)
        self._broken(self.world.way.reset_streams())

    def _broken(self, streams: int) -> None:
        self.story.tell("", f"{streams} streams broke")


def _judge_gadget(sight: Sight | None, owner: Gadget | None, found: ConfigMap | None) -> str:
    """Say what the key of a gadget has not seen: the gadget, or a box that it owns or believes to own."""
    if sight is None or owner is None:
        return "" if sight is None and owner is None else f"the gadget is {_named(owner)}, seen was {sight}"
    if (sight.uid, sight.size) != (owner.uid, owner.spec.size):
        return f"the gadget is {_named(owner)} of size {owner.spec.size}, seen was {sight}"
    if not sight.owned and (found is None or not is_owned(found, owner.uid)):
        return ""
    return _differs(sight, sight.of_box(found, "gadget"))


def _judge_box(sight: Sight | None, found: ConfigMap | None) -> str:
    """Say what the key of a box has not seen of it; its end is told even to who brought it about."""
    if sight is None or found is None:
        return "" if sight is None and found is None else f"the box is {_named(found)}, seen was {sight}"
    return _differs(sight, sight.of_box(found, "box"))


def _differs(seen: Sight, now: Sight) -> str:
    same = (seen.box, seen.theirs) == (now.box, now.theirs)
    return "" if same else f"the box is {now.box or 'gone'} with {now.theirs}, seen was {seen}"


def _named(obj: Resource | None) -> str:
    return "gone" if obj is None else obj.uid


async def play_wakes(seed: int) -> WakePlay:
    """Play it, round after round, and give what came of it."""
    dice, story = Random(seed), Story()
    random.seed(seed)  # what the runtime draws its own chances from
    world = await world_with_gadgets()
    play = WakePlay(
        seed=seed,
        world=world,
        dice=dice,
        story=story,
        gadgets=Hand("gadget", dice, story),
        boxes=Hand("box", dice, story),
        has_boxes=dice.random() < 0.5,
        breaks=dice.choice((0.0, 0.1, 0.3)),
    )
    for name in NAMES:
        await world.client.create(gadget(name))
    async with _operator(play).running():
        for _ in range(ROUNDS):
            await play.round()
    return play


def _operator(play: WakePlay) -> Manager:
    dice, late = play.dice, (0, 0.01, 0.3, 1, 3)
    most = dice.choice(late)
    way = DelayedWatches(play.world.way, "configmaps", "gadgets", by=lambda: dice.uniform(0, most))
    client = Client(
        LateAnswers(way, dice, by=dice.choice(late), lost=dice.choice((0, 0, 0.1))),
        options=ClientOptions(namespace="default"),
    )
    manager = Manager(client, name="gadget-operator")
    runs = (FinalizedGadgetRuns if dice.random() < 0.3 else GadgetRuns)(play.gadgets)
    manager.add(controller_for(Gadget).predicate(anything).owns(ConfigMap).timeout(30).build(runs))
    if play.has_boxes:
        manager.add(controller_for(ConfigMap).timeout(30).build(BoxRuns(play.boxes)))
    return manager
