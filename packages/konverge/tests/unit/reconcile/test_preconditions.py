"""Applies carry what the cache knows; what the server refuses is read from it, and only then decided."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from delayed_watches import DelayedWatches
from gadgets import Gadget, World, gadget, operating, world_with_gadgets
from konverge import Client, Context, Manager, ObjectMeta, controller_for
from konverge.client import ClientOptions
from konverge.errors import Conflict
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import OwnerReference
from konverge.testing.fault_transport import FaultTransport


def settings(**data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="settings"), data=data)


def requests(transport: FaultTransport) -> list[str]:
    """Return the requests for single objects, without those for the status."""
    found = [f"{one.method} {one.path.rpartition('/')[2]}" for one in transport.script.requests()]
    return [one for one in found if one.endswith((" settings", " a"))]


async def test_nothing_is_read_in_normal_operation() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a", text="one"))

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        await ctx.apply(settings(text=obj.spec.text) if obj.spec.size else settings())
        await ctx.prune(ConfigMap)

    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(reconcile)):
        for text in ("two", "three"):
            await asyncio.sleep(10)
            edited = await world.client.get(Gadget, "a")
            edited.spec.text = text
            await world.client.update(edited)
        await asyncio.sleep(10)

    assert (await world.client.get(ConfigMap, "settings")).data == {"text": "three"}
    assert requests(world.transport) == ["PATCH settings"] * 3


def stale(world: World, reconcile: Any) -> Manager:
    """Return a manager whose watches deliver nothing for an hour."""
    transport = DelayedWatches(world.transport, "configmaps", "gadgets", by=3600)
    manager = Manager(Client(transport, options=ClientOptions(namespace="default")), name="gadget-operator")
    manager.add(controller_for(Gadget).owns(ConfigMap).build(reconcile))
    return manager


@pytest.mark.parametrize("exists", [True, False])
async def test_a_child_that_was_replaced_is_read_and_then_applied(exists: bool) -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a"))
    done: list[str] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        if done:
            return
        await ctx.apply(settings(text="one"))
        await world.client.delete(ConfigMap, "settings")
        if exists:
            await world.client.create(settings(text="by hand"))
        done.append((await ctx.apply(settings(text="two"))).uid)

    async with stale(world, reconcile).running():
        await asyncio.sleep(200)

    found = await world.client.get(ConfigMap, "settings")
    assert ([found.uid], found.data) == (done, {"text": "two"})
    assert requests(world.transport) == ["PATCH settings"] * 2 + ["GET a", "GET settings", "PATCH settings"]


async def replace_owner(client: Client) -> None:
    """Delete the owner and create it again; the new one gets the child."""
    await client.delete(Gadget, "a")
    new = await client.create(gadget("a"))
    child = await client.get(ConfigMap, "settings")
    child.metadata.owner_references = [
        OwnerReference(api_version=new.api_version, kind=new.kind, name="a", uid=new.uid, controller=True)
    ]
    await client.update(child)


async def test_nothing_is_written_for_an_owner_that_was_replaced() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a"))
    errors: list[Conflict] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        if errors:
            return
        await ctx.apply(settings(text="one"))
        await replace_owner(world.client)
        for write in (ctx.apply(settings(text="two"), recreate=True), prune_all(ctx)):
            with pytest.raises(Conflict, match="Gadget default/a was deleted and created again") as caught:
                await write
            errors.append(caught.value)

    async def prune_all(ctx: Context) -> None:
        ctx._applied._objects.clear()
        await ctx.prune(ConfigMap)

    async with stale(world, reconcile).running():
        await asyncio.sleep(200)

    assert len(errors) == 2
    assert (await world.client.get(ConfigMap, "settings")).data == {"text": "one"}


async def test_a_child_of_a_later_owner_is_not_adopted_if_only_the_cache_of_the_owner_is_stale() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a"))
    errors: list[Conflict] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        if errors:
            return
        await ctx.apply(settings(text="one"))
        await replace_owner(world.client)
        await asyncio.sleep(10)  # the watch of the children delivers it
        with pytest.raises(Conflict, match="Gadget default/a was deleted and created again") as caught:
            await ctx.apply(settings(text="two"), recreate=True)
        errors.append(caught.value)

    transport = DelayedWatches(world.transport, "gadgets", by=3600)
    manager = Manager(Client(transport, options=ClientOptions(namespace="default")), name="gadget-operator")
    manager.add(controller_for(Gadget).owns(ConfigMap).build(reconcile))
    async with manager.running():
        await asyncio.sleep(200)

    assert len(errors) == 1
    assert (await world.client.get(ConfigMap, "settings")).data == {"text": "one"}
