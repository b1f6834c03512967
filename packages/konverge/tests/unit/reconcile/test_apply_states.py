"""What an applier remembers of each apply, and what it does without it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gadgets import Gadget, World, gadget, operating, world_with_gadgets
from konverge import Client, Context, ObjectMeta, Unstructured, controller_for
from konverge.cache import Cache
from konverge.client import ClientOptions, InProcessTransport
from konverge.errors import AlreadyOwned
from konverge.k8s.core.v1 import ConfigMap
from konverge.reconcile.apply import Applier
from konverge.reconcile.last_applied import LastApplied
from konverge.testing import settle
from konverge.wire import Request
from konverge_cluster.api.responses import Response


def box(name: str = "box", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data=data)


def unstructured_box(**data: str) -> Unstructured:
    metadata = {"name": "box", "namespace": "default"}
    return Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def patches(world: World) -> int:
    return sum(one.method == "PATCH" for one in world.transport.script.requests())


def applier(client: Client, last_applied: LastApplied | None = None) -> Applier:
    return Applier(client, Cache(client.collection), field_manager="us", last_applied=last_applied)


@pytest.mark.parametrize("make", [box, unstructured_box])
async def test_an_uncached_object_that_matches_is_read_and_not_written(make: Any) -> None:
    world = World()
    one, other = applier(world.operator_client()), applier(world.operator_client())
    await one.apply(make(a="1"))
    for again in (one, one, other):
        live: Any = await again.apply(make(a="1"))
        assert (live.name, patches(world)) == ("box", 1)
    await other.apply(make(a="2"))
    assert patches(world) == 2
    assert (await world.client.get(ConfigMap, "box")).data == {"a": "2"}


async def test_states_of_cached_objects_are_kept_while_they_exist() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("lamp"))
    last_applied, sizes = LastApplied(unchecked=0), list[int]()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        if sizes:
            return
        made = Applier(ctx.client, ctx.cache, field_manager="gadget-operator", last_applied=last_applied)
        for number in range(6):
            await made.apply(box(f"box-{number}"))
        sizes.append(len(last_applied))
        for number in range(6):
            await ctx.client.delete(ConfigMap, f"box-{number}")
        for number in range(6):
            await made.apply(box(f"later-{number}"))
        sizes.append(len(last_applied))

    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(reconcile)):
        await settle()
    assert sizes == [6, 6]


async def test_a_server_that_does_not_report_owned_fields_gets_every_apply() -> None:
    world = World()

    async def without_managed_fields(request: Request) -> Response:
        response: Any = await world.server.handle(request)
        document = json.loads(response.body)
        if "managedFields" in document.get("metadata", {}):
            del document["metadata"]["managedFields"]
        return Response(response.status, json.dumps(document).encode())

    client = Client(InProcessTransport(without_managed_fields), options=ClientOptions(namespace="default"))
    last_applied = LastApplied()
    one = applier(client, last_applied)
    for text in ("1", "1", "2"):
        assert (await one.apply(box(a=text))).data == {"a": text}
        assert len(last_applied) == 0
    await one.apply(ConfigMap(metadata=ObjectMeta(name="empty", namespace="default")))
    assert len(last_applied) == 1, "an object that sets no fields needs none"


async def test_a_dry_run_is_not_remembered() -> None:
    world, last_applied = World(), LastApplied()
    await applier(world.client.using(dry_run=True), last_applied).apply(box(a="1"))
    assert len(last_applied) == 0
    assert list(await world.client.list(ConfigMap)) == []


TAKEN = (
    "apply ConfigMap default/box: its controller is Gadget first, so Gadget second cannot own it (use other names"
    " for its children)"
)


@pytest.mark.parametrize("cached", [True, False])
async def test_the_child_of_another_controller_is_left_alone(cached: bool) -> None:
    world, errors = await world_with_gadgets(), list[str]()
    first, second = [await world.client.create(gadget(name)) for name in ("first", "second")]
    await applier(world.client).apply(box(a="1"), owner=first)

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        if obj.name == "second":
            try:
                await ctx.apply(box(a="2"), recreate=True)
            except AlreadyOwned as error:
                errors.append(str(error))

    builder = controller_for(Gadget)
    async with operating(world, (builder.owns(ConfigMap) if cached else builder).build(reconcile)):
        await settle()
    live = await world.client.get(ConfigMap, "box")
    assert errors == [TAKEN]
    assert (live.data, [one.uid for one in live.metadata.owner_references]) == ({"a": "1"}, [first.uid])
    assert second.uid != first.uid
