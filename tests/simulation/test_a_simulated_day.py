"""A day of an operator on virtual time: every timestamp has the date of that day."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from gadgets import Gadget, gadget
from konverge import Context, ObjectMeta, Result, controller_for, crd_for
from konverge.k8s.core.v1 import ConfigMap
from konverge.k8s.events.v1 import Event
from konverge.objects import Unstructured, now, to_wire
from konverge_cluster.testing import TestCluster


async def check_every_hour(obj: Gadget, ctx: Context) -> Result:
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=obj.name), data={"size": str(obj.spec.size)}))
    if ctx.condition(obj, "Large", obj.spec.size > 1, reason="Checked"):
        ctx.event("SizeChanged", f"it has size {obj.spec.size}")
        await ctx.update_status(obj)
    return Result.requeue(after=3600)


async def test_events_and_conditions_have_the_date_of_the_simulated_day(cluster: TestCluster) -> None:
    client = await cluster.install(Unstructured(to_wire(crd_for(Gadget))))
    async with cluster.operator(controller_for(Gadget).owns(ConfigMap).build(check_every_hour)):
        created = await client.create(gadget("lamp"))
        await asyncio.sleep(86_400)
        changed = now()
        await client.patch(Gadget, created.key, {"spec": {"size": 2}})
        await cluster.settle()

    # The event of the first day has expired, as on every server: events live for an hour.
    (event_time,) = [event.event_time for event in await client.list(Event) if event.reason == "SizeChanged"]
    (condition,) = (await client.get(Gadget, created.key)).status.conditions
    creation, transition = created.metadata.creation_timestamp, condition.last_transition_time
    assert event_time is not None
    assert creation is not None
    assert transition is not None
    assert abs(changed - event_time) < timedelta(minutes=1)
    assert abs(transition - changed) < timedelta(minutes=1)
    assert changed - creation >= timedelta(days=1)
