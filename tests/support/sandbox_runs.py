"""Two reconcilers that write at random, and record what they have seen of the writes of others.

A gadget `g0` has a box `box-g0`, a ConfigMap. `GadgetRuns` reconciles gadgets and owns boxes, `BoxRuns` reconciles the
boxes themselves. Each writes its own field to the box; all other fields are written by others, and it must see them.
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

__all__ = [
    "BoxRuns",
    "FinalizedGadgetRuns",
    "GadgetRuns",
    "Observation",
    "RandomWriter",
    "ScenarioLog",
    "box",
    "box_of",
    "is_owned",
]

TIMED_OUT = 100.0
"""The seconds that some reconciles hang: longer than the timeout of their controller."""


def box_of(name: str) -> Key:
    """Return the key of a gadget's box."""
    return Key("default", f"box-{name}")


def box(name: str, data: dict[str, str], *, owner: Gadget | None = None) -> ConfigMap:
    """Return the box of a gadget, with or without an owner."""
    references = [] if owner is None else [controller_reference(owner)]
    key = box_of(name)
    return ConfigMap(
        metadata=ObjectMeta(name=key.name, namespace=key.namespace, owner_references=references), data=data
    )


def is_owned(found: ConfigMap, uid: str) -> bool:
    """Report whether a box names this uid as an owner."""
    return any(one.uid == uid for one in found.metadata.owner_references or ())


@dataclass
class ScenarioLog:
    """A log of the scenario: each line with the time and the gadget that it is about ("" for all)."""

    lines: list[tuple[str, str]] = field(default_factory=list)

    def add(self, gadget: str, text: str) -> None:
        time = asyncio.get_running_loop().time()
        self.lines.append((gadget, f"{time:9.3f} {gadget or 'all'}: {text}"))

    def end_of(self, gadget: str, lines: int = 40) -> str:
        """Return the last lines about one gadget."""
        return "\n".join([line for name, line in self.lines if name in ("", gadget)][-lines:])


@dataclass(frozen=True)
class Observation:
    """What a key has seen: the object and its box as its last reconcile read them, and what that reconcile wrote."""

    uid: str = ""
    size: int = 0
    box: str = ""  # the uid; "" when there is none
    owned: bool = False
    theirs: dict[str, str] = field(default_factory=dict)

    def of_box(self, found: ConfigMap | None, field: str) -> Observation:
        """Return a copy with the current box; the writer's own `field` is left out."""
        if found is None:
            return replace(self, box="", owned=False, theirs={})
        theirs = {name: value for name, value in (found.data or {}).items() if name != field}
        return replace(self, box=found.uid, owned=is_owned(found, self.uid), theirs=theirs)


