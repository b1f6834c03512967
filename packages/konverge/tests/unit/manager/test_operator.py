"""Operators as values: their parts, their managers and webhooks, and several of them as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import Counter

from gadgets import Gadget, world_with_gadgets
from konverge import Client, Context, CustomResource, Key, ObjectMeta, Spec, Unstructured, controller_for
from konverge.controller import EVENTS, LEASES
from konverge.k8s.coordination.v1 import Lease, LeaseSpec
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager import LeaderElection, Operator, Runnable, RunnableContext
from konverge.webhooks import Address
from webhook_examples import OldWebApp, WebApp, check, conversion


class Red(CustomResource[Spec, Spec], group="example.com", version="v1"):
    """A kind."""


class Blue(CustomResource[Spec, Spec], group="example.com", version="v1"):
    """Another kind."""


def operator(kind: type[CustomResource[Spec, Spec]], name: str, controller: str) -> Operator:
    @controller_for(kind).named(controller)
    async def reconcile(_obj: CustomResource[Spec, Spec], _ctx: Context) -> None:
        return None

    return Operator(name=name, controllers=(reconcile,))


def test_a_combined_operator_has_the_parts_of_all() -> None:
    red, blue = operator(Red, "red", "red"), operator(Blue, "blue", "blue")
    both = Operator.combine("both", red, blue)
    assert both.name == "both"
    assert both.controllers == (*red.controllers, *blue.controllers)
    assert both.kinds == (Red, Blue)
    assert set(both.permissions()) == {*red.permissions(), *blue.permissions()}
    assert both.manager().name == "both"


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (operator(Blue, "red", "blue"), "red and red cannot be combined: both have the name red"),
        (operator(Blue, "blue", "red"), "red and blue cannot be combined: both have the controller red"),
        (operator(Red, "blue", "blue"), "red and blue cannot be combined: both have the CRD reds.example.com"),
    ],
)
def test_operators_with_a_part_of_the_same_name_cannot_be_combined(second: Operator, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Operator.combine("both", operator(Red, "red", "red"), second)


async def reconcile(_obj: object, _ctx: Context) -> None:
    return None


def test_parts_of_a_wrong_type_are_refused_where_they_are_written() -> None:
    for name in ("", "Shop", "shop_operator", "x" * 64, 7):
        with pytest.raises(ValueError, match="name must be at most 63 lower-case letters"):
            Operator(name=name, controllers=())  # type: ignore[arg-type]
    assert Operator(name="x" * 63, controllers=()).kinds == ()
    parts = ("controllers", "kinds", "webhooks", "samples", "metrics", "monitoring", "runnables", "shared", "images")
    for part in parts:
        with pytest.raises(TypeError, match=rf"{part} is a tuple: write {part}=\(one, two\)"):
            Operator(**{"name": "shop", "controllers": (), part: []})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"is not built: end it with \.build"):
        Operator(name="shop", controllers=(controller_for(Red),))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="create a controller with controller_for"):
        Operator(name="shop", controllers=(Red,))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Operator(name="shop", controllers=(), kinds=(int,))  # type: ignore[arg-type]


def test_the_kinds_of_an_operator_are_named_once_and_can_be_set() -> None:
    first, second = controller_for(Red).named("a").build(reconcile), controller_for(Red).named("b").build(reconcile)
    of_others = controller_for(ConfigMap).build(reconcile)
    assert Operator(name="shop", controllers=(first, second, of_others)).kinds == (Red,)
    assert Operator(name="shop", controllers=(first,), kinds=()).kinds == ()
    assert Operator(name="shop", controllers=(), kinds=((WebApp, OldWebApp),)).kinds == ((WebApp, OldWebApp),)


def test_an_operator_needs_events_and_its_lease_besides_its_controllers() -> None:
    assert set(Operator(name="shop", controllers=()).permissions()) == {*EVENTS, *LEASES}
    of_red = controller_for(Red).build(reconcile)
    assert set(Operator(name="shop", controllers=(of_red,)).permissions()) == {
        *EVENTS,
        *LEASES,
        *of_red.permissions(),
    }


async def test_the_manager_of_an_operator_has_all_its_parts() -> None:
    world = await world_with_gadgets()
    seen: list[str] = []

    @asynccontextmanager
    async def open_text(_client: Client) -> AsyncGenerator[str]:
        yield "shared"

    async def on_every_replica(ctx: RunnableContext) -> None:
        seen.append(f"every {ctx.shared(str)}")

    async def on_the_leader(ctx: RunnableContext) -> None:
        seen.append(f"leader {ctx.shared(str)}")

    orders = Counter("orders", "Orders", registry=None)
    whole = Operator(
        name="gadget-operator",
        controllers=(controller_for(Gadget).build(reconcile),),
        metrics=(orders,),
        runnables=(on_the_leader, Runnable(on_every_replica, leader_only=False)),
        shared=(open_text,),
    )
    never = LeaderElection("held", "default", identity="me", clock=asyncio.get_running_loop().time)
    held = LeaseSpec(holder_identity="other", lease_duration_seconds=3600)
    await world.client.create(Lease(metadata=ObjectMeta(name="held", namespace="default"), spec=held))
    manager = whole.manager(world.operator_client(), leader_election=never)
    async with manager.running() as running:
        await asyncio.sleep(30)
        assert [one.name for one in manager.controllers] == ["gadget"]
        assert running.monitoring.registry.get_sample_value("orders_total") == 0
    assert seen == ["every shared"]


def test_the_webhooks_of_an_operator_are_reached_as_its_manifests_say() -> None:
    hooks = Operator(name="shop", controllers=(), kinds=((WebApp, OldWebApp),), webhooks=(check, conversion))
    serving = hooks.serving("system")
    assert (serving.port, serving.service) == (9443, Key("system", "shop-webhooks"))
    assert serving.secret == Key("system", "shop-webhook-certificate")
    assert list(serving.hooks.hooks) == [check, conversion]
    assert [(target.kind.kind, target.name) for target in serving.targets] == [
        ("ValidatingWebhookConfiguration", "shop"),
        ("CustomResourceDefinition", "webapps.hooks.example.com"),
    ]
    other = hooks.serving("system", port=443, installation="second")
    assert (other.port, other.service) == (443, Key("system", "second-webhooks"))
    assert other.secret == Key("system", "second-webhook-certificate")
    assert other.targets[0].name == "second"


def test_without_an_address_only_the_stored_version_of_a_converted_kind_is_served() -> None:
    hooks = Operator(name="shop", controllers=(), kinds=((WebApp, OldWebApp), Red), webhooks=(conversion,))

    def served(crd: Unstructured) -> dict[str, bool]:
        return {one["name"]: one["served"] for one in crd["spec"]["versions"]}

    alone, red = hooks.crds()
    assert (served(alone), served(red)) == ({"v1": True, "v1beta1": False}, {"v1": True})
    assert "conversion" not in alone["spec"]
    address = Address(service="shop-webhooks", namespace="system")
    converted, red = hooks.crds(address)
    assert served(converted) == {"v1": True, "v1beta1": True}
    webhook = converted["spec"]["conversion"]["webhook"]
    assert webhook["clientConfig"]["service"]["name"] == "shop-webhooks"
    assert "conversion" not in red["spec"]
    unconverted = Operator(name="shop", controllers=(), kinds=((WebApp, OldWebApp),))
    assert served(unconverted.crds()[0]) == {"v1": True, "v1beta1": True}
