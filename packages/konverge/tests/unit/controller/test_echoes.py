"""A write of a reconcile does not enqueue its own key, and a write of another client always does."""

from __future__ import annotations

import asyncio

import pytest

from delayed_watches import DelayedWatches
from gadgets import Gadget, gadget, operating, world_with_gadgets
from konverge import (
    Client,
    Context,
    CustomResource,
    Key,
    Manager,
    ObjectMeta,
    Reconciler,
    Spec,
    Status,
    controller_for,
    crd_for,
)
from konverge.cache import Event
from konverge.client import ClientOptions
from konverge.k8s.core.v1 import ConfigMap
from konverge.reconcile.owner_references import controller_reference
from konverge.testing import settle
from konverge.triggers import anything

BOX = Key("default", "box")


def box(**data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="box", namespace="default"), data=data)


async def test_one_reconcile_is_enough_though_the_watch_is_faster_than_the_responses() -> None:
    world, runs = await world_with_gadgets(), []

    async def fill(obj: Gadget, ctx: Context) -> None:
        runs.append(obj.resource_version)
        await ctx.apply(box(text=obj.spec.text))
        obj.status.observed_generation = obj.metadata.generation or 0
        await ctx.update_status(obj)

    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(fill)):
        await world.client.create(gadget("lamp"))
        await settle()
    assert len(runs) == 1
    assert (await world.client.get(Gadget, "lamp")).status.observed_generation == 1


async def test_a_change_by_another_client_among_own_writes_enqueues() -> None:
    world, sizes = await world_with_gadgets(), []

    async def fill(obj: Gadget, ctx: Context) -> None:
        sizes.append(obj.spec.size)
        await ctx.apply(box(text=obj.spec.text))
        if len(sizes) == 1:
            await world.client.patch(Gadget, "lamp", {"spec": {"size": 7}})

    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(fill)):
        await world.client.create(gadget("lamp"))
        await settle()
    assert sizes == [1, 7]


async def test_a_write_that_changes_nothing_hides_no_change_by_another() -> None:
    """The response to such a write has the version that the other client made."""
    world, texts = await world_with_gadgets(), []
    may_write = asyncio.Event()

    async def fill(obj: Gadget, ctx: Context) -> None:
        found = await ctx.get(ConfigMap, BOX)
        texts.append((found.data or {}).get("text") if found is not None else "none")
        if len(texts) == 2:
            await may_write.wait()
        await ctx.client.using(field_manager="gadget-operator").apply(owned_by(obj), force=True)

    def owned_by(obj: Gadget) -> ConfigMap:
        made = box(ours="1")
        made.metadata.owner_references = [controller_reference(obj)]
        return made

    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(fill)):
        await world.client.create(gadget("lamp"))
        await settle()
        await world.client.patch(Gadget, "lamp", {"spec": {"size": 2}})
        await settle()
        await world.client.patch(ConfigMap, "box", {"data": {"text": "theirs"}})
        may_write.set()
        await settle()
    assert texts == ["none", None, "theirs"]


async def test_a_change_by_another_wakes_though_ten_thousand_keys_were_woken_since() -> None:
    """The journal forgets why the first of so many keys were woken; that they were is not forgotten."""
    world, sizes = await world_with_gadgets(), []
    crowd = [Key("default", f"crowd-{number}") for number in range(10_000)]

    def to_crowd(event: Event) -> list[Key]:
        return crowd if event.key == BOX else []

    async def fill(obj: Gadget, ctx: Context) -> None:
        sizes.append(obj.spec.size)
        if len(sizes) == 1:
            await world.client.patch(Gadget, "lamp", {"spec": {"size": 7}})
            await world.client.create(box())
            await asyncio.sleep(1)
        fresh = await ctx.client.get(Gadget, "lamp")
        fresh.status.parts = 1
        await ctx.update_status(fresh)

    builder = controller_for(Gadget).predicate(anything).max_concurrent_reconciles(1).watches(ConfigMap, to_crowd)
    async with operating(world, builder.build(fill)):
        await world.client.create(gadget("lamp"))
        await asyncio.sleep(60)
    assert sizes == [1, 7]


class Finalizing(Reconciler[Gadget]):
    """Finalizes an object, and records that it is gone."""

    finalizer = "test.konverge.dev/finalizing"

    def __init__(self) -> None:
        self.keys_gone: list[Key] = []

    async def reconcile(self, obj: Gadget, ctx: Context) -> None: ...

    async def finalize(self, obj: Gadget, ctx: Context) -> None: ...

    def gone(self, key: Key) -> None:
        self.keys_gone.append(key)


@pytest.mark.parametrize("late", [0.0, 0.5])
async def test_an_object_that_is_removed_by_an_own_write_is_gone_for_its_reconciler(late: float) -> None:
    world, finalizing = await world_with_gadgets(), Finalizing()
    transport = DelayedWatches(world.transport, "gadgets", by=late)
    manager = Manager(Client(transport, options=ClientOptions(namespace="default")), name="gadget-operator")
    manager.add(controller_for(Gadget).build(finalizing))
    async with manager.running():
        await world.client.create(gadget("lamp"))
        await asyncio.sleep(60)
        await world.client.delete(Gadget, "lamp")
        await asyncio.sleep(60)
    assert finalizing.keys_gone == [Key("default", "lamp")]


class RolloutStatus(Status):
    observed_generation: str = ""


class Rollout(CustomResource[Spec, RolloutStatus], group="test.konverge.dev", version="v1"):
    """A kind that holds a text where most hold a number."""


async def test_a_status_that_observes_a_text_can_be_written() -> None:
    world = await world_with_gadgets()
    await world.client.create(crd_for(Rollout))

    async def observe(obj: Rollout, ctx: Context) -> None:
        obj.status.observed_generation = "5d8f"
        await ctx.update_status(obj)

    async with operating(world, controller_for(Rollout).build(observe)) as manager:
        await world.client.create(Rollout(metadata=ObjectMeta(name="lamp", namespace="default"), spec=Spec()))
        await settle()
        (run,) = manager.why("rollout", Key("default", "lamp"))
    assert run["error"] == ""
    assert (await world.client.get(Rollout, "lamp")).status.observed_generation == "5d8f"
