"""Keys that come to no rest are found out, and those that have reason to write are left alone."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gadgets import Gadget, World, gadget, operating, world_with_gadgets
from konverge import Context, Key, ObjectMeta, Reconciler, Result, Unstructured, controller_for
from konverge.errors import Conflict
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.coordination.v1 import Lease
from konverge.k8s.core.v1 import ConfigMap
from konverge.reconcile.hot_loops import HOT_LOOP_RECONCILES
from konverge.reconcile.journal import render
from konverge.testing import settle
from konverge.triggers import Channel, to_keys

LAMP = Key("default", "lamp")


def box(**data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="box", namespace="default"), data=data)


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.getMessage().startswith("Never at rest")]


class Stamping(Reconciler[Gadget]):
    """Writes something else in each of its first runs: a date in what is wanted."""

    def __init__(self, runs: int) -> None:
        self.runs = 0
        self._most = runs

    async def reconcile(self, obj: Gadget, ctx: Context) -> Result:
        self.runs += 1
        await ctx.apply(box(text=obj.spec.text, stamp=str(min(self.runs, self._most))))
        return Result.requeue(after=1) if self.runs <= self._most else Result.done()


async def test_a_date_in_what_is_wanted_is_found_out(caplog: pytest.LogCaptureFixture) -> None:
    world, stamping = await world_with_gadgets(), Stamping(runs=15)
    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(stamping)) as manager:
        await world.client.create(gadget("lamp", text="bright"))
        await asyncio.sleep(60)
        why = manager.why("gadget", LAMP)

    (complaint,) = complaints(caplog)
    assert "wrote ConfigMap default/box in 10 runs in a row" in complaint
    assert ".data.stamp keeps changing" in complaint
    (record,) = [one for one in caplog.records if one.getMessage() == complaint]
    assert record.levelno == logging.WARNING
    assert (record.controller, record.key) == ("gadget", "default/lamp")  # type: ignore[attr-defined]
    assert stamping.runs == 16  # it is not held up, and the last run finds all as it should be
    warnings = [run["warning"] for run in why]
    assert "in 15 runs in a row" in warnings[1]
    assert warnings[0] == ""
    assert "warning    wrote ConfigMap default/box in 15 runs" in render(why)


async def test_each_run_too_many_is_counted() -> None:
    world = await world_with_gadgets()
    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(Stamping(runs=15))) as manager:
        await world.client.create(gadget("lamp"))
        await asyncio.sleep(60)
        assert manager._running is not None
        registry = manager._running.monitoring.registry
        counted = registry.get_sample_value("konverge_hot_loop_reconciles_total", {"controller": "gadget"})
    assert counted == 15 - HOT_LOOP_RECONCILES + 1


async def test_two_who_set_the_same_field_are_found_out(caplog: pytest.LogCaptureFixture) -> None:
    world, answers = await world_with_gadgets(), itertools.count()

    async def other(obj: ConfigMap, ctx: Context) -> None:
        if obj.data and obj.data["text"] == "ours" and next(answers) < 12:
            await ctx.client.patch(ConfigMap, obj.key, {"data": {"text": "theirs"}})

    async def ours(obj: Gadget, ctx: Context) -> None:
        await ctx.apply(box(text="ours", more=obj.spec.text))

    mine = controller_for(Gadget).owns(ConfigMap).build(ours)
    async with operating(world, mine, controller_for(ConfigMap).named("other").build(other)):
        await world.client.create(gadget("lamp"))
        await settle()

    told = {text.split("wrote")[1].split("(")[0] for text in complaints(caplog)}
    assert told == {" ConfigMap default/box in 10 runs in a row, with nothing new to do: .data.text keeps changing "}
    assert {getattr(one, "controller", "") for one in caplog.records if "Never" in one.getMessage()} >= {"gadget"}


async def test_one_who_changes_it_back_now_and_then_is_found_out(caplog: pytest.LogCaptureFixture) -> None:
    world = await world_with_gadgets()

    async def ours(obj: Gadget, ctx: Context) -> None:
        await ctx.apply(box(text="ours", more=obj.spec.text))

    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(ours)):
        await world.client.create(gadget("lamp"))
        for _ in range(HOT_LOOP_RECONCILES - 1):
            await asyncio.sleep(180)  # time enough for a run that finds all as it should be
            await world.client.patch(ConfigMap, Key("default", "box"), {"data": {"text": "theirs"}})
            await settle()
            assert (await world.client.get(ConfigMap, Key("default", "box"))).data == {"text": "ours", "more": ""}

    (complaint,) = complaints(caplog)
    assert ": .data.text keeps changing" in complaint


async def test_one_who_deletes_what_is_made_is_found_out(caplog: pytest.LogCaptureFixture) -> None:
    world = await world_with_gadgets()

    async def ours(obj: Gadget, ctx: Context) -> None:
        await ctx.apply(box(text=obj.spec.text))

    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(ours)):
        await world.client.create(gadget("lamp"))
        for _ in range(HOT_LOOP_RECONCILES):
            await settle()
            await world.client.delete(ConfigMap, Key("default", "box"))
        await settle()

    (complaint,) = complaints(caplog)
    assert "somebody deletes it" in complaint


async def silent(
    caplog: pytest.LogCaptureFixture,
    reconcile: Callable[[Gadget, Context], Awaitable[Any]],
    world: World,
    meanwhile: Callable[[int], Awaitable[Any]],
) -> list[str]:
    """Run a controller, do something fifteen times, and give what was complained about."""
    async with operating(world, controller_for(Gadget).owns(ConfigMap).owns(Deployment).build(reconcile)):
        await world.client.create(gadget("lamp"))
        for number in range(15):
            await asyncio.sleep(40)
            await meanwhile(number)
        await settle()
    return complaints(caplog)


async def test_a_spec_that_changes_often_is_a_reason_to_write(caplog: pytest.LogCaptureFixture) -> None:
    world = await world_with_gadgets()

    async def follow(obj: Gadget, ctx: Context) -> None:
        await ctx.apply(box(text=obj.spec.text))

    async def change(number: int) -> None:
        await world.client.patch(Gadget, LAMP, {"spec": {"text": str(number)}})

    assert await silent(caplog, follow, world, change) == []
    assert (await world.client.get(ConfigMap, Key("default", "box"))).data == {"text": "14"}


async def test_a_status_may_be_written_in_every_run(caplog: pytest.LogCaptureFixture) -> None:
    world, numbers = await world_with_gadgets(), itertools.count()

    async def beat(obj: Gadget, ctx: Context) -> Result:
        obj.status.parts = next(numbers)
        await ctx.update_status(obj)
        return Result.requeue(after=30)

    assert await silent(caplog, beat, world, lambda _: asyncio.sleep(0)) == []


async def test_a_lease_may_be_written_in_every_run(caplog: pytest.LogCaptureFixture) -> None:
    world, numbers = await world_with_gadgets(), itertools.count()
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a", "namespace": "default"}}
    await world.client.create(Unstructured({**lease, "spec": {}}))

    async def renew(obj: Gadget, ctx: Context) -> Result:
        await ctx.client.patch(Lease, Key("default", "a"), {"spec": {"leaseTransitions": next(numbers)}})
        return Result.requeue(after=30)

    assert await silent(caplog, renew, world, lambda _: asyncio.sleep(0)) == []
    assert next(numbers) > HOT_LOOP_RECONCILES


async def test_a_write_that_changes_nothing_is_none(caplog: pytest.LogCaptureFixture) -> None:
    world = await world_with_gadgets()
    await world.client.create(box())

    async def patch(obj: Gadget, ctx: Context) -> Result:
        await ctx.client.patch(ConfigMap, Key("default", "box"), {"data": {"text": obj.spec.text}})
        return Result.requeue(after=30)

    assert await silent(caplog, patch, world, lambda _: asyncio.sleep(0)) == []


async def test_a_rollout_step_by_step_is_no_fight(caplog: pytest.LogCaptureFixture) -> None:
    world = await world_with_gadgets()
    key = Key("default", "lamp")

    async def step(obj: Gadget, ctx: Context) -> None:
        child = await ctx.get(Deployment, "lamp")
        ready = 0 if child is None or child.status is None else child.status.replicas or 0
        label = {"matchLabels": {"app": "lamp"}}
        pod = {"containers": [{"name": "a", "image": "a"}]}
        template = {"metadata": {"labels": {"app": "lamp"}}, "spec": pod}
        spec = {"replicas": ready + 1, "selector": label, "template": template}
        head = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "lamp", "namespace": "default"}}
        await ctx.apply(Unstructured({**head, "spec": spec}))

    async def become_ready(number: int) -> None:
        await world.client.patch(Deployment, key, {"status": {"replicas": number + 1}}, subresource="status")

    assert await silent(caplog, step, world, become_ready) == []
    assert (await world.client.get(Deployment, key)).spec.replicas == 16


async def test_what_a_channel_and_other_objects_tell_is_a_reason_to_write(caplog: pytest.LogCaptureFixture) -> None:
    world, numbers, channel = await world_with_gadgets(), itertools.count(), Channel()
    for name in ("box", "source"):
        await world.client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data={}))

    async def copy(obj: Gadget, ctx: Context) -> None:
        target = await ctx.client.get(ConfigMap, Key("default", "box"))
        target.data = {"text": str(next(numbers))}
        await ctx.client.update(target)

    sources = to_keys(lambda obj: [LAMP] if obj.name == "source" else [], ConfigMap)
    controller = controller_for(Gadget).watches(ConfigMap, sources).channel(channel).build(copy)
    async with operating(world, controller):
        await world.client.create(gadget("lamp"))
        for number in range(30):
            await settle()
            if number % 2:
                channel.put(LAMP)
            else:
                await world.client.patch(ConfigMap, Key("default", "source"), {"data": {"text": str(number)}})
        await settle()
    assert next(numbers) > 2 * HOT_LOOP_RECONCILES
    assert complaints(caplog) == []


async def test_a_run_that_fails_before_it_writes_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    world, numbers = await world_with_gadgets(), itertools.count()
    await world.client.create(box())

    async def every_other(obj: Gadget, ctx: Context) -> Result:
        number = next(numbers)
        if number % 2:
            raise Conflict("somebody else wrote first")
        await ctx.client.patch(ConfigMap, Key("default", "box"), {"data": {"stamp": str(number)}})
        return Result.requeue(after=5)

    async with operating(world, controller_for(Gadget).build(every_other)):
        await world.client.create(gadget("lamp"))
        await asyncio.sleep(120)
    assert len(complaints(caplog)) >= 1


async def test_an_operator_that_edits_its_own_object_in_each_run_is_found_out(caplog: pytest.LogCaptureFixture) -> None:
    world, numbers = await world_with_gadgets(), itertools.count()

    async def edit(obj: Gadget, ctx: Context) -> Result:
        obj.spec.text = str(next(numbers))
        await ctx.client.update(obj)
        return Result.requeue(after=5)

    async with operating(world, controller_for(Gadget).build(edit)):
        await world.client.create(gadget("lamp"))
        await asyncio.sleep(70)
    (complaint,) = complaints(caplog)
    assert "wrote Gadget default/lamp" in complaint
    assert ".spec.text keeps changing" in complaint
