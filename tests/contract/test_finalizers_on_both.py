"""Finalizers and status, on the embedded control plane and on a real API server, with others who write too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

import pytest

from apply_rig import ApplyRig, apply_rig
from konverge.client import Client, HttpTransport, InProcessTransport, load_config
from konverge.errors import Conflict, Invalid, NotFound
from konverge.k8s.apps.v1 import Deployment
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import Model, Resource, Unstructured, field, from_wire, kind_of, now
from konverge.objects.conditions import Condition, set_condition
from konverge.reconcile.finalizers import add_finalizer, remove_finalizer
from konverge.reconcile.statuses import update_status
from konverge.testing import ControlPlane
from konverge.wire import Request, Response, Transport
from konverge_cluster.embedded_server import EmbeddedServer

OURS, THEIRS = "example.com/ours", "example.org/theirs"

Open = Callable[[], AbstractAsyncContextManager[ApplyRig]]


@pytest.fixture(params=["embedded", pytest.param("real", marks=[pytest.mark.control_plane, pytest.mark.real_time])])
def opened(request: pytest.FixtureRequest) -> Open:
    """A function that opens a rig on the embedded server, then on a real one."""
    kinds = (ConfigMap, Deployment)
    if request.param == "embedded":
        return lambda: apply_rig(InProcessTransport(EmbeddedServer(seed=1).handle), "default", kinds)
    plane: ControlPlane = request.getfixturevalue("control_plane")
    namespace: str = request.getfixturevalue("namespace")
    return lambda: apply_rig(HttpTransport(load_config(kubeconfig=plane.kubeconfig)), namespace, kinds)


class Meddler:
    """A transport that lets somebody else write right before our own writes leave, as often as it is told."""

    def __init__(self, inner: Transport, meddle: Callable[[], Any], times: int) -> None:
        self._inner = inner
        self._meddle = meddle
        self.times = times

    async def send(self, request: Request) -> Response:
        if request.method == "PATCH" and self.times:
            self.times -= 1
            await self._meddle()
        return await self._inner.send(request)

    async def close(self) -> None:
        await self._inner.close()


def meddled(it: ApplyRig, meddle: Callable[[], Any], times: int = 1) -> Client:
    """Give a client whose writes come too late."""
    return Client(Meddler(it.transport, meddle, times), options=it.client.options)


async def made(it: ApplyRig, *finalizers: str) -> ConfigMap:
    wish = {"metadata": {"name": "thing", "namespace": it.namespace, "finalizers": list(finalizers)}}
    return await it.others.create(from_wire(ConfigMap, wish))


async def finalizers(it: ApplyRig) -> list[str]:
    found = await it.live(ConfigMap, "thing")
    return list(found["metadata"].get("finalizers", []))


async def let_go(it: ApplyRig) -> None:
    await it.others.patch(ConfigMap, it.key("thing"), {"metadata": {"finalizers": None}})


# Finalizers


@pytest.mark.parametrize("there", [(), (THEIRS,), (THEIRS, "example.net/third")])
async def test_a_finalizer_is_added_once_and_taken_off_alone(opened: Open, there: tuple[str, ...]) -> None:
    async with opened() as it:
        obj = await made(it, *there)
        with_it = await add_finalizer(it.client, obj, OURS)
        assert with_it.metadata.finalizers == [*there, OURS] == await finalizers(it)
        it.sent.clear()
        assert await add_finalizer(it.client, with_it, OURS) is with_it
        assert it.sent == []

        without = await remove_finalizer(it.client, with_it, OURS)
        assert without is not None
        assert without.metadata.finalizers == [*there] == await finalizers(it)
        it.sent.clear()
        assert await remove_finalizer(it.client, without, OURS) is without
        assert it.sent == []
        await let_go(it)


async def test_an_untyped_object_has_finalizers_too(opened: Open) -> None:
    async with opened() as it:
        await made(it, THEIRS)
        obj = await it.client.get(kind_of(ConfigMap), it.key("thing"))
        with_it = await add_finalizer(it.client, obj, OURS)
        assert isinstance(with_it, Unstructured)
        assert await finalizers(it) == [THEIRS, OURS]
        await remove_finalizer(it.client, with_it, OURS)
        assert await finalizers(it) == [THEIRS]
        await let_go(it)


async def test_a_finalizer_that_somebody_adds_meanwhile_is_kept(opened: Open) -> None:
    async with opened() as it:
        obj = await made(it)

        async def meddle() -> None:
            await it.others.patch(ConfigMap, it.key("thing"), {"metadata": {"finalizers": [THEIRS]}})

        await add_finalizer(meddled(it, meddle), obj, OURS)
        assert await finalizers(it) == [THEIRS, OURS]
        await let_go(it)


async def test_a_finalizer_that_somebody_removes_meanwhile_stays_removed(opened: Open) -> None:
    async with opened() as it:
        obj = await made(it, THEIRS, OURS, "example.net/third")

        async def meddle() -> None:
            wish = {"metadata": {"finalizers": [OURS, "example.net/third"]}}
            await it.others.patch(ConfigMap, it.key("thing"), wish)

        await remove_finalizer(meddled(it, meddle), obj, OURS)
        assert await finalizers(it) == ["example.net/third"]
        await let_go(it)


async def test_two_operators_add_and_remove_at_once_and_each_keeps_its_own(opened: Open) -> None:
    async with opened() as it:
        obj = await made(it)
        for _ in range(5):
            await asyncio.gather(
                add_finalizer(it.client, obj, OURS), add_finalizer(it.others, obj, THEIRS), _label(it, "a")
            )
            assert sorted(await finalizers(it)) == [OURS, THEIRS]
            stale = await it.others.get(ConfigMap, it.key("thing"))
            await asyncio.gather(remove_finalizer(it.client, stale, OURS), _label(it, "b"))
            assert await finalizers(it) == [THEIRS]
            await remove_finalizer(it.others, stale, THEIRS)
            assert await finalizers(it) == []


async def _label(it: ApplyRig, value: str) -> None:
    await it.others.patch(ConfigMap, it.key("thing"), {"metadata": {"labels": {"who": value}}})


async def test_the_last_finalizer_lets_a_deleted_object_go(opened: Open) -> None:
    async with opened() as it:
        obj = await made(it, OURS)
        await it.others.delete(obj)
        marked = await it.others.get(ConfigMap, it.key("thing"))
        await remove_finalizer(it.client, marked, OURS)
        with pytest.raises(NotFound):
            await it.live(ConfigMap, "thing")
        assert await remove_finalizer(it.client, marked, OURS) is None
        await it.seen(ConfigMap, "thing")


async def test_an_object_that_is_being_deleted_gets_no_finalizer_and_that_is_no_error(opened: Open) -> None:
    async with opened() as it:
        obj = await made(it, THEIRS)
        await it.others.delete(obj)
        marked = await it.others.get(ConfigMap, it.key("thing"))
        it.sent.clear()
        assert await add_finalizer(it.client, marked, OURS) is marked
        assert it.sent == []
        # The same for who has not seen the mark yet.
        seen = await add_finalizer(it.client, obj, OURS)
        assert seen.metadata.deletion_timestamp is not None
        assert await finalizers(it) == [THEIRS]
        await let_go(it)


async def test_a_namesake_made_since_is_left_alone(opened: Open) -> None:
    async with opened() as it:
        obj = await made(it, OURS)
        await let_go(it)
        await it.others.delete(ConfigMap, it.key("thing"))
        await made(it, OURS, THEIRS)
        assert await remove_finalizer(it.client, obj, OURS) is None
        bare = from_wire(ConfigMap, {"metadata": {"name": "thing", "namespace": it.namespace, "uid": obj.uid}})
        bare.metadata.resource_version = obj.resource_version
        with pytest.raises(NotFound):
            await add_finalizer(it.client, bare, OURS)
        assert await finalizers(it) == [OURS, THEIRS]
        await let_go(it)


async def test_a_name_that_the_server_refuses_is_an_error_at_once(opened: Open) -> None:
    async with opened() as it:
        obj = await made(it)
        it.sent.clear()
        with pytest.raises(Invalid):
            await add_finalizer(it.client, obj, "no name!")
        assert it.sent == ["patch", "get"]


async def test_somebody_who_writes_every_time_ends_in_a_conflict_and_not_in_a_loop(opened: Open) -> None:
    async with opened() as it:
        obj = await made(it)
        values = iter(range(1000))

        async def meddle() -> None:
            await _label(it, f"v{next(values)}")

        with pytest.raises(Conflict, match="the object changed during each of 10 attempts"):
            await add_finalizer(meddled(it, meddle, times=1000), obj, OURS)
        assert await finalizers(it) == []


# Status


class ThingStatus(Model):
    replicas: int | None = None
    conditions: list[Condition] = field(default_factory=list)


class Thing(Resource, identity=kind_of(Deployment)):
    """A Deployment as a class knows it that is older than the server: a few fields of its status."""

    status: ThingStatus = field(default_factory=ThingStatus)


async def thing(it: ApplyRig) -> Thing:
    wish = {
        "metadata": {"name": "web", "namespace": it.namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "app", "image": "app:1"}]},
            },
        },
    }
    await it.others.create(from_wire(Deployment, wish))
    status = {"replicas": 3, "readyReplicas": 2, "observedGeneration": 1}
    return await it.others.patch(Thing, it.key("web"), {"status": status}, subresource="status")


async def test_only_what_is_new_in_a_status_is_sent_and_what_the_class_does_not_know_stays(opened: Open) -> None:
    async with opened() as it:
        obj = await thing(it)
        it.sent.clear()
        assert await update_status(it.client, obj) is obj
        assert it.sent == []

        obj.status.replicas = 4
        set_condition(obj.status.conditions, "Available", True, reason="Good")
        written = await update_status(it.client, obj)
        assert it.sent == ["patch"]
        status = (await it.live(Deployment, "web"))["status"]
        assert (status["replicas"], status["readyReplicas"], status["observedGeneration"]) == (4, 2, 1)

        it.sent.clear()
        assert await update_status(it.client, written) is written
        assert it.sent == []


async def test_a_condition_whose_time_alone_has_moved_is_not_written(opened: Open) -> None:
    async with opened() as it:
        obj = await thing(it)
        set_condition(obj.status.conditions, "Available", True, reason="Good")
        obj = await update_status(it.client, obj)
        since = obj.status.conditions[0].last_transition_time

        it.sent.clear()
        obj.status.conditions = [
            Condition(type="Available", status="True", reason="Good", last_transition_time=now() + timedelta(hours=1))
        ]
        await update_status(it.client, obj)
        assert it.sent == []

        obj.status.conditions[0].reason = "Better"
        obj = await update_status(it.client, obj)
        assert it.sent == ["patch"]
        assert (obj.status.conditions[0].reason, obj.status.conditions[0].last_transition_time) == ("Better", since)


async def test_a_status_that_was_read_before_somebody_wrote_is_a_conflict(opened: Open) -> None:
    async with opened() as it:
        obj = await thing(it)
        await it.others.patch(Deployment, it.key("web"), {"metadata": {"labels": {"a": "b"}}})
        obj.status.replicas = 9
        with pytest.raises(Conflict):
            await update_status(it.client, obj)
        assert (await it.live(Deployment, "web"))["status"]["replicas"] == 3


async def test_an_untyped_status_is_compared_with_the_cache_and_sent_as_its_difference(opened: Open) -> None:
    async with opened() as it:
        await thing(it)
        await it.seen(Deployment, "web")
        entry = it.cache.entry(kind_of(Deployment), it.key("web"))
        assert entry is not None
        obj = entry.read(Unstructured)
        it.sent.clear()
        await update_status(it.client, obj, cache=it.cache)
        assert [verb for verb in it.sent if verb != "discover"] == []

        managers = (await it.live(Deployment, "web"))["metadata"]["managedFields"]
        del obj["status"]["readyReplicas"]
        obj["status"]["replicas"] = 5
        written = await update_status(it.client, obj, cache=it.cache)
        assert (written["status"]["replicas"], written["status"].get("readyReplicas")) == (5, None)
        after = (await it.live(Deployment, "web"))["metadata"]["managedFields"]
        assert {one["manager"] for one in managers} <= {one["manager"] for one in after}

        with pytest.raises(Conflict):
            obj["status"]["replicas"] = 6
            await update_status(it.client, obj, cache=it.cache)


async def test_an_object_that_was_never_read_has_no_status_to_write(opened: Open) -> None:
    async with opened() as it:
        with pytest.raises(ValueError, match="not read"):
            await update_status(it.client, Thing())
        assert it.sent == []
