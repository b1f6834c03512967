"""Permissions on objects with certain names, and those of a read-only controller."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gadgets import Gadget, World, gadget, operating, world_with_gadgets
from konverge import Client, Context, Reconciler, controller_for
from konverge.cache import CacheOptions
from konverge.client import InProcessTransport
from konverge.controller import Builder, Permission, rules_of
from konverge.k8s.core.v1 import ConfigMap, ServiceAccount
from konverge.k8s.rbac.v1 import ClusterRole
from konverge.manager.preflight import missing_permissions
from konverge.objects import Key
from konverge.wire.messages import Request, Response

RBAC = "rbac.authorization.k8s.io"


async def nothing(obj: Gadget, ctx: Context) -> None:
    """Reconcile nothing."""


def no_keys(_: object) -> tuple[Key, ...]:
    return ()


def rules_for(builder: Builder[Gadget], resource: str) -> list[dict[str, Any]]:
    rules = rules_of(builder.build(nothing).permissions())
    return [one for one in rules if resource in one["resources"]]


def test_a_rule_holds_the_names() -> None:
    builder = controller_for(Gadget).needs(ClusterRole, "bind", names=("view", "edit"))
    where = {"apiGroups": [RBAC], "resources": ["clusterroles"]}
    assert rules_for(builder, "clusterroles") == [{**where, "verbs": ["bind"], "resourceNames": ["edit", "view"]}]


def test_names_and_verbs_are_grouped_and_stay_apart_from_rules_without_names() -> None:
    builder = controller_for(Gadget).needs(ClusterRole, "get").needs(ClusterRole, "bind", "get", names=("view",))
    builder.needs(ClusterRole, "bind", names=("edit",))
    where = {"apiGroups": [RBAC], "resources": ["clusterroles"]}
    assert rules_for(builder, "clusterroles") == [
        {**where, "verbs": ["get"]},
        {**where, "verbs": ["bind"], "resourceNames": ["edit"]},
        {**where, "verbs": ["bind", "get"], "resourceNames": ["view"]},
    ]


@pytest.mark.parametrize("verb", ["create", "deletecollection"])
def test_verbs_without_a_name_are_rejected(verb: str) -> None:
    with pytest.raises(ValueError, match=f"RBAC cannot limit {verb} to names"):
        controller_for(Gadget).needs(ConfigMap, "get", verb, names=("one",))


def test_a_subresource_is_created_by_name() -> None:
    builder = controller_for(Gadget).needs(ServiceAccount, "create", subresource="token", names=("one",))
    assert rules_for(builder, "serviceaccounts/token")[0]["resourceNames"] == ["one"]


@pytest.mark.parametrize("verb", ["list", "watch"])
def test_list_and_watch_have_one_name(verb: str) -> None:
    with pytest.raises(ValueError, match=f"{verb} is allowed by one name only"):
        controller_for(Gadget).needs(ConfigMap, verb, names=("one", "two"))


@pytest.mark.parametrize("names", ["one", ("",), [1]])
def test_names_are_a_tuple_of_names(names: Any) -> None:
    with pytest.raises(TypeError, match="names is a tuple of names"):
        controller_for(Gadget).needs(ConfigMap, "get", names=names)


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
async def test_list_and_watch_with_a_name_set_the_field_selector(first: bool) -> None:
    builder = controller_for(Gadget)
    if first:
        builder.needs(ConfigMap, "list", "watch", names=("settings",))
    builder.watches(ConfigMap, no_keys, options=CacheOptions(labels="a=b"))
    if not first:
        builder.needs(ConfigMap, "list", "watch", names=("settings",))
    where = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["settings"]}
    assert rules_for(builder, "configmaps") == [{**where, "verbs": ["list", "watch"]}]

    world: World = await world_with_gadgets()
    async with operating(world, builder.build(nothing)):
        await asyncio.sleep(5)
    requests = [one for one in world.transport.script.requests() if one.path.endswith("/configmaps")]
    assert requests
    assert {one.query.get("fieldSelector") for one in requests} == {"metadata.name=settings"}
    assert {one.query.get("labelSelector") for one in requests} == {"a=b"}


def test_a_field_selector_by_name_limits_the_permission() -> None:
    builder = controller_for(Gadget).watches(ConfigMap, no_keys, options=CacheOptions(fields="metadata.name=settings"))
    assert rules_for(builder, "configmaps")[0]["resourceNames"] == ["settings"]


async def test_the_check_at_the_start_asks_for_the_name() -> None:
    world = await world_with_gadgets()
    reviews: list[Request] = []

    async def handle(request: Request) -> Response:
        if "accessreviews" in request.path:
            reviews.append(request)
        return await world.server.handle(request)

    permission = Permission(RBAC, "clusterroles", "", "bind", "view")
    await missing_permissions(Client(InProcessTransport(handle)), [permission])
    [review] = reviews
    assert b'"name":"view"' in (review.body or b"")
    assert str(permission) == f"bind on clusterroles.{RBAC} view"


# Read-only controllers


def test_a_read_only_controller_may_only_list_and_watch() -> None:
    permissions = controller_for(Gadget).read_only().build(nothing).permissions()
    assert [one.verb for one in permissions] == ["list", "watch"]
    assert "status" in {one.subresource for one in controller_for(Gadget).build(nothing).permissions()}


async def test_a_read_only_controller_writes_no_status() -> None:
    errors: list[str] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        obj.status.parts = 3
        try:
            await ctx.update_status(obj)
        except ValueError as error:
            errors.append(str(error))

    world = await world_with_gadgets()
    async with operating(world, controller_for(Gadget).read_only().build(reconcile)):
        await world.client.create(gadget("one"))
        await asyncio.sleep(5)
    assert errors == ["controller gadget is read_only: it may not write the status of Gadget default/one"]
    assert world.writes == []


def test_a_read_only_controller_owns_nothing() -> None:
    class Finalizing(Reconciler[Gadget]):
        finalizer = "example.com/gadget"

        async def reconcile(self, obj: Gadget, ctx: Context, /) -> None:
            """Reconcile nothing."""

    with pytest.raises(ValueError, match="a read_only controller owns no kinds"):
        controller_for(Gadget).read_only().owns(ConfigMap).build(nothing)
    with pytest.raises(ValueError, match="a read_only controller has no finalizer"):
        controller_for(Gadget).read_only().build(Finalizing())
