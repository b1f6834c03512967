"""Two reconcilers that write at random, and remember what they have seen of what others wrote.

A gadget `g0` has a box `box-g0`, a ConfigMap. `GadgetRuns` reconciles gadgets and owns boxes, `BoxRuns` reconciles the
boxes themselves. Each writes a field of its own to the box; all other fields are others' work, which it must see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from random import Random

from gadgets import Gadget
from konverge import Context, Key, ObjectMeta, Reconciler, Result, TerminalError
from konverge.errors import KonvergeError
from konverge.k8s.core.v1 import ConfigMap
from konverge.reconcile.owner_references import controller_reference

__all__ = ["BoxRuns", "FinalizedGadgetRuns", "GadgetRuns", "Hand", "Sight", "Story", "box", "box_of", "is_owned"]

TIMED_OUT = 100.0
"""So many seconds a run hangs at times: longer than its controller lets it."""


def box_of(name: str) -> Key:
    """Give the key of a gadget's box."""
    return Key("default", f"box-{name}")


def box(name: str, data: dict[str, str], *, owner: Gadget | None = None) -> ConfigMap:
    """Make the box of a gadget, as a child of it or of nobody."""
    references = [] if owner is None else [controller_reference(owner)]
    key = box_of(name)
    return ConfigMap(
        metadata=ObjectMeta(name=key.name, namespace=key.namespace, owner_references=references), data=data
    )


def is_owned(found: ConfigMap, uid: str) -> bool:
    """Tell whether a box names this uid as an owner."""
    return any(one.uid == uid for one in found.metadata.owner_references or ())


@dataclass
class Story:
    """What happened, a line each, with the time and the gadget that it is about ("" for all of them)."""

    lines: list[tuple[str, str]] = field(default_factory=list)

    def tell(self, about: str, said: str) -> None:
        time = asyncio.get_running_loop().time()
        self.lines.append((about, f"{time:9.3f} {about or 'all'}: {said}"))

    def end_of(self, about: str, lines: int = 40) -> str:
        """Give the last lines about one gadget."""
        return "\n".join([line for name, line in self.lines if name in ("", about)][-lines:])


@dataclass(frozen=True)
class Sight:
    """What a key knows: of the object and its box as its last run read them, and of what that run itself made since."""

    uid: str = ""
    size: int = 0
    box: str = ""  # the uid; "" when there is none
    owned: bool = False
    theirs: dict[str, str] = field(default_factory=dict)

    def of_box(self, found: ConfigMap | None, field: str) -> Sight:
        """Give the sight with a box as it is; the writer's own `field` is not told by others."""
        if found is None:
            return replace(self, box="", owned=False, theirs={})
        theirs = {name: value for name, value in (found.data or {}).items() if name != field}
        return replace(self, box=found.uid, owned=is_owned(found, self.uid), theirs=theirs)


