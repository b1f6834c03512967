"""What apply and prune send where a server changes values, and how children are deleted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gadgets import Gadget, gadget, operating, world_with_gadgets
from konverge import Client, Context, Manager, ObjectMeta, controller_for
from konverge.client import ClientOptions
from konverge.k8s.core.v1 import ConfigMap, Container, Pod, PodSpec, ResourceRequirements
from konverge.testing import settle
from konverge.testing.faults import status_response
from konverge.wire.messages import Request, Response, Transport


async def test_a_value_that_the_server_stores_in_another_form_is_applied_once() -> None:
    world, stored = await world_with_gadgets(), []

    async def run(obj: Gadget, ctx: Context) -> None:
        limits = ResourceRequirements(limits={"cpu": "1000m"})
        spec = PodSpec(containers=[Container(name="app", image="app", resources=limits)])
        pod = await ctx.apply(Pod(metadata=ObjectMeta(name=obj.name), spec=spec))
        assert pod.spec is not None
        stored.append(json.loads(pod.source or b"")["spec"]["containers"][0]["resources"]["limits"]["cpu"])

    async with operating(world, controller_for(Gadget).owns(Pod).build(run)):
        await world.client.create(gadget("lamp"))
        await settle()
        for size in (2, 3):
            # A change by another client, so that the fields are compared again.
            await world.client.patch(Pod, "lamp", {"metadata": {"annotations": {"size": str(size)}}})
            await world.client.patch(Gadget, "lamp", {"spec": {"size": size}})
            await settle()
    assert len(stored) >= 3
    assert set(stored) == {"1"}
    assert [one for one in world.writes if "/pods" in one] == ["PATCH /api/v1/namespaces/default/pods/lamp"]


@pytest.mark.parametrize("changes", ["s", "ss", "sa", "sas", "as", "aas"])
async def test_it_is_not_applied_again_after_changes_of_its_status_and_of_other_fields(changes: str) -> None:
    world, runs = await world_with_gadgets(), [0]

    async def run(obj: Gadget, ctx: Context) -> None:
        limits = ResourceRequirements(limits={"cpu": "1000m"})
        spec = PodSpec(containers=[Container(name="app", image="app", resources=limits)])
        await ctx.apply(Pod(metadata=ObjectMeta(name=obj.name), spec=spec))
        runs[0] += 1

    async with operating(world, controller_for(Gadget).owns(Pod).build(run)):
        await world.client.create(gadget("lamp"))
        await settle()
        for number, change in enumerate(changes):
            before = runs[0]
            if change == "s":
                await world.client.patch(Pod, "lamp", {"status": {"message": str(number)}}, subresource="status")
            else:
                await world.client.patch(Pod, "lamp", {"metadata": {"annotations": {"number": str(number)}}})
            await settle()
            assert runs[0] > before
        assert len([one for one in world.writes if "/pods" in one]) == 1
        image = {"spec": {"containers": [{"name": "app", "image": "other"}]}}
        await world.client.patch(Pod, "lamp", image, patch_type="strategic")
        await settle()
    assert len([one for one in world.writes if "/pods" in one]) == 2
    pod = await world.client.get(Pod, "lamp")
    assert pod.spec is not None
    assert pod.spec.containers[0].image == "app"


class Deletes:
    """A transport that records the bodies of deletes."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.bodies: list[dict[str, Any]] = []

    async def send(self, request: Request) -> Response:
        if request.method == "DELETE":
            self.bodies.append(json.loads(request.body))
        return await self._inner.send(request)

    async def close(self) -> None:
        await self._inner.close()


async def test_prune_names_the_propagation_and_deletes_again_if_only_the_version_was_old() -> None:
    world = await world_with_gadgets()
    deletes = Deletes(world.transport)

    async def run(obj: Gadget, ctx: Context) -> None:
        if obj.spec.size == 1:
            await ctx.apply(ConfigMap(metadata=ObjectMeta(name="box"), data={"a": "b"}))
        await ctx.prune(ConfigMap)

    manager = Manager(Client(deletes, options=ClientOptions(namespace="default")), name="gadget-operator")
    manager.add(controller_for(Gadget).owns(ConfigMap).build(run))
    async with manager.running():
        await world.client.create(gadget("lamp"))
        await settle()
        refusal = status_response(409, reason="Conflict")
        world.transport.script.add(lambda request: request.method == "DELETE", refusal, times=1)
        await world.client.patch(Gadget, "lamp", {"spec": {"size": 2}})
        await settle()
    assert [one["propagationPolicy"] for one in deletes.bodies] == ["Background", "Background"]
    assert ["resourceVersion" in one["preconditions"] for one in deletes.bodies] == [True, False]
    assert all(one["preconditions"]["uid"] for one in deletes.bodies)
    assert await world.client.list(ConfigMap) == []