class RandomWriter:
    """Random writes for the reconciles of one controller, by every method of the client.

    A failed reconcile is not retried: only a change by another client enqueues its key again.
    """

    def __init__(self, field: str, dice: Random, log: ScenarioLog) -> None:
        self.field = field
        self.paused = False
        self.observations: dict[Key, Observation] = {}
        self._dice = dice
        self._log = log
        self._acts: tuple[Callable[[_Reconcile], Awaitable[None]], ...] = (
            *(self._patch_nothing, self._patch_nothing, self._apply, self._apply, self._apply_as_another, self._patch),
            *(self._update, self._update, self._put, self._patch_by_version, self._delete, self._create),
        )
        if field == "gadget":
            self._acts += (self._set_status, self._set_read_status, self._annotate)

    def begin(self, obj: Gadget | ConfigMap, found: ConfigMap | None) -> None:
        """Record what a reconcile reads."""
        size = obj.spec.size if isinstance(obj, Gadget) else 0
        self.observations[obj.key] = Observation(uid=obj.uid, size=size).of_box(found, self.field)
        self._add_line(obj.key, f"sees {self.observations[obj.key]}")

    def gone(self, key: Key) -> None:
        """Record that a reconciler was called for a deleted object."""
        self.observations.pop(key, None)
        self._add_line(key, "is gone")

    async def work(self, obj: Gadget | ConfigMap, ctx: Context) -> None:
        """Write a few times, or not at all; sometimes fail or hang."""
        it = _Reconcile(obj, ctx)
        try:
            for _ in range(self._dice.choice((0, 1, 1, 2, 3))):
                await self._wait(2)
                await self._act(it)
                self._fail_sometimes()
                await asyncio.sleep(TIMED_OUT if self._dice.random() < 0.05 else 0)
        except KonvergeError as error:
            self._add_line(ctx.key, f"fails: {type(error).__name__}")
            raise TerminalError(str(error)) from error

    async def _act(self, it: _Reconcile) -> None:
        if not self.paused:
            act = self._dice.choice(self._acts)
            self._add_line(it.key, f"tries to {act.__name__.strip('_')}")
            await act(it)
            self._add_line(it.key, f"did {act.__name__.strip('_')}")

    def _fail_sometimes(self) -> None:
        if self._dice.random() < 0.1:
            raise TerminalError("on purpose")

    async def _wait(self, most: float) -> None:
        await asyncio.sleep(self._dice.choice((0, 0, self._dice.uniform(0, most))))

    def _value(self) -> str:
        return str(self._dice.randrange(2))

    def _add_line(self, key: Key, text: str) -> None:
        self._log.add(key.name.removeprefix("box-"), f"{self.field} {text}")

    def _record_write(self, it: _Reconcile, response: ConfigMap) -> None:
        """Count an own write as seen; a result with changes of others enqueues the key."""
        observation = self.observations[it.key]
        made = observation.of_box(response, self.field)
        if made.box != observation.box and not made.theirs:
            self.observations[it.key] = made
        elif made.box == observation.box:
            self.observations[it.key] = replace(observation, owned=made.owned)

    # Writes of a box

    async def _apply(self, it: _Reconcile) -> None:
        desired = box(it.name, {self.field: self._value()})
        if isinstance(it.obj, Gadget):
            self._record_write(it, await it.ctx.apply(desired))
        else:
            self._record_write(it, await it.ctx.client.using(field_manager="boxes").apply(desired, force=True))

    async def _apply_as_another(self, it: _Reconcile) -> None:
        other = it.ctx.client.using(field_manager=f"another-{self.field}")
        self._record_write(it, await other.apply(box(it.name, {self.field: self._value()}), force=True))

    async def _patch_nothing(self, it: _Reconcile) -> None:
        await it.ctx.client.patch(ConfigMap, it.box, {"data": {}})

    async def _patch(self, it: _Reconcile) -> None:
        await it.ctx.client.patch(ConfigMap, it.box, {"data": {self.field: self._value()}})

    async def _update(self, it: _Reconcile) -> None:
        fresh = self._dice.random() < 0.5
        found = await (it.ctx.client.get(ConfigMap, it.box) if fresh else it.ctx.get(ConfigMap, it.box))
        if found is not None:
            await self._wait(0.5)
            found.data = {**(found.data or {}), self.field: self._value()}
            await it.ctx.client.update(found)

    async def _put(self, it: _Reconcile) -> None:
        found = await it.ctx.client.get("v1/ConfigMap", it.box)
        await self._wait(0.5)
        found.setdefault("data", {})[self.field] = self._value()
        await it.ctx.client.update(found)

    async def _patch_by_version(self, it: _Reconcile) -> None:
        found = await it.ctx.client.get(ConfigMap, it.box)
        patch = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": found.resource_version},
            {"op": "add", "path": "/metadata/annotations", "value": {f"by-{self.field}": self._value()}},
        ]
        await it.ctx.client.patch(ConfigMap, it.box, patch, patch_type="json")

    async def _delete(self, it: _Reconcile) -> None:
        found = await it.ctx.get(ConfigMap, it.box)
        if found is not None:
            await it.ctx.client.delete(found)
            self.observations[it.key] = self.observations[it.key].of_box(None, self.field)

    async def _create(self, it: _Reconcile) -> None:
        owner = it.obj if isinstance(it.obj, Gadget) else None
        self._record_write(it, await it.ctx.client.create(box(it.name, {self.field: self._value()}, owner=owner)))

    # Writes of a gadget

    async def _set_status(self, it: _Reconcile) -> None:
        await self._update_status(it, it.gadget())

    async def _set_read_status(self, it: _Reconcile) -> None:
        await self._update_status(it, await it.ctx.client.get(Gadget, it.key))

    async def _update_status(self, it: _Reconcile, found: Gadget) -> None:
        found.status.parts = int(self._value())
        await it.ctx.update_status(found)

    async def _annotate(self, it: _Reconcile) -> None:
        found = await it.ctx.client.get(Gadget, it.key)
        found.metadata.annotations["by-gadget"] = self._value()
        await it.ctx.client.update(found)


@dataclass(frozen=True)
class _Reconcile:
    """One reconcile: its object and its context."""

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
    """Reconciles gadgets and reads their boxes."""

    def __init__(self, writer: RandomWriter) -> None:
        self._writer = writer

    async def reconcile(self, obj: Gadget, ctx: Context) -> None:
        self._writer.begin(obj, await ctx.get(ConfigMap, box_of(obj.name)))
        await self._writer.work(obj, ctx)

    def gone(self, key: Key) -> None:
        self._writer.gone(key)


class FinalizedGadgetRuns(GadgetRuns):
    """Does the same, with a finalizer."""

    finalizer = "test.konverge.dev/finalized"

    async def finalize(self, obj: Gadget, ctx: Context) -> Result:
        return Result.done()


class BoxRuns(Reconciler[ConfigMap]):
    """Reconciles the boxes."""

    def __init__(self, writer: RandomWriter) -> None:
        self._writer = writer

    async def reconcile(self, obj: ConfigMap, ctx: Context) -> None:
        self._writer.begin(obj, obj)
        await self._writer.work(obj, ctx)

    def gone(self, key: Key) -> None:
        self._writer.gone(key)
