"""A write that is answered with 409 is repeated, whichever it is: nothing is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from gadgets import Gadget, World, gadget, operating, world_with_gadgets
from konverge import Context, ObjectMeta, Reconciler, controller_for
from konverge.errors import Conflict
from konverge.k8s.core.v1 import ConfigMap, Secret
from konverge.testing.faults import RecordedRequest, status_response

CONFLICT = status_response(409, reason="Conflict", message="the object has been modified")
FINALIZER = "test.konverge.dev/gadget"


class GadgetReconciler(Reconciler[Gadget]):
    """Uses every kind of write: create, apply, update, status, finalizer, delete and prune."""

    finalizer = FINALIZER

    async def reconcile(self, obj: Gadget, ctx: Context) -> None:
        await ctx.create_once(Secret(metadata=ObjectMeta(name="password")))
        for number in range(obj.spec.size):
            await ctx.apply(config_map(f"part-{number}", text=obj.spec.text))
        await ctx.prune(ConfigMap)
        await self.mark_and_clean(obj, ctx)
        obj.status.parts = obj.spec.size
        await ctx.update_status(obj)

    async def mark_and_clean(self, obj: Gadget, ctx: Context) -> None:
        """Label the secret, and delete a ConfigMap that the operator does not own."""
        secret = await ctx.get(Secret, "password")
        if secret is not None and secret.metadata.labels.get("text") != obj.spec.text:
            secret.metadata.labels["text"] = obj.spec.text
            await ctx.client.update(secret)
        obsolete = await ctx.get(ConfigMap, "obsolete")
        if obsolete is not None:
            await ctx.delete(obsolete)

    async def finalize(self, obj: Gadget, ctx: Context) -> None:
        for part in ctx.owned(ConfigMap):
            await ctx.delete(part)


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data=data)


def is_create(request: RecordedRequest) -> bool:
    return request.method == "POST" and request.path.endswith("/secrets")


def is_apply(request: RecordedRequest) -> bool:
    return request.method == "PATCH" and "/configmaps/" in request.path


def is_update(request: RecordedRequest) -> bool:
    return request.method == "PATCH" and "/secrets/" in request.path


def is_status(request: RecordedRequest) -> bool:
    return request.path.endswith("/gadgets/a/status")


def is_finalizer(request: RecordedRequest) -> bool:
    return request.method == "PATCH" and request.path.endswith("/gadgets/a")


def is_delete(request: RecordedRequest) -> bool:
    return request.method == "DELETE" and request.path.endswith("/obsolete")


def is_prune(request: RecordedRequest) -> bool:
    return request.method == "DELETE" and "/part-" in request.path


WRITES = [is_create, is_apply, is_update, is_status, is_finalizer, is_delete, is_prune]


@pytest.mark.parametrize("seconds", [0.0, 60.0], ids=["once", "for a minute"])
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
async def test_a_conflict_of_any_write_is_not_forgotten(
    write: Callable[[RecordedRequest], bool], seconds: float
) -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a", size=3, text="one"))
    await world.client.create(config_map("obsolete"))

    async with operating(world, controller_for(Gadget).owns(ConfigMap).owns(Secret).build(GadgetReconciler())):
        await conflicting(world, write, seconds)
        assert await content(world) == (["part-0", "part-1", "part-2"], "one", 3)

        edited = await world.client.get(Gadget, "a")
        edited.spec.size, edited.spec.text = 1, "two"
        await world.client.update(edited)
        await conflicting(world, write, seconds)
        assert await content(world) == (["part-0"], "two", 1)

        await world.client.delete(edited)
        await conflicting(world, write, seconds)
        assert not await world.client.list(Gadget)
        assert not await world.client.list(ConfigMap)


async def conflicting(world: World, write: Callable[[RecordedRequest], bool], seconds: float) -> None:
    """Answer these writes with 409, once or for some time, and wait for the backoff after it."""
    script = world.transport.script
    rule = script.add(write, CONFLICT, times=None if seconds else 1)
    await asyncio.sleep(seconds)
    if seconds:
        script.remove(rule)
    await asyncio.sleep(seconds + 10)
    script.remove(rule)


async def content(world: World) -> tuple[list[str], str, int]:
    """Return the names of the ConfigMaps, the label of the Secret, and the status."""
    maps = sorted(one.name for one in await world.client.list(ConfigMap))
    secret = await world.client.get(Secret, "password")
    found = await world.client.get(Gadget, "a")
    return maps, secret.metadata.labels["text"], found.status.parts


async def test_a_conflict_of_one_child_does_not_keep_the_others_and_is_raised() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a", size=3))
    raised: list[Conflict] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        for number in range(obj.spec.size):
            await ctx.apply(config_map(f"part-{number}"))
        try:
            await ctx.prune(ConfigMap)
        except Conflict as error:
            raised.append(error)

    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(reconcile)):
        await asyncio.sleep(1)
        edited = await world.client.get(Gadget, "a")
        edited.spec.size = 0
        world.transport.script.add(lambda one: one.method == "DELETE" and one.path.endswith("part-0"), CONFLICT)
        await world.client.update(edited)
        await asyncio.sleep(1)

        assert [one.name for one in await world.client.list(ConfigMap)] == ["part-0"]
        assert raised
