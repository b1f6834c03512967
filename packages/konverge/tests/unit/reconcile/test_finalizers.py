"""Finalizers: one entry is added or removed, of the object that was passed, and nothing of others is reverted."""

from __future__ import annotations

import pytest

from konverge import Client, Conflict, ObjectMeta
from konverge.client import ClientOptions, InProcessTransport
from konverge.errors import Invalid, NotFound
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import Unstructured, decode_unstructured, encode
from konverge.reconcile.finalizers import add_finalizer, finalizers_of, is_terminating, remove_finalizer
from konverge.testing.fault_transport import FaultTransport
from konverge.testing.faults import RecordedRequest
from konverge.wire import Request, Response
from konverge_cluster import EmbeddedServer

OURS, OTHER = "example.com/ours", "example.com/other"


class World:
    """A server, and a client whose requests are recorded."""

    def __init__(self) -> None:
        self.transport = FaultTransport(InProcessTransport(EmbeddedServer(seed=1).handle))
        self.client = Client(self.transport, options=ClientOptions(namespace="default"))

    async def create(self, *finalizers: str) -> ConfigMap:
        metadata = ObjectMeta(name="a", namespace="default", finalizers=list(finalizers))
        return await self.client.create(ConfigMap(metadata=metadata))

    def patches(self) -> int:
        return len(self.transport.script.requests(is_patch))


def is_patch(request: RecordedRequest) -> bool:
    return request.method == "PATCH"


@pytest.mark.parametrize("before", [(), (OTHER,), (OTHER, "example.com/third")])
async def test_a_finalizer_is_added_behind_those_of_others(before: tuple[str, ...]) -> None:
    world = World()
    added = await add_finalizer(world.client, await world.create(*before), OURS)
    assert finalizers_of(added) == [*before, OURS]
    assert finalizers_of(await world.client.get(ConfigMap, "a")) == [*before, OURS]
    assert await add_finalizer(world.client, added, OURS) == added
    assert world.patches() == 1, "an object that has it is not written"


@pytest.mark.parametrize("before", [(OURS,), (OTHER, OURS), (OURS, OTHER), (OTHER, OURS, "example.com/third")])
async def test_a_finalizer_is_removed_and_those_of_others_stay(before: tuple[str, ...]) -> None:
    world = World()
    left = await remove_finalizer(world.client, await world.create(*before), OURS)
    assert left is not None
    assert finalizers_of(left) == [one for one in before if one != OURS]
    assert await remove_finalizer(world.client, left, OURS) == left
    assert world.patches() == 1


async def test_unstructured_objects_are_changed_alike() -> None:
    world = World()
    obj = decode_unstructured(encode(await world.create(OTHER)))
    added = await add_finalizer(world.client, obj, OURS)
    assert isinstance(added, Unstructured)
    assert finalizers_of(added) == [OTHER, OURS]
    assert finalizers_of(Unstructured({"metadata": {}})) == []
    assert not is_terminating(added)
    await world.client.delete(ConfigMap, "a")
    terminating = await world.client.get(ConfigMap, "a")
    assert is_terminating(terminating)
    assert is_terminating(decode_unstructured(encode(terminating)))


async def test_the_finalizers_that_are_returned_are_a_copy() -> None:
    obj = ConfigMap(metadata=ObjectMeta(name="a", finalizers=[OURS]))
    finalizers_of(obj).clear()
    assert finalizers_of(obj) == [OURS]


async def test_an_object_that_is_being_deleted_gets_no_finalizer_and_goes_with_its_last() -> None:
    world = World()
    await world.create(OTHER)
    await world.client.delete(ConfigMap, "a")
    terminating = await world.client.get(ConfigMap, "a")
    assert await add_finalizer(world.client, terminating, OURS) == terminating
    assert world.patches() == 0
    await remove_finalizer(world.client, terminating, OTHER)
    with pytest.raises(NotFound):
        await world.client.get(ConfigMap, "a")
    assert await remove_finalizer(world.client, terminating, OTHER) is None, "it is gone"


@pytest.mark.parametrize("present", [True, False])
async def test_a_change_by_another_client_is_kept_and_the_change_repeated(present: bool) -> None:
    world = World()
    stale = await world.create("example.com/first", *(() if present else (OURS,)))
    await world.client.patch(
        ConfigMap, "a", {"data": {"text": "of another"}, "metadata": {"finalizers": [OTHER, OURS]}}
    )
    if present:
        await world.client.patch(ConfigMap, "a", {"metadata": {"finalizers": [OTHER]}})
    changed = await (add_finalizer if present else remove_finalizer)(world.client, stale, OURS)
    assert changed is not None
    assert finalizers_of(changed) == ([OTHER, OURS] if present else [OTHER])
    assert changed.data == {"text": "of another"}


async def test_another_object_of_the_same_name_is_left_alone() -> None:
    world = World()
    old = await world.create()
    await world.client.delete(old)
    new = await world.create(OURS)
    with pytest.raises(NotFound, match=r"^patch ConfigMap default/a: another object has the name now$") as caught:
        await add_finalizer(world.client, old, OTHER)
    error = caught.value
    assert (error.status, error.verb, error.kind, error.key) == (404, "patch", "ConfigMap", "default/a")
    assert isinstance(error.__cause__, Conflict | Invalid)
    old.metadata.finalizers = [OURS]
    assert await remove_finalizer(world.client, old, OURS) is None
    assert await world.client.get(ConfigMap, "a") == new


async def test_a_patch_that_the_server_rejects_is_its_error_at_once() -> None:
    world = World()
    obj = await world.create()
    with pytest.raises(Invalid, match="finalizers"):
        await add_finalizer(world.client, obj, "no finalizer at all")
    assert world.patches() == 1


async def test_an_object_that_changes_all_the_time_is_a_conflict_after_ten_attempts() -> None:
    world = World()
    obj = await world.create()
    attempts = 0

    class Changing(FaultTransport):
        """Another client is always faster."""

        async def send(self, request: Request) -> Response:
            nonlocal attempts
            if request.method == "PATCH":
                attempts += 1
                await world.client.patch(ConfigMap, "a", {"data": {"number": str(attempts)}})
            return await super().send(request)

    client = Client(Changing(world.transport), options=ClientOptions(namespace="default"))
    words = f": the finalizer {OURS} could not be changed: the object changed during each of 10 attempts$"
    with pytest.raises(Conflict, match=words) as caught:
        await add_finalizer(client, obj, OURS)
    assert attempts == 10
    error = caught.value
    assert (error.status, error.verb, error.kind, error.key) == (409, "patch", "ConfigMap", "default/a")
