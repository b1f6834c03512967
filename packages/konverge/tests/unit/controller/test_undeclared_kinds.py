"""An apply of a kind that the controller does not declare: a warning says once what to write."""

from __future__ import annotations

import asyncio
import logging

import pytest

from gadgets import Gadget, World, gadget, operating, world_with_gadgets
from konverge import Context, controller_for
from konverge.controller import Builder
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import Unstructured


def config_map(name: str) -> ConfigMap:
    obj = ConfigMap(data={"a": "1"})
    obj.metadata.name = name
    return obj


async def warnings_of(
    builder: Builder[Gadget], caplog: pytest.LogCaptureFixture, *, owned: bool = True, typed: bool = True
) -> list[str]:
    """Run a controller that applies two ConfigMaps for each of two gadgets; return what the warnings say to add."""

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        for name in (f"{obj.name}-a", f"{obj.name}-b"):
            metadata = {"name": name, "namespace": "default"}
            untyped = Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
            await ctx.apply(config_map(name) if typed else untyped, owned=owned)

    world: World = await world_with_gadgets()
    with caplog.at_level(logging.WARNING, logger="konverge.controller"):
        async with operating(world, builder.build(reconcile)):
            await world.client.create(gadget("one"))
            await world.client.create(gadget("two"))
            await asyncio.sleep(5)
    assert len(list(await world.client.list(ConfigMap))) == 4
    found = [record for record in caplog.records if record.getMessage() == "kind applied but not declared"]
    assert {getattr(one, "controller", "") for one in found} <= {"gadget"}
    return [getattr(one, "add", "") for one in found]


@pytest.mark.parametrize("typed", [True, False], ids=["typed", "untyped"])
async def test_an_undeclared_child_is_reported_once_with_what_to_write(
    typed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    assert await warnings_of(controller_for(Gadget), caplog, typed=typed) == [".owns(ConfigMap)"]


async def test_an_undeclared_object_without_an_owner_needs_permissions(caplog: pytest.LogCaptureFixture) -> None:
    found = await warnings_of(controller_for(Gadget), caplog, owned=False)
    assert found == ['.needs(ConfigMap, "get", "create", "patch")']


async def test_a_declared_kind_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    assert await warnings_of(controller_for(Gadget).owns(ConfigMap), caplog) == []


@pytest.mark.parametrize("owned", [True, False])
async def test_permissions_are_a_declaration(owned: bool, caplog: pytest.LogCaptureFixture) -> None:
    builder = controller_for(Gadget).needs(ConfigMap, "get", "create", "patch")
    assert await warnings_of(builder, caplog, owned=owned) == []


async def test_a_status_permission_is_no_declaration(caplog: pytest.LogCaptureFixture) -> None:
    builder = controller_for(Gadget).needs(ConfigMap, "patch", subresource="status")
    assert await warnings_of(builder, caplog) == [".owns(ConfigMap)"]
