"""An operator of three kinds for crash campaigns, and a user whose steps follow from a number.

A Fleet owns Widgets, a Widget owns ConfigMaps and has an entry in a ledger, a Gadget owns ConfigMaps that cannot be
changed and a Secret that is created once. All have finalizers: so the operator knows that an owner is gone before
garbage collection deletes a child, whichever watch is late, and does not create the child again.
"""

from __future__ import annotations

from random import Random
from typing import Annotated, Any, TypeAlias

from gadgets import Gadget, gadget
from konverge import (
    Context,
    Controller,
    CustomResource,
    Meta,
    ObjectMeta,
    Operator,
    Reconciler,
    Spec,
    Status,
    controller_for,
)
from konverge.k8s.core.v1 import ConfigMap, Secret
from konverge_cluster.testing import Simulation, TestCluster
from simulation_scenarios import OpenLedger
from widget_operator import Widget, Widgets, WidgetSpec, widgets
from widget_rigs import widget

__all__ = ["STEPS", "Fleet", "RandomUser", "SmallCluster", "campaign_operator"]

STEPS = 15


class SmallCluster(TestCluster):
    """A cluster with garbage collection, and without controllers that have nothing to do here."""

    def builtin_controllers(self) -> tuple[Controller[Any], ...]:
        return tuple(one for one in super().builtin_controllers() if one.name == "namespace-controller")


class FleetSpec(Spec):
    size: Annotated[int, Meta(ge=0)] = 1
    payload: str = ""


class FleetStatus(Status):
    ready: int = 0


class Fleet(CustomResource[FleetSpec, FleetStatus], group="contract.konverge.dev", version="v1"):
    """A number of Widgets."""


class Fleets(Reconciler[Fleet]):
    finalizer = "contract.konverge.dev/fleet"

    async def reconcile(self, obj: Fleet, ctx: Context) -> None:
        for number in range(obj.spec.size):
            spec = WidgetSpec(replicas=1, payload=obj.spec.payload)
            await ctx.apply(Widget(metadata=ObjectMeta(name=f"{obj.name}-{number}"), spec=spec))
        await ctx.prune(Widget)
        obj.status.ready = sum(one.status.ready for one in ctx.owned(Widget))
        await ctx.update_status(obj)

    async def finalize(self, obj: Fleet, ctx: Context) -> None:
        """Release the object at once."""


class Gadgets(Reconciler[Gadget]):
    finalizer = "test.konverge.dev/gadget"

    async def reconcile(self, obj: Gadget, ctx: Context) -> None:
        await ctx.create_once(Secret(metadata=ObjectMeta(name=f"{obj.name}-token"), string_data={"token": "once"}))
        for number in range(obj.spec.size):
            name = ObjectMeta(name=f"{obj.name}-{number}")
            await ctx.apply(ConfigMap(metadata=name, data={"text": obj.spec.text}, immutable=True), recreate=True)
        await ctx.prune(ConfigMap)
        obj.status.parts = len(ctx.owned(ConfigMap))
        obj.status.observed_generation = obj.metadata.generation or 0
        await ctx.update_status(obj)

    async def finalize(self, obj: Gadget, ctx: Context) -> None:
        """Release the object at once."""


def campaign_operator(ledger: OpenLedger) -> Operator:
    return Operator(
        name="campaign-operator",
        controllers=(
            controller_for(Fleet).owns(Widget).build(Fleets()),
            widgets().build(Widgets(ledger)),
            controller_for(Gadget).owns(ConfigMap).owns(Secret).build(Gadgets()),
        ),
    )


Owner: TypeAlias = type[Fleet] | type[Widget] | type[Gadget]

NAMES: tuple[tuple[Owner, str], ...] = ((Fleet, "f"), (Widget, "v"), (Widget, "w"), (Gadget, "g"), (Gadget, "h"))


class RandomUser:
    """Creates, edits and deletes owners, and deletes and edits children by hand: the same steps for the same number."""

    def __init__(self, sim: Simulation[OpenLedger], number: int) -> None:
        self._client = sim.client
        self._random = Random(number)
        self._living: dict[str, Owner] = {}

    async def act(self) -> None:
        """Take one step; the first ones create something of each kind."""
        missing = [(kind, name) for kind, name in NAMES if name not in self._living]
        kinds = set(self._living.values())
        if len(kinds) < 3:
            missing = [one for one in missing if one[0] not in kinds]
            await self._create(*self._random.choice(missing))
        else:
            actions = [self._edit, self._edit, self._delete, self._delete_child, self._edit_child]
            action = self._random.choice([*actions, self._create_missing] if missing else actions)
            await action()

    async def _create_missing(self) -> None:
        await self._create(*self._random.choice([one for one in NAMES if one[1] not in self._living]))

    async def _create(self, kind: Owner, name: str) -> None:
        size, text = self._random.randint(1, 2), self._text()
        if kind is Fleet:
            fleet = Fleet(metadata=ObjectMeta(name=name), spec=FleetSpec(size=size, payload=text))
            await self._client.create(fleet)
        elif kind is Widget:
            await self._client.create(widget(name, replicas=size, payload=text))
        else:
            await self._client.create(gadget(name, size=size, text=text))
        self._living[name] = kind

    async def _edit(self) -> None:
        name = self._random.choice(sorted(self._living))
        kind, size, text = self._living[name], self._random.randint(0, 3), self._text()
        fields = {Fleet: ("size", "payload"), Widget: ("replicas", "payload"), Gadget: ("size", "text")}[kind]
        await self._client.patch(kind, name, {"spec": {fields[0]: size, fields[1]: text}})

    async def _delete(self) -> None:
        name = self._random.choice(sorted(self._living))
        await self._client.delete(self._living.pop(name), name, propagation="Background")

    async def _delete_child(self) -> None:
        child = await self._child()
        if child is not None:
            await self._client.delete(ConfigMap, child.name)

    async def _edit_child(self) -> None:
        child = await self._child()
        if child is not None and not child.immutable:
            await self._client.patch(ConfigMap, child.name, {"data": {"payload": "wrong"}})

    async def _child(self) -> ConfigMap | None:
        owned = [one for one in await self._client.list(ConfigMap) if one.metadata.owner_references]
        return self._random.choice(sorted(owned, key=lambda one: one.name)) if owned else None

    def _text(self) -> str:
        return f"text-{self._random.randrange(1000)}"
