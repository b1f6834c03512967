"""Optional kinds: a controller runs without them, and takes them up when the server begins to serve them."""

from __future__ import annotations

from typing import Any

import pytest

from gadgets import Gadget, gadget
from konverge import Context, CustomResource, Manager, ObjectMeta, Spec, controller_for, crd_for
from konverge.cache import CacheOptions
from konverge.controller import Controller
from konverge.errors import NotSynced
from konverge_cluster.testing import TestCluster


class MonitorSpec(Spec):
    text: str = ""


class Monitor(CustomResource[MonitorSpec], group="monitors.example.com", version="v1"):
    """A kind that not every cluster has."""


def monitored(seen: list[bool], kind: Any = Monitor) -> Controller[Gadget]:
    async def reconcile(obj: Gadget, ctx: Context) -> None:
        seen.append(ctx.is_served(kind))
        if seen[-1]:
            await ctx.apply(Monitor(metadata=ObjectMeta(name=obj.name), spec=MonitorSpec(text="on")))
            await ctx.prune(kind)

    return controller_for(Gadget).owns(kind, options=CacheOptions(optional=True)).build(reconcile)


async def test_a_controller_runs_without_an_optional_kind_and_takes_it_up_later(cluster: TestCluster) -> None:
    seen: list[bool] = []
    client = await cluster.install(crd_for(Gadget))
    async with cluster.operator(monitored(seen)) as manager:
        await client.create(gadget("a"))
        await cluster.settle()
        assert seen == [False]
        assert not_ready(manager) == ""

        await cluster.install(crd_for(Monitor))
        await cluster.settle(quiet=120)
        assert seen[-1] is True
        assert (await client.get(Monitor, "a")).spec.text == "on"

        await client.delete(Monitor, "a")
        await cluster.settle()
        assert (await client.get(Monitor, "a")).spec.text == "on"


async def test_an_optional_kind_that_exists_is_waited_for(cluster: TestCluster) -> None:
    seen: list[bool] = []
    client = await cluster.install(crd_for(Gadget), crd_for(Monitor))
    await client.create(gadget("a"))
    async with cluster.operator(monitored(seen)):
        await cluster.settle()
    assert seen[0] is True


async def test_reads_of_a_kind_that_is_not_served_raise(cluster: TestCluster) -> None:
    errors: list[Exception] = []

    async def reconcile(_obj: Gadget, ctx: Context) -> None:
        with pytest.raises(NotSynced) as caught:
            ctx.owned(Monitor)
        errors.append(caught.value)

    client = await cluster.install(crd_for(Gadget))
    controller = controller_for(Gadget).owns(Monitor, options=CacheOptions(optional=True)).build(reconcile)
    async with cluster.operator(controller):
        await client.create(gadget("a"))
        await cluster.settle()
    assert errors


def not_ready(manager: Manager) -> str:
    (running,) = manager.stats()
    return running.not_ready_reason
