"""What a controller does with the result of a reconcile: backoff, rate, logs, and objects that do not decode."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import pytest

from gadgets import Gadget, GadgetStatus, gadget, operating, world_with_gadgets
from konverge import Client, Context, CustomResource, Manager, Meta, Reconciler, Result, Spec, controller_for
from konverge.client import ClientOptions
from konverge.controller import Controller, Permission
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import Condition, find_condition, to_wire
from konverge.queue import Backoff, RateLimit
from konverge.testing import settle
from konverge.wire import Request, Response, Transport

STEADY = Backoff(jitter=0.0)


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize(
    ("good", "times"), [(Result.requeue(after=10), [0, 1, 3, 13, 14]), (Result.requeue(), [0, 1, 3, 3, 4])]
)
async def test_a_good_result_ends_the_backoff(good: Result, times: list[float]) -> None:
    world, runs = await world_with_gadgets(), list[float]()

    async def reconcile(obj: Gadget, ctx: Context) -> Result:
        runs.append(now())
        if len(runs) == 3:
            return good
        if len(runs) < 5:
            raise RuntimeError("bad")
        return Result.done()

    await world.client.create(gadget("a"))
    async with operating(world, controller_for(Gadget).backoff(STEADY).build(reconcile)):
        await asyncio.sleep(60)
    assert [round(at - runs[0], 3) for at in runs] == times


async def test_the_log_of_a_failure_names_the_reconcile(caplog: pytest.LogCaptureFixture) -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        raise RuntimeError("bad")

    await world.client.create(gadget("a"))
    async with operating(world, controller_for(Gadget).backoff(STEADY).build(reconcile)):
        await asyncio.sleep(2)
    first, second = (vars(record) for record in caplog.records if record.name == "konverge.controller")
    assert (first["controller"], first["kind"], first["key"]) == ("gadget", "Gadget", "default/a")
    assert (first["attempt"], second["attempt"]) == ("1", "2")
    assert first["reconcile_id"]
    assert first["reconcile_id"] != second["reconcile_id"]


async def test_reconciles_start_at_the_rate_of_the_controller() -> None:
    world, runs = await world_with_gadgets(), list[float]()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(now())

    for name in ("a", "b", "c"):
        await world.client.create(gadget(name))
    controller = controller_for(Gadget).rate(RateLimit(per_second=0.5, burst=1)).build(reconcile)
    async with operating(world, controller):
        await asyncio.sleep(20)
    assert [round(at - runs[0], 3) for at in runs] == [0, 2, 4]


class Terminating(Reconciler[Gadget]):
    """A reconciler that also sees objects which other finalizers hold."""

    reconcile_terminating = True

    def __init__(self) -> None:
        self.runs: list[float] = []

    async def reconcile(self, obj: Gadget, ctx: Context) -> Result:
        if obj.metadata.deletion_timestamp is None:
            return Result.done()
        self.runs.append(now())
        return Result.requeue(after=5)


async def test_the_result_for_an_object_that_is_being_deleted_is_respected() -> None:
    world, reconciler = await world_with_gadgets(), Terminating()
    made = gadget("a")
    made.metadata.finalizers = ["test.konverge.dev/other"]
    async with operating(world, controller_for(Gadget).build(reconciler)):
        await world.client.delete(await world.client.create(made))
        await asyncio.sleep(12)
    assert [round(at - reconciler.runs[0], 3) for at in reconciler.runs] == [0, 5, 10]


class LargeSpec(Spec):
    size: Annotated[int, Meta(ge=100)]


class Large(CustomResource[LargeSpec, GadgetStatus], group="test.konverge.dev", version="v1", kind="Gadget"):
    """The kind as another release defines it: most stored objects do not decode."""


class Patches:
    """A transport that records the bodies of patches of a status."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.bodies: list[dict[str, Any]] = []

    async def send(self, request: Request) -> Response:
        if request.path.endswith("/status"):
            self.bodies.append(json.loads(request.body))
        return await self._inner.send(request)

    async def close(self) -> None:
        await self._inner.close()


async def test_an_object_that_does_not_decode_has_a_condition_of_its_own_version() -> None:
    world = await world_with_gadgets()
    made = await world.client.create(gadget("a"))
    old = Condition(type="Ready", status="True", reason="Old")
    await world.client.patch(Gadget, "a", {"status": {"conditions": [to_wire(old)]}}, subresource="status")
    stored = await world.client.get(Gadget, made.name)

    async def reconcile(obj: Large, ctx: Context) -> None:
        raise AssertionError("it does not decode")

    patches = Patches(world.transport)
    manager = Manager(Client(patches, options=ClientOptions(namespace="default")), name="gadget-operator")
    manager.add(controller_for(Large).build(reconcile))
    async with manager.running():
        await settle()
    (patch,) = patches.bodies
    assert patch["metadata"] == {"resourceVersion": stored.resource_version}
    found = await world.client.get(Gadget, "a")
    failed = find_condition(found.status.conditions, "Readable")
    assert find_condition(found.status.conditions, "Ready") is not None
    assert failed is not None
    assert (failed.status, failed.reason) == ("False", "DecodeFailed")


@pytest.mark.parametrize(
    ("permission", "text"),
    [
        (Permission("apps", "deployments", "", "get"), "get on deployments.apps"),
        (Permission("", "pods", "log", "get", "web"), "get on pods/log web"),
    ],
)
def test_a_permission_reads_as_a_sentence(permission: Permission, text: str) -> None:
    assert str(permission) == text


class Cleaning(Reconciler[Gadget]):
    finalizer = "test.konverge.dev/clean"

    async def reconcile(self, obj: Gadget, ctx: Context) -> None: ...


def on_gadgets(controller: Controller[Gadget]) -> set[tuple[str, str]]:
    return {(one.subresource, one.verb) for one in controller.permissions() if one.resource == "gadgets"}


def test_a_finalizer_and_owned_objects_need_their_permissions() -> None:
    plain = on_gadgets(controller_for(Gadget).build(Terminating()))
    cleaning = on_gadgets(controller_for(Gadget).build(Cleaning()))
    owning = on_gadgets(controller_for(Gadget).owns(ConfigMap).build(Terminating()))

    assert plain == {("", "list"), ("", "watch"), ("status", "patch")}
    assert cleaning - plain == {("", "get"), ("", "patch")}
    assert owning - plain == {("", "get"), ("finalizers", "update")}


async def test_the_failures_of_a_deleted_object_are_forgotten() -> None:
    world, attempts = await world_with_gadgets(), list[tuple[int, str]]()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        attempts.append((ctx.attempt, ctx.last_error))
        raise RuntimeError("bad")

    async with operating(world, controller_for(Gadget).backoff(STEADY).build(reconcile)):
        for _ in range(2):
            made = await world.client.create(gadget("a"))
            await asyncio.sleep(2)
            await world.client.delete(made)
            await asyncio.sleep(20)
    assert attempts == [(1, ""), (2, "bad")] * 2
