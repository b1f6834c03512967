"""Hot loops are detected, and reconciles with new input are not reported."""

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


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.__dict__["reason"] for record in caplog.records if record.getMessage() == "hot loop detected"]


class Stamping(Reconciler[Gadget]):
    """Applies different content in each of its first reconciles, such as a date."""

    def __init__(self, runs: int) -> None:
        self.runs = 0
        self._most = runs

    async def reconcile(self, obj: Gadget, ctx: Context) -> Result:
        self.runs += 1
        await ctx.apply(box(text=obj.spec.text, stamp=str(min(self.runs, self._most))))
        return Result.requeue(after=1) if self.runs <= self._most else Result.done()


async def test_a_date_in_the_desired_state_is_detected(caplog: pytest.LogCaptureFixture) -> None:
    world, stamping = await world_with_gadgets(), Stamping(runs=15)
    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(stamping)) as manager:
        await world.client.create(gadget("lamp", text="bright"))
        await asyncio.sleep(60)
        why = manager.why("gadget", LAMP)

    (warning,) = warnings(caplog)
    assert "wrote ConfigMap default/box in 10 reconciles in a row" in warning
    assert ".data.stamp keeps changing" in warning
    (record,) = [one for one in caplog.records if one.getMessage() == "hot loop detected"]
    assert record.levelno == logging.WARNING
    assert (record.controller, record.key) == ("gadget", "default/lamp")  # type: ignore[attr-defined]
    assert stamping.runs == 16  # no reconcile is delayed, and the last one writes nothing
    texts = [run["warning"] for run in why]
    assert "in 15 reconciles in a row" in texts[1]
    assert texts[0] == ""
    assert "warning   wrote ConfigMap default/box in 15 reconciles" in render(why)


async def test_each_reconcile_of_a_hot_loop_is_counted() -> None:
    world = await world_with_gadgets()
    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(Stamping(runs=15))) as manager:
        await world.client.create(gadget("lamp"))
        await asyncio.sleep(60)
        assert manager._running is not None
        registry = manager._running.monitoring.registry
        counted = registry.get_sample_value("konverge_hot_loop_reconciles_total", {"controller": "gadget"})
    assert counted == 15 - HOT_LOOP_RECONCILES + 1


async def test_two_controllers_that_set_the_same_field_are_detected(caplog: pytest.LogCaptureFixture) -> None:
    world, patches = await world_with_gadgets(), itertools.count()

    async def other(obj: ConfigMap, ctx: Context) -> None:
        if obj.data and obj.data["text"] == "ours" and next(patches) < 12:
            await ctx.client.patch(ConfigMap, obj.key, {"data": {"text": "theirs"}})

    async def ours(obj: Gadget, ctx: Context) -> None:
        await ctx.apply(box(text="ours", more=obj.spec.text))

    mine = controller_for(Gadget).owns(ConfigMap).build(ours)
    async with operating(world, mine, controller_for(ConfigMap).named("other").build(other)):
        await world.client.create(gadget("lamp"))
        await settle()

    texts = {text.split("wrote")[1].split("(")[0] for text in warnings(caplog)}
    assert texts == {" ConfigMap default/box in 10 reconciles in a row without new input: .data.text keeps changing "}
    assert {getattr(one, "controller", "") for one in caplog.records if "hot loop" in one.getMessage()} >= {"gadget"}


async def test_a_client_that_reverts_now_and_then_is_detected(caplog: pytest.LogCaptureFixture) -> None:
    world = await world_with_gadgets()

    async def ours(obj: Gadget, ctx: Context) -> None:
        await ctx.apply(box(text="ours", more=obj.spec.text))

    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(ours)):
        await world.client.create(gadget("lamp"))
        for _ in range(HOT_LOOP_RECONCILES - 1):
            await asyncio.sleep(180)  # long enough for a reconcile that writes nothing
            await world.client.patch(ConfigMap, Key("default", "box"), {"data": {"text": "theirs"}})
            await settle()
            assert (await world.client.get(ConfigMap, Key("default", "box"))).data == {"text": "ours", "more": ""}

    (warning,) = warnings(caplog)
    assert ": .data.text keeps changing" in warning


async def test_a_client_that_deletes_the_child_is_detected(caplog: pytest.LogCaptureFixture) -> None:
    world = await world_with_gadgets()

    async def ours(obj: Gadget, ctx: Context) -> None:
        await ctx.apply(box(text=obj.spec.text))

    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(ours)):
        await world.client.create(gadget("lamp"))
        for _ in range(HOT_LOOP_RECONCILES):
            await settle()
            await world.client.delete(ConfigMap, Key("default", "box"))
        await settle()

    (warning,) = warnings(caplog)
    assert "it is deleted by another client" in warning


