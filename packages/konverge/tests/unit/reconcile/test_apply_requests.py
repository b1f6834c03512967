"""The requests of an apply: their preconditions, and what each of them contains."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from gadgets import Gadget, World, gadget, world_with_gadgets
from konverge import Client, ObjectMeta
from konverge.cache import Cache
from konverge.client import ClientOptions, InProcessTransport
from konverge.errors import AlreadyExists, ApplyConflict, Conflict, Invalid
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec
from konverge.k8s.core.v1 import ConfigMap, Container, Namespace, PodSpec, PodTemplateSpec
from konverge.k8s.meta.v1 import LabelSelector
from konverge.objects import Unstructured
from konverge.reconcile import ForeignField
from konverge.reconcile.apply import Applier
from konverge.wire import Request


class Sent(NamedTuple):
    """A write: its method and its body."""

    method: str
    body: Any


class Rig:
    """An applier of the manager "us", and what it sends."""

    def __init__(self, world: World | None = None) -> None:
        self.world = world or World()
        self.sent: list[Sent] = []
        client = Client(InProcessTransport(self._handle), options=ClientOptions(namespace="default"))
        self.client = client
        self.applier = Applier(client, Cache(client.collection), field_manager="us")

    async def _handle(self, request: Request) -> Any:
        if request.method != "GET":
            self.sent.append(Sent(request.method, json.loads(request.body)))
        return await self.world.server.handle(request)

    def take(self) -> list[Sent]:
        sent, self.sent = self.sent, []
        return sent


def box(namespace: str = "default", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="box", namespace=namespace), data=data)


def web(app: str = "web") -> Deployment:
    pod = PodSpec(containers=[Container(name="web", image="web:1")])
    return Deployment(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=DeploymentSpec(
            selector=LabelSelector(match_labels={"app": app}),
            template=PodTemplateSpec(metadata=ObjectMeta(labels={"app": app}), spec=pod),
        ),
    )


async def test_a_write_carries_what_was_compared() -> None:
    rig = Rig()
    made = await rig.applier.apply(box(a="1"))
    (create,) = rig.take()
    assert create.method == "PATCH"
    assert create.body["metadata"] == {"name": "box", "namespace": "default", "resourceVersion": "1"}
    await rig.applier.apply(box(a="2"))
    (change,) = rig.take()
    identity = {"name": "box", "namespace": "default", "uid": made.uid, "resourceVersion": made.resource_version}
    assert (change.body["metadata"], change.body["data"]) == (identity, {"a": "2"})


def document(labels: dict[str, str] | None = None, **data: str) -> Unstructured:
    """Return a desired state that has `data` also if it is empty."""
    metadata = {"name": "box", "namespace": "default", **({"labels": labels} if labels else {})}
    return Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


async def test_a_map_that_becomes_empty_is_emptied_by_two_applies() -> None:
    rig, wanted = Rig(), document()
    made = await rig.applier.apply(box(a="1"))
    rig.take()
    await rig.applier.apply(wanted)
    first, second = rig.take()
    assert "data" not in first.body
    assert (first.body["apiVersion"], first.body["kind"]) == ("v1", "ConfigMap")
    assert first.body["metadata"]["resourceVersion"] == made.resource_version
    assert (first.body["metadata"]["name"], first.body["metadata"]["namespace"]) == ("box", "default")
    assert first.body["metadata"]["uid"] == made.uid
    assert second.body["data"] == {}
    assert second.body["metadata"]["resourceVersion"] not in ("", "1", made.resource_version)
    live = await rig.world.client.get(ConfigMap, "box")
    assert not live.data
    await rig.applier.apply(wanted)
    assert rig.take() == []


async def test_labels_stay_in_the_first_of_the_two_applies() -> None:
    rig = Rig()
    labels = {"app": "web"}
    await rig.applier.apply(document(labels, a="1"))
    rig.take()
    await rig.applier.apply(document(labels))
    first, _ = rig.take()
    assert first.body["metadata"]["labels"] == labels
    assert (await rig.world.client.get(ConfigMap, "box")).metadata.labels == labels


async def test_fields_of_another_manager_are_taken_unless_that_is_not_wanted() -> None:
    rig = Rig()
    await rig.applier.apply(box(a="1"))
    await rig.client.using(field_manager="human").apply(box(a="2"), force=True)
    with pytest.raises(ApplyConflict):
        await rig.applier.apply(box(a="3"), force=False)
    assert (await rig.applier.apply(box(a="3"))).data == {"a": "3"}


@pytest.mark.parametrize(
    ("recreate", "propagation"),
    [(True, "Background"), ("Background", "Background"), ("Foreground", "Foreground"), ("Orphan", "Orphan")],
)
async def test_an_object_that_cannot_be_changed_is_recreated_as_asked(recreate: Any, propagation: str) -> None:
    rig = Rig()
    await rig.applier.apply(web())
    rig.take()
    with suppress(AlreadyExists):  # an object that waits for its children is created later
        await rig.applier.apply(web("other"), recreate=recreate)
    (delete,) = [one for one in rig.take() if one.method == "DELETE"]
    assert delete.body["propagationPolicy"] == propagation
    assert sorted(delete.body["preconditions"]) == ["resourceVersion", "uid"]


async def test_without_recreate_the_error_of_the_server_is_raised_and_nothing_is_deleted() -> None:
    rig = Rig()
    made = await rig.applier.apply(web())
    with pytest.raises(Invalid):
        await rig.applier.apply(web("other"))
    assert (await rig.world.client.get(Deployment, "web")).uid == made.uid


# Objects that change between the read and the write


class Racing(Rig):
    """Another client acts right before the first write arrives."""

    def __init__(self, world: World, act: Callable[[Client], Awaitable[object]]) -> None:
        super().__init__(world)
        self.act: Callable[[Client], Awaitable[object]] | None = act
        self.reads: list[str] = []

    async def _handle(self, request: Request) -> Any:
        if request.method == "GET":
            self.reads.append(request.path.rpartition("/")[2])
        elif self.act is not None:
            act, self.act = self.act, None
            await act(self.world.client)
        return await super()._handle(request)


async def test_an_object_that_has_changed_is_read_again_and_written_by_its_uid() -> None:
    world = World()
    made = await Rig(world).applier.apply(box(a="1"))
    rig = Racing(world, lambda client: client.patch(ConfigMap, "box", {"data": {"b": "theirs"}}))
    assert (await rig.applier.apply(box(a="2"))).data == {"a": "2", "b": "theirs"}
    first, second = rig.take()
    assert first.body["metadata"]["resourceVersion"] == made.resource_version
    assert second.body["metadata"] == {"name": "box", "namespace": "default", "uid": made.uid}
    assert rig.reads == ["box", "box"]


async def test_an_object_that_was_created_meanwhile_is_read_and_written_by_its_uid() -> None:
    rig = Racing(World(), lambda client: client.create(box(b="theirs")))
    applied = await rig.applier.apply(box(a="1"))
    assert applied.data == {"a": "1", "b": "theirs"}
    first, second = rig.take()
    assert first.body["metadata"]["resourceVersion"] == "1"
    assert second.body["metadata"] == {"name": "box", "namespace": "default", "uid": applied.uid}


async def test_an_object_that_was_deleted_meanwhile_is_created() -> None:
    world = World()
    made = await Rig(world).applier.apply(box(a="1"))
    rig = Racing(world, lambda client: client.delete(ConfigMap, "box"))
    applied = await rig.applier.apply(box(a="2"))
    assert (applied.uid != made.uid, applied.data) == (True, {"a": "2"})
    assert [one.body["metadata"]["resourceVersion"] for one in rig.take()] == [made.resource_version, "1"]


async def test_a_child_is_written_again_only_after_its_owner_was_read() -> None:
    world = await world_with_gadgets()
    owner = await world.client.create(gadget("lamp"))
    await Rig(world).applier.apply(box(a="1"), owner=owner)
    rig = Racing(world, lambda client: client.patch(ConfigMap, "box", {"data": {"b": "theirs"}}))
    await rig.applier.apply(box(a="2"), owner=owner)
    assert rig.reads[-3:] == ["box", "lamp", "box"]

    async def replace(client: Client) -> None:
        await client.delete(Gadget, "lamp")
        await client.patch(ConfigMap, "box", {"data": {"b": "again"}})

    message = (
        r"^apply ConfigMap default/box: the cache is stale, nothing was written: Gadget default/lamp cannot be read: "
    )
    with pytest.raises(Conflict, match=message):
        await Racing(world, replace).applier.apply(box(a="3"), owner=owner)
    assert (await world.client.get(ConfigMap, "box")).data == {"a": "2", "b": "again"}


async def test_an_error_that_is_no_conflict_is_raised_after_one_write() -> None:
    rig = Rig()
    with pytest.raises(Invalid):
        await rig.applier.apply(ConfigMap(metadata=ObjectMeta(name="Not A Name", namespace="default")))
    assert len(rig.take()) == 1


# Fields of others


async def test_foreign_fields_and_hand_over_work_in_the_namespace_of_the_owner_by_default() -> None:
    rig = Rig(await world_with_gadgets())
    await rig.world.client.create(Namespace(metadata=ObjectMeta(name="shop")))
    lamp = gadget("lamp")
    lamp.metadata.namespace = "shop"
    owner = await rig.world.client.create(lamp)
    await rig.applier.apply(ConfigMap(metadata=ObjectMeta(name="box"), data={"a": "1", "b": "2"}), owner=owner)
    unplaced = ConfigMap(metadata=ObjectMeta(name="box"))
    await rig.applier.hand_over(unplaced, ".data.a", to="human", owner=owner)
    expected = [ForeignField(".data.a", "human", shared=True)]
    assert await rig.applier.foreign_fields(unplaced, owner=owner) == expected
    assert await rig.applier.foreign_fields(box("shop")) == expected
    assert await rig.applier.foreign_fields(unplaced) == [], "there is none in the namespace of the client"
    assert await rig.applier.foreign_fields(Namespace(metadata=ObjectMeta(name="none")), owner=owner) == []


async def test_nothing_is_sent_to_hand_over_what_is_not_owned_or_does_not_exist() -> None:
    rig = Rig()
    await rig.applier.hand_over(box(), ".data.a", to="human")
    await rig.applier.apply(box(a="1"))
    rig.take()
    await rig.applier.hand_over(box(), ".data.b", to="human")
    assert rig.take() == []
    await rig.applier.hand_over(box(), ".data.a", to="human")
    (sent,) = rig.take()
    assert sent.body["data"] == {"a": "1"}


async def test_a_field_that_a_third_manager_has_taken_is_not_handed_over() -> None:
    rig = Rig()
    await rig.applier.apply(box(a="1"))

    class Late(Rig):
        """A third manager sets the field between the read and the hand-over."""

        async def _handle(self, request: Request) -> Any:
            if request.method == "PATCH" and not self.sent:
                await rig.client.using(field_manager="third").apply(box(a="3"), force=True)
            return await super()._handle(request)

    await Late(rig.world).applier.hand_over(box(), ".data.a", to="human")
    assert (await rig.world.client.get(ConfigMap, "box")).data == {"a": "3"}


async def test_a_field_that_our_manager_has_changed_meanwhile_is_a_conflict() -> None:
    world = World()
    await Rig(world).applier.apply(box(a="1"))
    rig = Racing(world, lambda _: Rig(world).applier.apply(box(a="9")))
    with pytest.raises(ApplyConflict):
        await rig.applier.hand_over(box(), ".data.a", to="human")
    assert (await world.client.get(ConfigMap, "box")).data == {"a": "9"}


async def test_an_object_that_is_gone_before_it_is_deleted_for_another_is_created() -> None:
    world = World()
    made = await Rig(world).applier.apply(web())

    class Faster(Rig):
        """Another client deletes the object first."""

        async def _handle(self, request: Request) -> Any:
            if request.method == "DELETE":
                await self.world.client.delete(Deployment, "web")
            return await super()._handle(request)

    recreated = await Faster(world).applier.apply(web("other"), recreate=True)
    assert recreated.uid != made.uid
    assert recreated.spec.selector.match_labels == {"app": "other"}
