"""Children that were created and deleted during a watch outage are created again."""

from __future__ import annotations

import asyncio

import pytest

from gadgets import Gadget, gadget, operating, world_with_gadgets
from konverge import Context, ObjectMeta, controller_for
from konverge.k8s.core.v1 import ConfigMap
from konverge.testing.faults import connection_refused, status_response, watches


@pytest.mark.parametrize("another", [False, True])
async def test_a_child_that_is_deleted_before_a_watch_delivered_it_is_created_again(another: bool) -> None:
    """It was never delivered, and no list has it: only the response to the own write had it."""
    world, runs = await world_with_gadgets(), []

    async def fill(obj: Gadget, ctx: Context) -> None:
        runs.append(obj.name)
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name="box"), data={"text": obj.spec.text}))

    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(fill)):
        await asyncio.sleep(10)
        with world.transport.script.active(watches("configmaps"), connection_refused()):
            world.transport.reset_streams()
            await asyncio.sleep(1)
            await world.client.create(gadget("lamp", text="bright"))
            await asyncio.sleep(5)
            await world.client.delete(ConfigMap, "box")
            if another:
                await world.client.create(ConfigMap(metadata=ObjectMeta(name="box"), data={"text": "dark"}))
        world.transport.script.add(watches("configmaps"), status_response(410, reason="Expired"), times=1)
        await asyncio.sleep(3600)

    assert (await world.client.get(ConfigMap, "box")).data == {"text": "bright"}