async def warnings_during(
    caplog: pytest.LogCaptureFixture,
    reconcile: Callable[[Gadget, Context], Awaitable[Any]],
    world: World,
    meanwhile: Callable[[int], Awaitable[Any]],
) -> list[str]:
    """Run a controller, call `meanwhile` fifteen times, and return the warnings."""
    async with operating(world, controller_for(Gadget).owns(ConfigMap).owns(Deployment).build(reconcile)):
        await world.client.create(gadget("lamp"))
        for number in range(15):
            await asyncio.sleep(40)
            await meanwhile(number)
        await settle()
    return warnings(caplog)


async def test_a_spec_that_changes_often_is_not_a_hot_loop(caplog: pytest.LogCaptureFixture) -> None:
    world = await world_with_gadgets()

    async def follow(obj: Gadget, ctx: Context) -> None:
        await ctx.apply(box(text=obj.spec.text))

    async def change(number: int) -> None:
        await world.client.patch(Gadget, LAMP, {"spec": {"text": str(number)}})

    assert await warnings_during(caplog, follow, world, change) == []
    assert (await world.client.get(ConfigMap, Key("default", "box"))).data == {"text": "14"}


async def test_a_status_may_be_written_in_every_reconcile(caplog: pytest.LogCaptureFixture) -> None:
    world, numbers = await world_with_gadgets(), itertools.count()

    async def beat(obj: Gadget, ctx: Context) -> Result:
        obj.status.parts = next(numbers)
        await ctx.update_status(obj)
        return Result.requeue(after=30)

    assert await warnings_during(caplog, beat, world, lambda _: asyncio.sleep(0)) == []


async def test_a_lease_may_be_written_in_every_reconcile(caplog: pytest.LogCaptureFixture) -> None:
    world, numbers = await world_with_gadgets(), itertools.count()
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a", "namespace": "default"}}
    await world.client.create(Unstructured({**lease, "spec": {}}))

    async def renew(obj: Gadget, ctx: Context) -> Result:
        await ctx.client.patch(Lease, Key("default", "a"), {"spec": {"leaseTransitions": next(numbers)}})
        return Result.requeue(after=30)

    assert await warnings_during(caplog, renew, world, lambda _: asyncio.sleep(0)) == []
    assert next(numbers) > HOT_LOOP_RECONCILES


async def test_a_write_that_changes_nothing_does_not_count(caplog: pytest.LogCaptureFixture) -> None:
    world = await world_with_gadgets()
    await world.client.create(box())

    async def patch(obj: Gadget, ctx: Context) -> Result:
        await ctx.client.patch(ConfigMap, Key("default", "box"), {"data": {"text": obj.spec.text}})
        return Result.requeue(after=30)

    assert await warnings_during(caplog, patch, world, lambda _: asyncio.sleep(0)) == []


async def test_a_rollout_step_by_step_is_not_a_hot_loop(caplog: pytest.LogCaptureFixture) -> None:
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

    assert await warnings_during(caplog, step, world, become_ready) == []
    assert (await world.client.get(Deployment, key)).spec.replicas == 16


async def test_events_of_a_channel_and_of_other_objects_are_new_input(caplog: pytest.LogCaptureFixture) -> None:
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
    assert warnings(caplog) == []


async def test_a_reconcile_that_fails_before_it_writes_does_not_reset_the_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world, numbers = await world_with_gadgets(), itertools.count()
    await world.client.create(box())

    async def every_other(obj: Gadget, ctx: Context) -> Result:
        number = next(numbers)
        if number % 2:
            raise Conflict("another client wrote first")
        await ctx.client.patch(ConfigMap, Key("default", "box"), {"data": {"stamp": str(number)}})
        return Result.requeue(after=5)

    async with operating(world, controller_for(Gadget).build(every_other)):
        await world.client.create(gadget("lamp"))
        await asyncio.sleep(120)
    assert len(warnings(caplog)) >= 1


async def test_an_operator_that_edits_its_own_object_in_each_reconcile_is_detected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world, numbers = await world_with_gadgets(), itertools.count()

    async def edit(obj: Gadget, ctx: Context) -> Result:
        obj.spec.text = str(next(numbers))
        await ctx.client.update(obj)
        return Result.requeue(after=5)

    async with operating(world, controller_for(Gadget).build(edit)):
        await world.client.create(gadget("lamp"))
        await asyncio.sleep(70)
    (warning,) = warnings(caplog)
    assert "wrote Gadget default/lamp" in warning
    assert ".spec.text keeps changing" in warning
