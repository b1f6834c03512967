"""Prune: which children are deleted, how, and what a stale cache changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from delayed_watches import DelayedWatches
from gadgets import Gadget, World, gadget, world_with_gadgets
from konverge import Client, Context, Key, Manager, ObjectMeta, controller_for
from konverge.client import ClientOptions, InProcessTransport
from konverge.k8s.core.v1 import ConfigMap, Pod, Secret
from konverge.objects import LabelSelector, OwnerReference, kind_of
from konverge.reconcile.applied import AppliedObjects
from konverge.reconcile.prune import prune
from konverge.wire import Request, Response


def child(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, labels={"tier": name}), data=data)


class Deletes:
    """A server that records the bodies of deletes."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.bodies: list[dict[str, Any]] = []

    async def handle(self, request: Request) -> Response:
        if request.method == "DELETE":
            self.bodies.append(json.loads(request.body))
        return await self.world.server.handle(request)


async def first_reconcile(
    world: World, reconcile: Callable[[Gadget, Context], Awaitable[Any]], *, stale: bool = False
) -> tuple[Any, list[dict[str, Any]]]:
    """Run a function in one reconcile of a gadget; return its result, and the bodies of the deletes.

    With a stale cache no watch delivers anything.
    """
    await world.client.create(gadget("a"))
    results: list[Any] = []

    async def once(obj: Gadget, ctx: Context) -> None:
        if not results:
            results.append(None)
            try:
                results[0] = await reconcile(obj, ctx)
            except Exception as error:
                results[0] = error

    deletes = Deletes(world)
    transport = DelayedWatches(InProcessTransport(deletes.handle), "configmaps", by=3600 if stale else 0)
    manager = Manager(Client(transport, options=ClientOptions(namespace="default")), name="gadget-operator")
    manager.add(controller_for(Gadget).owns(ConfigMap).watches(Secret, lambda _: ()).build(once))
    async with manager.running():
        await asyncio.sleep(200)
    if isinstance(results[0], Exception):
        raise results[0]
    return results[0], deletes.bodies


async def remove(obj: Gadget, ctx: Context, **options: Any) -> list[Key]:
    """Prune as a new reconcile would, which has applied nothing."""
    manager = "gadget-operator"
    return await prune(
        ctx.client,
        ctx.cache,
        obj,
        AppliedObjects(),
        kinds=options.pop("kinds", (ConfigMap,)),
        manager=manager,
        **options,
    )


async def test_children_are_deleted_with_their_own_children_and_their_keys_are_returned() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> list[Key]:
        for name in ("one", "two"):
            await ctx.apply(child(name))
        return await remove(obj, ctx, labels=LabelSelector.parse("tier!=two"))

    deleted, (body,) = await first_reconcile(world, reconcile)
    assert deleted == [Key("default", "one")]
    assert {one.name for one in await world.client.list(ConfigMap)} == {"two"}
    assert body["propagationPolicy"] == "Background"
    assert sorted(body["preconditions"]) == ["resourceVersion", "uid"]


async def test_a_child_that_is_gone_already_is_no_error() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> list[Key]:
        await ctx.apply(child("one"))
        await world.client.delete(ConfigMap, "one")
        return await remove(obj, ctx)

    assert (await first_reconcile(world, reconcile, stale=True))[0] == [Key("default", "one")]


async def test_a_child_that_another_client_changed_is_deleted_after_its_owner_was_read() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> list[Key]:
        await ctx.apply(child("one"))
        await world.client.patch(ConfigMap, "one", {"data": {"by": "hand"}})
        return await remove(obj, ctx)

    deleted, (first, second) = await first_reconcile(world, reconcile, stale=True)
    assert deleted == [Key("default", "one")]
    assert list(await world.client.list(ConfigMap)) == []
    assert sorted(first["preconditions"]) == ["resourceVersion", "uid"]
    assert (second["propagationPolicy"], list(second["preconditions"])) == ("Background", ["uid"])


async def test_only_what_this_manager_applied_and_is_not_being_deleted_is_pruned() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> list[Key]:
        reference = OwnerReference(api_version=obj.api_version, kind=obj.kind, name="a", uid=obj.uid)
        theirs = ObjectMeta(name="theirs", namespace="default", owner_references=[reference])
        await world.client.create(ConfigMap(metadata=theirs))
        held = child("held")
        held.metadata.finalizers = ["test.konverge.dev/held"]
        await ctx.apply(held)
        await world.client.delete(ConfigMap, "held")
        await asyncio.sleep(1)
        return await remove(obj, ctx)

    assert await first_reconcile(world, reconcile) == ([], [])
    assert {one.name for one in await world.client.list(ConfigMap)} == {"theirs", "held"}


async def test_a_kind_that_is_not_cached_with_its_managers_is_an_error_that_says_what_to_write() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        with pytest.raises(ValueError) as caught:
            await remove(obj, ctx, kinds=(Pod,))
        assert str(caught.value) == "prune of Pod needs its objects in the cache: declare it with owns(Pod)"
        with pytest.raises(ValueError) as caught:
            await remove(obj, ctx, kinds=(kind_of(Secret),))
        expected = "prune of Secret needs CacheOptions(manager='gadget-operator'), to see what was applied"
        assert str(caught.value) == expected

    await first_reconcile(world, reconcile)
