"""The verbs of the context: what apply did, objects that are created once, readiness, fields of other managers."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, TypeAlias

import pytest

from delayed_watches import DelayedWatches
from gadgets import Gadget, World, gadget, operating, world_with_gadgets
from konverge import (
    Client,
    Context,
    Controller,
    Key,
    Manager,
    ObjectMeta,
    Result,
    Unstructured,
    controller_for,
    is_ready,
)
from konverge.client import ClientOptions, InProcessTransport
from konverge.errors import AlreadyOwned, Forbidden, Retry
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec
from konverge.k8s.core.v1 import ConfigMap, Container, PodSpec, PodTemplateSpec, Secret
from konverge.k8s.meta.v1 import LabelSelector
from konverge.objects import OwnerReference, kind_of
from konverge.reconcile import Applied, BlockingContext, ForeignField
from konverge.testing import settle
from konverge.testing.faults import End, Fault, RecordedRequest, forbidden

Verbs: TypeAlias = Callable[[Gadget, Context], Awaitable[Any]]


async def run(world: World, verbs: Verbs, *kinds: Any, name: str = "a") -> Any:
    """Create a gadget, and run some verbs in its first reconcile; return their result, or raise their error."""
    await world.client.create(gadget(name))
    return await run_again(world, verbs, *kinds)


async def run_again(world: World, verbs: Verbs, *kinds: Any) -> Any:
    """Start an operator, and run some verbs in its first reconcile."""
    results: list[Any] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        if not results:
            results.append(None)
            try:
                results[0] = await verbs(obj, ctx)
            except Exception as error:
                results[0] = error

    async with operating(world, controller(reconcile, *kinds)):
        await settle()
    if isinstance(results[0], Exception):
        raise results[0]
    return results[0]


def controller(reconcile: Any, *kinds: Any) -> Controller[Gadget]:
    builder = controller_for(Gadget)
    for kind in kinds:
        builder = builder.owns(kind)
    return builder.build(reconcile)


def config_map(name: str = "settings", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


def web(replicas: int = 1) -> Deployment:
    labels = {"app": "web"}
    pod = PodSpec(containers=[Container(name="web", image="web:1")])
    return Deployment(
        metadata=ObjectMeta(name="web"),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod),
        ),
    )


# What apply did


async def test_apply_reports_created_unchanged_and_changed_with_paths() -> None:
    world = await world_with_gadgets()

    async def verbs(obj: Gadget, ctx: Context) -> list[Applied]:
        found = []
        for desired in (web(), web(), web(replicas=3)):
            live = await ctx.apply(desired)
            assert ctx.applied(live) == ctx.applied(desired)
            found.append(ctx.applied(live))
        return found

    found = await run(world, verbs, Deployment)

    assert found == [Applied("created"), Applied("unchanged"), Applied("changed", (".spec.replicas",))]
    assert [str(one) for one in found] == ["created", "unchanged", "changed .spec.replicas"]


@pytest.mark.parametrize("kinds", [(ConfigMap,), ()], ids=["cached", "not cached"])
async def test_a_restart_and_an_edit_of_another_client_are_reported(kinds: tuple[Any, ...]) -> None:
    world = await world_with_gadgets()

    async def verbs(obj: Gadget, ctx: Context) -> Applied:
        await ctx.apply(config_map(a="1", b="2"))
        return ctx.applied(config_map())

    first = await run(world, verbs, *kinds)
    second = await run_again(world, verbs, *kinds)
    await world.client.patch(ConfigMap, "settings", {"data": {"a": "9", "c": "3"}})
    third = await run_again(world, verbs, *kinds)

    assert [first, second, third] == [Applied("created"), Applied("unchanged"), Applied("changed", (".data.a",))]


async def test_an_object_that_the_cache_does_not_have_yet_is_reported_as_changed() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a"))
    found: list[Applied] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        if not found:
            await world.client.create(ConfigMap(metadata=ObjectMeta(name="settings"), data={"by": "hand"}))
            await ctx.apply(config_map(a="1"))
            found.append(ctx.applied(config_map()))

    async with stale(world, controller(reconcile, ConfigMap)).running():
        await asyncio.sleep(100)

    assert found == [Applied("changed", (".data.a", ".metadata.ownerReferences"))]


async def test_an_object_that_is_recreated_is_reported_as_created() -> None:
    world = await world_with_gadgets()

    async def verbs(obj: Gadget, ctx: Context) -> Applied:
        await ctx.apply(web())
        other = web()
        other.spec.selector.match_labels = {"app": "other"}
        other.spec.template.metadata = ObjectMeta(labels={"app": "other"})
        return ctx.applied(await ctx.apply(other, recreate=True))

    assert await run(world, verbs, Deployment) == Applied("created")


async def test_what_was_not_applied_has_no_report() -> None:
    world = await world_with_gadgets()

    async def verbs(obj: Gadget, ctx: Context) -> None:
        invalid = config_map("Not A Name", a="1")
        with pytest.raises(ValueError, match="was not applied in this reconcile"):
            ctx.applied(config_map())
        with pytest.raises(Exception, match="Not A Name"):
            await ctx.apply(invalid)
        with pytest.raises(ValueError, match="was not applied in this reconcile"):
            ctx.applied(invalid)

    await run(world, verbs, ConfigMap)


# Objects that are created once

_numbers = count(1)


def password(name: str = "password") -> Secret:
    """Return a Secret with a new value each time, as a generated password has."""
    return Secret(metadata=ObjectMeta(name=name), string_data={"password": f"value-{next(_numbers)}"})


async def stored(world: World, name: str = "password") -> Any:
    return (await world.client.get(Secret, name)).data


async def create_password(_: Gadget, ctx: Context) -> Secret:
    return await ctx.create_once(password())


def stale(world: World, *controllers: Controller[Any], delay: float = 3600) -> Manager:
    """Return an operator whose cache has the Secrets and ConfigMaps of its start, and gets no event in time."""
    transport = DelayedWatches(InProcessTransport(world.server.handle), "secrets", "configmaps", by=delay)
    manager = Manager(Client(transport, options=ClientOptions(namespace="default")), name="gadget-operator")
    manager.add(*controllers)
    return manager


@pytest.mark.parametrize("kinds", [(Secret,), ()], ids=["cached", "not cached"])
async def test_a_value_is_created_once_and_stays_after_restarts(kinds: tuple[Any, ...]) -> None:
    world = await world_with_gadgets()

    first = await run(world, create_password, *kinds)
    data = await stored(world)
    world.forget_writes()
    others = [await run_again(world, create_password, *kinds) for _ in range(3)]

    owner = await world.client.get(Gadget, "a")
    references = (await world.client.get(Secret, "password")).metadata.owner_references
    assert [one.data for one in (first, *others)] == [data] * 4
    assert await stored(world) == data
    assert [(one.uid, one.controller) for one in references] == [(owner.uid, True)]
    assert world.writes == []


async def test_a_stale_cache_does_not_replace_the_value() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a"))
    found: list[Any] = []

    async def reconcile(obj: Gadget, ctx: Context) -> Result:
        if not found:
            await world.client.create(password())  # another replica, after this one has listed
        assert not ctx.owned(Secret)
        found.append((await ctx.create_once(password())).data)
        return Result.requeue(after=10)

    async with stale(world, controller(reconcile, Secret)).running():
        await asyncio.sleep(100)

    assert len(found) > 3
    assert found == [await stored(world)] * len(found)


async def test_two_replicas_agree_on_the_value() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a"))
    found: list[Any] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        found.append((await ctx.create_once(password())).data)

    async with (
        stale(world, controller(reconcile, Secret)).running(),
        stale(world, controller(reconcile, Secret)).running(),
    ):
        await asyncio.sleep(100)

    assert len(found) == 2
    assert found == [await stored(world)] * 2


async def test_a_lost_response_of_the_create_does_not_change_the_value() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a"))
    found: list[Any] = []

    def is_create(request: RecordedRequest) -> bool:
        return request.method == "POST" and request.path.endswith("/secrets")

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        found.append((await ctx.create_once(password())).data)

    world.transport.script.add(is_create, Fault(end=End.RESET), times=1)
    async with operating(world, controller(reconcile, Secret)):
        await asyncio.sleep(10)

    assert found
    assert found == [await stored(world)] * len(found)


async def test_a_cached_kind_needs_no_permission_to_get_it() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a"))
    found: list[Any] = []

    def is_get(request: RecordedRequest) -> bool:
        return request.method == "GET" and request.path.endswith("/secrets/password")

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        with pytest.raises(Forbidden):
            await ctx.client.get(Secret, "password")
        found.append((await ctx.create_once(password())).data)

    await world.client.create(password())
    world.transport.script.add(is_get, forbidden("get on secrets"))
    async with operating(world, controller(reconcile, Secret)):
        await settle()

    assert found == [await stored(world)]


async def test_an_object_made_by_hand_is_used_as_it_is() -> None:
    world = await world_with_gadgets()
    made = await world.client.create(password())

    used = await run(world, create_password, Secret)

    assert used.data == made.data
    assert (await world.client.get(Secret, "password")).resource_version == made.resource_version


async def test_the_value_of_another_owner_is_not_used() -> None:
    world = await world_with_gadgets()
    await run(world, create_password, Secret, name="other")
    data = await stored(world)
    await world.client.delete(Gadget, "other", propagation="Orphan")
    await world.client.patch(
        Secret,
        "password",
        {"metadata": {"ownerReferences": [_reference("other", "another-uid")]}},
    )

    with pytest.raises(AlreadyOwned) as caught:
        await run(world, create_password, Secret)
    assert str(caught.value) == (
        "create Secret default/password: its controller is Gadget other, so Gadget a cannot own it (use other names for"
        " its children)"
    )
    assert await stored(world) == data


async def test_the_value_of_an_earlier_owner_of_that_name_is_not_used() -> None:
    world = await world_with_gadgets()
    secret = password()
    secret.metadata.owner_references = [
        OwnerReference(
            api_version="test.konverge.dev/v1", kind="Gadget", name="a", uid="an-earlier-uid", controller=True
        )
    ]
    await world.client.create(secret)

    message = "^create Secret default/password: it belongs to an earlier Gadget a, and is deleted soon$"
    with pytest.raises(Retry, match=message):
        await run(world, create_password, Secret)


async def test_a_value_that_is_being_deleted_is_not_used_and_created_when_it_is_gone() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a"))
    secret = password()
    secret.metadata.finalizers = ["test.konverge.dev/keep"]
    old = await world.client.create(secret)
    await world.client.delete(Secret, "password")
    found: list[Any] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        found.append((await ctx.create_once(password())).data)

    async with operating(world, controller(reconcile, Secret)):
        await asyncio.sleep(10)
        assert found == []
        await world.client.patch(Secret, "password", {"metadata": {"finalizers": None}})
        await asyncio.sleep(60)

    assert found[-1] == await stored(world) != old.data


async def test_prune_keeps_an_object_that_was_applied_before_and_is_created_once_now() -> None:
    world = await world_with_gadgets()

    async def apply(obj: Gadget, ctx: Context) -> None:
        await ctx.apply(password())

    async def create_and_prune(obj: Gadget, ctx: Context) -> None:
        await ctx.create_once(password())
        await ctx.prune(Secret)

    await run(world, apply, Secret)
    data = await stored(world)
    await run_again(world, create_and_prune, Secret)

    assert await stored(world) == data


async def test_an_unstructured_object_and_one_without_an_owner_are_created_once_too() -> None:
    world = await world_with_gadgets()
    data = {"password": b64encode(b"one").decode()}
    wire = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}, "data": data}

    async def verbs(obj: Gadget, ctx: Context) -> list[Any]:
        return [await ctx.create_once(Unstructured(wire), owned=False) for _ in range(2)]

    first, second = await run(world, verbs)

    assert first["data"] == second["data"] == data
    assert (await world.client.get(Secret, "password")).metadata.owner_references == []


def _reference(name: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": "test.konverge.dev/v1", "kind": "Gadget", "name": name, "uid": uid, "controller": True}


# Ready


async def test_set_ready_sets_the_condition_and_the_observed_generation() -> None:
    world = await world_with_gadgets()

    async def verbs(obj: Gadget, ctx: Context) -> list[bool]:
        changed = [ctx.set_ready(obj, False, reason="Starting", message="no parts yet"), is_ready(obj)]
        changed += [ctx.set_ready(obj, True, reason="AllParts"), ctx.set_ready(obj, True, reason="AllParts")]
        await ctx.update_status(obj)
        return [*changed, is_ready(obj)]

    assert await run(world, verbs) == [True, False, True, False, True]
    live = await world.client.get(Gadget, "a")
    assert [(one.type, one.status, one.reason) for one in live.status.conditions] == [("Ready", "True", "AllParts")]
    assert live.status.observed_generation == live.metadata.generation == live.status.conditions[0].observed_generation
    assert is_ready(live)


async def test_an_object_with_a_new_generation_is_not_ready() -> None:
    world = await world_with_gadgets()

    async def verbs(obj: Gadget, ctx: Context) -> None:
        ctx.set_ready(obj, True, reason="AllParts")
        await ctx.update_status(obj)

    await run(world, verbs)
    live = await world.client.get(Gadget, "a")
    live.spec.size = 5
    edited = await world.client.update(live)

    assert not is_ready(edited)


# Status


async def test_an_edit_of_the_spec_is_not_lost_silently() -> None:
    world = await world_with_gadgets()

    async def verbs(obj: Gadget, ctx: Context) -> None:
        obj.spec.size = 7
        obj.status.parts = 1
        with pytest.raises(ValueError, match=r"update status of Gadget default/a: \.spec\.size was edited too"):
            await ctx.update_status(obj)
        obj = await ctx.client.update(obj)
        obj.status.parts = 1
        await ctx.update_status(obj)

    await run(world, verbs)
    live = await world.client.get(Gadget, "a")
    assert (live.spec.size, live.status.parts) == (7, 1)


async def test_an_edit_of_the_spec_of_an_unstructured_object_is_not_lost_silently() -> None:
    world = await world_with_gadgets()

    async def verbs(obj: Gadget, ctx: Context) -> None:
        for read in (await ctx.get(kind_of(Gadget), "a"), await ctx.client.get(kind_of(Gadget), obj.key)):
            assert read is not None
            read["spec"]["size"] = 7
            with pytest.raises(ValueError, match=r"\.spec\.size was edited too"):
                await ctx.update_status(read)

    await run(world, verbs)


# Fields of other managers


async def test_fields_of_other_managers_are_listed_and_the_status_is_not() -> None:
    world = await world_with_gadgets()
    human = world.client.using(field_manager="kubectl-edit")
    autoscaler = world.client.using(field_manager="hpa")

    async def verbs(obj: Gadget, ctx: Context) -> list[list[ForeignField]]:
        desired = web()
        found = [await ctx.foreign_fields(desired)]
        live = await ctx.apply(desired)
        found.append(await ctx.foreign_fields(live))
        container = {"name": "web", "resources": {"limits": {"cpu": "1"}}}
        annotations = {"example.com/by": "hand"}
        await human.patch(Deployment, "web", {"metadata": {"annotations": annotations, "labels": {"team": "blue"}}})
        await human.patch(
            Deployment,
            "web",
            {"spec": {"template": {"spec": {"containers": [container]}}}},
            patch_type="strategic",
        )
        await autoscaler.patch(kind_of(Deployment), "web", {"spec": {"replicas": 5}}, subresource="scale")
        await human.patch(Deployment, "web", {"status": {"replicas": 3}}, subresource="status")
        await ctx.hand_over(desired, ".spec.strategy", to="nobody")
        return [*found, await ctx.foreign_fields(desired)]

    absent, own, foreign = await run(world, verbs, Deployment)

    assert (absent, own) == ([], [])
    assert foreign == [
        ForeignField('.metadata.annotations["example.com/by"]', "kubectl-edit"),
        ForeignField(".metadata.labels.team", "kubectl-edit"),
        ForeignField(".spec.replicas", "hpa"),
        ForeignField('.spec.template.spec.containers[name="web"].resources.limits.cpu', "kubectl-edit"),
    ]


async def test_a_field_that_both_managers_own_is_shared() -> None:
    world = await world_with_gadgets()

    async def verbs(obj: Gadget, ctx: Context) -> list[ForeignField]:
        await ctx.apply(config_map(a="1", b="2"))
        await ctx.hand_over(config_map(), ".data.a", to="human")
        return await ctx.foreign_fields(config_map())

    assert await run(world, verbs, ConfigMap) == [ForeignField(".data.a", "human", shared=True)]


# Indexes


async def test_an_unknown_index_is_named_with_the_line_that_declares_it() -> None:
    world = await world_with_gadgets()

    async def verbs(obj: Gadget, ctx: Context) -> None:
        ctx.find(ConfigMap, "by-owner", "a")

    with pytest.raises(ValueError, match=r"ConfigMap has no index 'by-owner': declare it with \.index\(ConfigMap"):
        await run(world, verbs, ConfigMap)


# Blocking code


async def test_blocking_code_has_the_same_verbs() -> None:
    world = await world_with_gadgets()
    await world.client.create(gadget("a"))
    found: list[Any] = []

    def reconcile(obj: Gadget, ctx: BlockingContext) -> None:
        ctx.apply(config_map(a="1"), recreate=True)
        ctx.hand_over(config_map(), ".data.a", to="human")
        ctx.set_ready(obj, True, reason="AllParts")
        ctx.update_status(obj)
        secret = ctx.create_once(password())
        found[:] = [ctx.applied(config_map()).action, ctx.foreign_fields(config_map()), secret.data, is_ready(obj)]

    async with operating(world, controller(reconcile, ConfigMap, Secret)):
        await settle()

    assert found[1:] == [[ForeignField(".data.a", "human", shared=True)], await stored(world), True]
    assert Key("default", "settings") == (await world.client.get(ConfigMap, "settings")).key
