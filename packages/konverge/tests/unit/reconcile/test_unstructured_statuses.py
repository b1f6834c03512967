"""The status of an unstructured object: it does not hold its original state, so that is read elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from gadgets import Gadget, World, gadget, operating, world_with_gadgets
from konverge import Context, Unstructured, controller_for
from konverge.cache import Cache
from konverge.errors import Conflict
from konverge.objects import kind_of
from konverge.reconcile.statuses import update_status
from konverge.testing import settle

KIND = kind_of(Gadget)


async def read(world: World) -> Unstructured:
    return await world.client.get(KIND, "lamp")


def gets(world: World) -> int:
    requests = world.transport.script.requests()
    return sum(one.method == "GET" and one.path.endswith("/gadgets/lamp") for one in requests)


@pytest.mark.parametrize("with_cache", [True, False])
async def test_an_object_that_is_not_cached_is_compared_with_the_server(with_cache: bool) -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("lamp"))
    client = world.operator_client()
    cache = Cache(client.collection) if with_cache else None
    obj = await read(world)
    assert await update_status(client, obj, cache=cache) == obj
    assert (gets(world), world.writes) == (1, [])
    obj["status"] = {"parts": 7}
    written: Any = await update_status(client, obj, cache=cache)
    assert written["status"]["parts"] == 7
    assert gets(world) == 2


async def test_a_cached_object_of_the_same_version_is_not_read() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("lamp"))
    results: list[int] = []

    async def reconcile(obj: Unstructured, ctx: Context) -> None:
        obj["status"] = {"parts": 7}
        await ctx.update_status(obj)
        results.append(gets(world))

    async with operating(world, controller_for(KIND).build(reconcile)):
        await settle()
    assert results[0] == 0
    assert (await read(world))["status"]["parts"] == 7


async def test_an_older_version_is_a_conflict_and_its_other_edits_are_not_looked_for() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("lamp"))
    obj = await read(world)
    await world.client.patch(Gadget, "lamp", {"spec": {"size": 7}})
    obj["status"] = {"parts": 7}
    with pytest.raises(Conflict):
        await update_status(world.client, obj)
    newer = await read(world)
    newer["spec"], newer["status"] = {"size": 8}, {"parts": 7}
    with pytest.raises(ValueError, match=r": \.spec\.size, \.spec\.text was edited too"):
        await update_status(world.client, newer)