class Hand:
    """Writes for the runs of one controller, in any way that the client knows, as dice decide.

    A run that fails fails for good: only a wake by somebody else's change can bring its key back.
    """

    def __init__(self, field: str, dice: Random, story: Story) -> None:
        self.field = field
        self.resting = False
        self.sights: dict[Key, Sight] = {}
        self._dice = dice
        self._story = story
        self._acts: tuple[Callable[[_Turn], Awaitable[None]], ...] = (
            *(self._patch_nothing, self._patch_nothing, self._apply, self._apply, self._apply_as_another, self._patch),
            *(self._update, self._update, self._put, self._patch_by_version, self._delete, self._create),
        )
        if field == "gadget":
            self._acts += (self._set_status, self._set_read_status, self._annotate)

    def begin(self, obj: Gadget | ConfigMap, found: ConfigMap | None) -> None:
        """Note what a run reads."""
        size = obj.spec.size if isinstance(obj, Gadget) else 0
        self.sights[obj.key] = Sight(uid=obj.uid, size=size).of_box(found, self.field)
        self._tell(obj.key, f"sees {self.sights[obj.key]}")

    def gone(self, key: Key) -> None:
        """Note that a key was told of the end of its object."""
        self.sights.pop(key, None)
        self._tell(key, "is told of its end")

    async def work(self, obj: Gadget | ConfigMap, ctx: Context) -> None:
        """Write a few times, or not at all; at times fail on the way, or hang."""
        turn = _Turn(obj, ctx)
        try:
            for _ in range(self._dice.choice((0, 1, 1, 2, 3))):
                await self._wait(2)
                await self._act(turn)
                self._fail_at_times()
                await asyncio.sleep(TIMED_OUT if self._dice.random() < 0.05 else 0)
        except KonvergeError as error:
            self._tell(ctx.key, f"fails: {type(error).__name__}")
            raise TerminalError(str(error)) from error

    async def _act(self, turn: _Turn) -> None:
        if not self.resting:
            act = self._dice.choice(self._acts)
            self._tell(turn.key, f"tries to {act.__name__.strip('_')}")
            await act(turn)
            self._tell(turn.key, f"did {act.__name__.strip('_')}")

    def _fail_at_times(self) -> None:
        if self._dice.random() < 0.1:
            raise TerminalError("on purpose")

    async def _wait(self, most: float) -> None:
        await asyncio.sleep(self._dice.choice((0, 0, self._dice.uniform(0, most))))

    def _value(self) -> str:
        return str(self._dice.randrange(2))

    def _tell(self, key: Key, said: str) -> None:
        self._story.tell(key.name.removeprefix("box-"), f"{self.field} {said}")

    def _made(self, turn: _Turn, answer: ConfigMap) -> None:
        """Take what the run made itself for seen; what others had a part in wakes."""
        sight = self.sights[turn.key]
        made = sight.of_box(answer, self.field)
        if made.box != sight.box and not made.theirs:
            self.sights[turn.key] = made
        elif made.box == sight.box:
            self.sights[turn.key] = replace(sight, owned=made.owned)

    # Ways to write a box

    async def _apply(self, turn: _Turn) -> None:
        desired = box(turn.name, {self.field: self._value()})
        if isinstance(turn.obj, Gadget):
            self._made(turn, await turn.ctx.apply(desired))
        else:
            self._made(turn, await turn.ctx.client.using(field_manager="boxes").apply(desired, force=True))

    async def _apply_as_another(self, turn: _Turn) -> None:
        other = turn.ctx.client.using(field_manager=f"another-{self.field}")
        self._made(turn, await other.apply(box(turn.name, {self.field: self._value()}), force=True))

    async def _patch_nothing(self, turn: _Turn) -> None:
        await turn.ctx.client.patch(ConfigMap, turn.box, {"data": {}})

    async def _patch(self, turn: _Turn) -> None:
        await turn.ctx.client.patch(ConfigMap, turn.box, {"data": {self.field: self._value()}})

    async def _update(self, turn: _Turn) -> None:
        fresh = self._dice.random() < 0.5
        found = await (turn.ctx.client.get(ConfigMap, turn.box) if fresh else turn.ctx.get(ConfigMap, turn.box))
        if found is not None:
            await self._wait(0.5)
            found.data = {**(found.data or {}), self.field: self._value()}
            await turn.ctx.client.update(found)

    async def _put(self, turn: _Turn) -> None:
        found = await turn.ctx.client.get("v1/ConfigMap", turn.box)
        await self._wait(0.5)
        found.setdefault("data", {})[self.field] = self._value()
        await turn.ctx.client.update(found)

    async def _patch_by_version(self, turn: _Turn) -> None:
        found = await turn.ctx.client.get(ConfigMap, turn.box)
        patch = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": found.resource_version},
            {"op": "add", "path": "/metadata/annotations", "value": {f"by-{self.field}": self._value()}},
        ]
        await turn.ctx.client.patch(ConfigMap, turn.box, patch, patch_type="json")

    async def _delete(self, turn: _Turn) -> None:
        found = await turn.ctx.get(ConfigMap, turn.box)
        if found is not None:
            await turn.ctx.client.delete(found)
            self.sights[turn.key] = self.sights[turn.key].of_box(None, self.field)

    async def _create(self, turn: _Turn) -> None:
        owner = turn.obj if isinstance(turn.obj, Gadget) else None
        self._made(turn, await turn.ctx.client.create(box(turn.name, {self.field: self._value()}, owner=owner)))

    # Ways to write a gadget

    async def _set_status(self, turn: _Turn) -> None:
        await self._update_status(turn, turn.gadget())

    async def _set_read_status(self, turn: _Turn) -> None:
        await self._update_status(turn, await turn.ctx.client.get(Gadget, turn.key))

    async def _update_status(self, turn: _Turn, found: Gadget) -> None:
        found.status.parts = int(self._value())
        await turn.ctx.update_status(found)

    async def _annotate(self, turn: _Turn) -> None:
        found = await turn.ctx.client.get(Gadget, turn.key)
        found.metadata.annotations["by-gadget"] = self._value()
        await turn.ctx.client.update(found)


@dataclass(frozen=True)
class _Turn:
    """One run: its object and its context."""

    obj: Gadget | ConfigMap
    ctx: Context

    @property
    def key(self) -> Key:
        return self.obj.key

    @property
    def name(self) -> str:
        return self.obj.name.removeprefix("box-")

    @property
    def box(self) -> Key:
        return box_of(self.name)

    def gadget(self) -> Gadget:
        assert isinstance(self.obj, Gadget)
        return self.obj


class GadgetRuns(Reconciler[Gadget]):
    """Reconciles gadgets and looks at their boxes."""

    def __init__(self, hand: Hand) -> None:
        self._hand = hand

    async def reconcile(self, obj: Gadget, ctx: Context) -> None:
        self._hand.begin(obj, await ctx.get(ConfigMap, box_of(obj.name)))
        await self._hand.work(obj, ctx)

    def gone(self, key: Key) -> None:
        self._hand.gone(key)


class FinalizedGadgetRuns(GadgetRuns):
    """Does the same, and holds each gadget until it is finalized."""

    finalizer = "test.konverge.dev/held"

    async def finalize(self, obj: Gadget, ctx: Context) -> Result:
        return Result.done()


class BoxRuns(Reconciler[ConfigMap]):
    """Reconciles the boxes."""

    def __init__(self, hand: Hand) -> None:
        self._hand = hand

    async def reconcile(self, obj: ConfigMap, ctx: Context) -> None:
        self._hand.begin(obj, obj)
        await self._hand.work(obj, ctx)

    def gone(self, key: Key) -> None:
        self._hand.gone(key)
