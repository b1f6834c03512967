"""Mappers that read the cache, resyncs, several controllers for one kind, and the cache-sync timeout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gadgets import Gadget, World, gadget, operating, world_with_gadgets
from konverge import (
    Client,
    Context,
    Controller,
    Key,
    Manager,
    ObjectMeta,
    Reconciler,
    Unstructured,
    controller_for,
    crd_for,
)
from konverge.cache import CacheOptions, by_function
from konverge.client import InProcessTransport
from konverge.errors import NotSynced
from konverge.k8s.core.v1 import ConfigMap, Namespace, Secret
from konverge.testing import settle
from konverge.testing.faults import RecordedRequest, status_response
from konverge.triggers import CacheReader, generation_changed, to_keys, to_referring


def secret(name: str, value: str = "", namespace: str = "default") -> Secret:
    return Secret(metadata=ObjectMeta(name=name, namespace=namespace), string_data={"value": value})


def recorded(runs: list[str]) -> Callable[[Gadget, Context], Any]:
    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(obj.name)

    return reconcile


def of_gadgets(request: RecordedRequest) -> bool:
    return request.path.endswith("/gadgets")


async def world_with_secrets() -> World:
    """Return a world where gadgets a and b refer to the Secret shared, and c to another one."""
    world = await world_with_gadgets()
    for name in ("shared", "other"):
        await world.client.create(secret(name))
    for name, text in (("a", "shared"), ("b", "shared"), ("c", "other")):
        await world.client.create(gadget(name, text=text))
    return world


async def change(client: Client, name: str) -> None:
    await client.patch(Secret, name, {"stringData": {"value": "new"}})


@pytest.mark.parametrize("metadata_only", [False, True])
async def test_a_shared_secret_enqueues_every_object_that_refers_to_it(metadata_only: bool) -> None:
    world, runs = await world_with_secrets(), list[str]()
    controller = (
        controller_for(Gadget)
        .index(Gadget, "secret", ".spec.text")
        .watches(Secret, to_referring(Gadget, index="secret"), options=CacheOptions(metadata_only=metadata_only))
        .build(recorded(runs))
    )
    async with operating(world, controller):
        await settle()
        assert sorted(runs) == ["a", "b", "c"]

        runs.clear()
        await change(world.client, "shared")
        await settle()
        assert sorted(runs) == ["a", "b"]

        await world.client.patch(Gadget, "b", {"spec": {"text": "other"}})
        await settle()
        runs.clear()
        await world.client.delete(Secret, "other")
        await settle()
        assert sorted(runs) == ["b", "c"]


async def test_a_name_refers_to_the_same_namespace_and_a_key_to_any() -> None:
    world, runs = await world_with_secrets(), list[str]()
    await world.client.create(Namespace(metadata=ObjectMeta(name="shop")))

    def referenced(obj: Gadget) -> list[Key]:
        return [Key("shop", obj.spec.text)]

    names = controller_for(Gadget).index(Gadget, "secret", ".spec.text")
    keys = controller_for(Gadget).index(Gadget, "secret", by_function(Gadget, referenced)).named("keys")
    for builder, expected in ((names, []), (keys, ["a", "b"])):
        mapped = builder.watches(Secret, to_referring(Gadget, index="secret")).build(recorded(runs))
        async with operating(world, mapped):
            await settle()
            runs.clear()
            await world.client.create(secret("shared", namespace="shop"))
            await settle()
            assert sorted(runs) == expected
            await world.client.delete(Secret, "shared", namespace="shop")


async def test_an_undecodable_object_is_enqueued_by_what_it_refers_to() -> None:
    world = World()
    crd = crd_for(Gadget)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await world.client.create(crd)
    wrong = {"apiVersion": "test.konverge.dev/v1", "kind": "Gadget", "spec": {"size": "many", "text": "shared"}}
    wrong["metadata"] = {"name": "a", "namespace": "default"}
    await world.client.create(Unstructured(wrong))
    controller = (
        controller_for(Gadget)
        .index(Gadget, "secret", ".spec.text")
        .watches(Secret, to_referring(Gadget, index="secret"))
        .build(recorded([]))
    )
    async with operating(world, controller) as manager:
        await settle()
        before = len(manager.why("gadget", Key("default", "a")))
        await world.client.create(secret("shared"))
        await settle()
        assert len(manager.why("gadget", Key("default", "a"))) == before + 1


async def test_a_mapper_function_reads_objects_lists_and_indexes() -> None:
    world, seen = await world_with_secrets(), list[tuple[Any, ...]]()

    def mapped(obj: Secret, reader: CacheReader) -> list[Key]:
        one = reader.get(Gadget, "a", namespace=obj.namespace)
        assert one is not None
        found = reader.find(Gadget, "secret", obj.name, namespace=obj.namespace)
        seen.append((one.spec.text, len(reader.list(Gadget)), tuple(sorted(each.name for each in found))))
        return [each.key for each in found]

    controller = (
        controller_for(Gadget)
        .index(Gadget, "secret", ".spec.text")
        .watches(Secret, to_keys(mapped, Secret))
        .build(recorded([]))
    )
    async with operating(world, controller):
        await settle()
        seen.clear()
        await change(world.client, "other")
        await settle()
        assert set(seen) == {("shared", 3, ("c",))}


async def test_a_metadata_only_watch_passes_metadata_to_mappers_and_leaves_reads_to_the_server() -> None:
    world, mapped, read = await world_with_gadgets(), list[Any](), list[Any]()
    await world.client.create(secret("shared", "full"))
    await world.client.create(gadget("a", text="shared"))

    def keys_of(obj: Secret, reader: CacheReader) -> list[Key]:
        cached = reader.get(Secret, obj.key)
        assert cached is not None
        mapped.append((obj.name, obj.data, cached.data, obj.kind))
        return [Key(obj.namespace, "a")]

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        found = await ctx.get(Secret, obj.spec.text)
        assert found is not None
        read.append(found.data)
        with pytest.raises(ValueError, match="Secret is not cached"):
            ctx.find(Secret, "any", "value")

    options = CacheOptions(metadata_only=True)
    controller = controller_for(Gadget).watches(Secret, to_keys(keys_of, Secret), options=options).build(reconcile)
    async with operating(world, controller):
        await settle()
    assert mapped == [("shared", {}, {}, "Secret")]
    assert read == [{"value": b"full"}]


async def test_a_change_before_the_referring_kind_is_listed_is_not_lost_and_not_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world, runs = await world_with_secrets(), list[str]()
    controller = (
        controller_for(Gadget)
        .index(Gadget, "secret", ".spec.text")
        .watches(Secret, to_referring(Gadget, index="secret"))
        .build(recorded(runs))
    )
    async with AsyncExitStack() as stack:
        with world.transport.script.active(of_gadgets, status_response(503)):
            await stack.enter_async_context(operating(world, controller))
            await asyncio.sleep(5)
            await change(world.client, "shared")
            await settle()
            assert runs == []
        await asyncio.sleep(60)
        assert sorted(runs) == ["a", "b", "c"]
        assert "mapper failed" not in caplog.text


def test_an_index_that_nobody_declares_is_reported_when_the_controller_is_built() -> None:
    mapper = to_referring(Gadget, index="secret")
    with pytest.raises(ValueError, match=r"needs an index: add .index\(Gadget, 'secret', "):
        controller_for(Gadget).watches(Secret, mapper).build(recorded([]))
    with pytest.raises(ValueError, match=r"reads ConfigMap: declare it with .watches\(\)"):
        controller_for(Gadget).watches(Secret, to_referring(ConfigMap, index="x")).build(recorded([]))
    options = CacheOptions(indexes=(("secret", by_function(Gadget, lambda obj: [obj.spec.text])),))
    assert controller_for(Gadget).options(options).watches(Secret, mapper).build(recorded([]))


async def test_a_resync_enqueues_unchanged_objects_whatever_the_predicate() -> None:
    world, runs = await world_with_secrets(), list[str]()
    controller = (
        controller_for(Gadget)
        .predicate(generation_changed)
        .resync(600)
        .index(Gadget, "secret", ".spec.text")
        .watches(Secret, to_referring(Gadget, index="secret"))
        .build(recorded(runs))
    )
    async with operating(world, controller) as manager:
        await asyncio.sleep(595)
        assert sorted(runs) == ["a", "b", "c"]
        runs.clear()
        await asyncio.sleep(1200)
        assert sorted(runs) == ["a", "a", "b", "b", "c", "c"]
        (last, *_) = manager.why("gadget", Key("default", "a"))
        assert [reason["what"] for reason in last["enqueued_by"]] == ["resync"]


async def test_a_resync_of_one_watched_kind_enqueues_what_its_mapper_returns() -> None:
    world, runs = await world_with_secrets(), list[str]()
    await world.client.delete(Secret, "other")
    controller = (
        controller_for(Gadget)
        .index(Gadget, "secret", ".spec.text")
        .watches(Secret, to_referring(Gadget, index="secret"), resync=60)
        .build(recorded(runs))
    )
    async with operating(world, controller):
        await settle()
        runs.clear()
        await asyncio.sleep(65)
        assert sorted(runs) == ["a", "b"]


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_intervals_and_timeouts_must_be_positive(seconds: float) -> None:
    builder = controller_for(Gadget)
    calls: tuple[Callable[[], object], ...] = (
        lambda: builder.resync(seconds),
        lambda: builder.owns(ConfigMap, resync=seconds),
        lambda: builder.watches(Secret, to_referring(Gadget, index="x"), resync=seconds),
        lambda: builder.cache_sync_timeout(seconds),
    )
    for call in calls:
        with pytest.raises(ValueError, match="is a number of seconds greater than 0"):
            call()


async def test_several_controllers_of_a_kind_each_reconcile_every_object() -> None:
    world = await world_with_gadgets()
    runs: list[tuple[str, str]] = []

    def controller(name: str, child: type[ConfigMap] | type[Secret]) -> Controller[Gadget]:
        async def reconcile(obj: Gadget, ctx: Context) -> None:
            runs.append((name, obj.name))
            await ctx.apply(child(metadata=ObjectMeta(name=f"{obj.name}-{name}")))
            await ctx.prune(child)
            ctx.condition(obj, name.title(), True, reason="Done")
            await ctx.update_status(obj)

        return controller_for(Gadget).named(name).owns(child).build(reconcile)

    async with operating(world, controller("files", ConfigMap), controller("keys", Secret)) as manager:
        await world.client.create(gadget("a"))
        await settle()
        assert {name for name, _ in runs} == {"files", "keys"}
        found = await world.client.get(Gadget, "a")
        assert sorted(one.type for one in found.status.conditions) == ["Files", "Keys"]
        assert await world.client.get(ConfigMap, "a-files")
        assert await world.client.get(Secret, "a-keys")

        runs.clear()
        world.forget_writes()
        await world.client.delete(Secret, "a-keys")
        await settle()
        assert runs[0] == ("keys", "a")
        assert ("files", "a") not in runs
        assert len(world.writes) == 1
        assert {stats.name for stats in manager.stats()} == {"files", "keys"}
        assert manager.why("files", Key("default", "a")) != manager.why("keys", Key("default", "a"))


def test_controllers_that_would_interfere_are_rejected() -> None:
    class Final(Reconciler[Gadget]):
        finalizer = "test.konverge.dev/parts"

        async def reconcile(self, obj: Gadget, ctx: Context) -> None: ...

    def manager(*first: Any) -> Manager:
        manager = Manager(Client(InProcessTransport(None)))  # type: ignore[arg-type]
        manager.add(*first)
        return manager

    async def reconcile(obj: Gadget, ctx: Context) -> None: ...

    with pytest.raises(ValueError, match=r"a controller named 'gadget' already exists: use .named"):
        manager(controller_for(Gadget).build(reconcile)).add(controller_for(Gadget).build(reconcile))
    owning = controller_for(Gadget).owns(ConfigMap).build(reconcile)
    with pytest.raises(ValueError, match="controllers 'gadget' and 'other' of Gadget both own ConfigMap"):
        manager(owning).add(controller_for(Gadget).named("other").owns(ConfigMap).build(reconcile))
    final = controller_for(Gadget).build(Final())
    with pytest.raises(ValueError, match=r"both have the finalizer 'test.konverge.dev/parts'"):
        manager(final).add(controller_for(Gadget).named("other").build(Final()))


def test_a_forgotten_build_is_named() -> None:
    manager = Manager(Client(InProcessTransport(None)))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"controller_for\(Gadget\) is not built: end it with .build\(reconcile\)"):
        manager.add(controller_for(Gadget).owns(ConfigMap))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"create a controller with controller_for\(Kind\)"):
        manager.add(recorded([]))  # type: ignore[arg-type]


async def test_a_builder_decorates_a_function() -> None:
    world, runs = await world_with_gadgets(), list[str]()

    @controller_for(Gadget).owns(ConfigMap)
    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(obj.name)

    await world.client.create(gadget("a"))
    async with operating(world, reconcile):
        await settle()
    assert runs == ["a"]


def test_a_builder_does_not_decorate_a_class() -> None:
    with pytest.raises(TypeError, match=r"controller_for\(Gadget\) decorates functions: for a Reconciler, use .build"):

        @controller_for(Gadget)  # type: ignore[arg-type]
        class Parts(Reconciler[Gadget]): ...


async def test_a_cache_that_does_not_sync_in_time_fails_the_manager_with_the_reason() -> None:
    world = World()  # without the CRD of Gadget
    manager = Manager(world.operator_client(), name="gadget-operator")
    manager.add(controller_for(Gadget).cache_sync_timeout(30).build(recorded([])))

    with pytest.raises(NotSynced) as failure:
        await manager.serve()

    assert asyncio.get_running_loop().time() == pytest.approx(30, abs=0.1)
    assert "cache not synced after 30 s: the server does not serve gadgets.test.konverge.dev" in str(failure.value)


async def test_a_cache_that_syncs_in_time_does_not_fail_later() -> None:
    world, runs = await world_with_gadgets(), list[str]()
    async with operating(world, controller_for(Gadget).cache_sync_timeout(5).build(recorded(runs))):
        await asyncio.sleep(1)
        with world.transport.script.active(of_gadgets, status_response(503)):
            world.transport.reset_streams()
            await asyncio.sleep(60)
        await world.client.create(gadget("late"))
        await asyncio.sleep(60)
    assert runs == ["late"]
