"""Events as the servers take them: the embedded control plane and a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from konverge.client import Client, HttpTransport, InProcessTransport, load_config
from konverge.k8s.core.v1 import ConfigMap, Namespace
from konverge.k8s.events.v1 import Event
from konverge.objects import ObjectMeta
from konverge.reconcile.recorder import EventLimits, EventRecorder, Reference
from konverge.testing import ControlPlane
from konverge.wire import Transport
from konverge_cluster.embedded_server import EmbeddedServer
from kubectl import Kubectl

pytestmark = pytest.mark.real_time(limit=120)

QUICK = EventLimits(heartbeat=0.1)


@dataclass
class Desk:
    """A server, a namespace on it, and a recorder that is running."""

    client: Client
    namespace: str
    recorder: EventRecorder
    kubectl: Kubectl

    async def made(self, name: str) -> ConfigMap:
        return await self.client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=self.namespace)))

    async def events(self, name: str, namespace: str = "") -> list[Event]:
        found = await self.client.list(Event, namespace=namespace or self.namespace, fields=f"regarding.name={name}")
        return list(found)

    async def event_about(self, name: str, fits: Callable[[Event], bool], *, namespace: str = "") -> Event:
        """Wait until there is one event about an object and it is as wanted."""
        async with asyncio.timeout(60):
            while True:
                events = await self.events(name, namespace)
                if len(events) == 1 and fits(events[0]):
                    return events[0]
                await asyncio.sleep(0.05)

    async def settled(self) -> None:
        """Wait until nothing is left to be sent."""
        async with asyncio.timeout(60):
            while self.recorder.stats().pending:  # noqa: ASYNC110 - stats have no notification
                await asyncio.sleep(0.05)


Open = Callable[[], AbstractAsyncContextManager[Desk]]


@asynccontextmanager
async def desk(transport: Transport, namespace: str, kubectl: Kubectl) -> AsyncIterator[Desk]:
    async with Client(transport) as client, asyncio.TaskGroup() as group:
        recorder = EventRecorder(client, controller="example.com/widgets", instance="widgets-1", limits=QUICK)
        group.create_task(recorder.run())
        yield Desk(client, namespace, recorder, kubectl)
        recorder.close()


@asynccontextmanager
async def embedded(directory: Path) -> AsyncIterator[Desk]:
    async with EmbeddedServer(seed=1) as plane:
        kubeconfig = directory / "kubeconfig"
        plane.write_kubeconfig(kubeconfig)
        async with desk(InProcessTransport(plane.handle), "default", Kubectl(kubeconfig, directory)) as it:
            yield it


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.control_plane)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """A function that opens a desk on the embedded server, then on a real one."""
    if request.param == "embedded":
        return lambda: embedded(tmp_path)
    plane: ControlPlane = request.getfixturevalue("control_plane")
    namespace: str = request.getfixturevalue("namespace")
    config = load_config(kubeconfig=plane.kubeconfig)
    return lambda: desk(HttpTransport(config), namespace, Kubectl(Path(plane.kubeconfig), tmp_path))


def count_of(event: Event) -> int:
    return event.series.count if event.series is not None else 1


async def test_an_event_is_stored_as_recorded(opened: Open) -> None:
    async with opened() as it:
        made, other = await it.made("recorded"), await it.made("other")
        it.recorder.record(
            Reference.of(made, field_path="data.size"),
            type="Warning",
            reason="TooLarge",
            message="no room for \u20ac",
            action="Resize",
            related=Reference.of(other),
        )
        event = await it.event_about("recorded", lambda _: True)
    assert (event.type, event.reason, event.action, event.note) == (
        "Warning",
        "TooLarge",
        "Resize",
        "no room for \u20ac",
    )
    assert (event.reporting_controller, event.reporting_instance) == ("example.com/widgets", "widgets-1")
    assert event.regarding is not None
    assert (event.regarding.kind, event.regarding.uid) == ("ConfigMap", made.uid)
    assert (event.regarding.field_path, event.regarding.resource_version) == ("data.size", made.resource_version)
    assert event.related is not None
    assert event.related.uid == other.uid
    assert event.series is None


async def test_repeats_grow_the_series_of_one_event(opened: Open) -> None:
    async with opened() as it:
        about = Reference.of(await it.made("repeated"))
        for turn in range(1, 4):
            for _ in range(5):
                it.recorder.record(about, reason="Scaled", message="to 3")
            event = await it.event_about("repeated", lambda event, turn=turn: count_of(event) == 5 * turn)  # type: ignore[misc]
        assert event.series is not None
        assert event.series.last_observed_time is not None
        assert event.event_time is not None
        assert event.series.last_observed_time > event.event_time


async def test_an_event_that_was_deleted_is_created_anew_with_its_count(opened: Open) -> None:
    async with opened() as it:
        about = Reference.of(await it.made("deleted"))
        for _ in range(2):
            it.recorder.record(about, reason="Scaled", message="to 3")
        first = await it.event_about("deleted", lambda event: count_of(event) == 2)
        await it.client.delete(first)
        it.recorder.record(about, reason="Scaled", message="to 3")
        second = await it.event_about("deleted", lambda event: count_of(event) == 3)
        assert second.uid != first.uid


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\U0001f600", "\ud800", "\x00"])
async def test_the_longest_words_are_taken(opened: Open, letter: str) -> None:
    async with opened() as it:
        about = Reference.of(await it.made("long"))
        it.recorder.record(about, reason="R" * 500, message=letter * 5000, action="A" * 500)
        event = await it.event_about("long", lambda _: True)
        assert it.recorder.stats().dropped == 0
    assert 1020 <= len((event.note or "").encode()) <= 1024


@pytest.mark.parametrize("name", ["system:node", "A_b", "x" * 253, "a.b.c", "\u00fc"])
async def test_any_object_can_have_events(opened: Open, name: str) -> None:
    async with opened() as it:
        about = Reference(api_version="v1", kind="Thing", namespace=it.namespace, name=name, uid="1")
        it.recorder.record(about, reason="Seen", message="is there")
        await it.settled()
        stats = it.recorder.stats()
        assert (stats.creates, stats.dropped) == (1, 0)


async def test_events_about_cluster_scoped_objects_are_in_the_default_namespace(opened: Open) -> None:
    async with opened() as it:
        namespace = await it.client.get(Namespace, it.namespace)
        it.recorder.record(Reference.of(namespace), reason="Seen", message="is there")
        event = await it.event_about(it.namespace, lambda _: True, namespace="default")
        assert event.regarding is not None
        assert not event.regarding.namespace


async def test_an_event_in_a_namespace_that_is_not_there_is_dropped_and_others_are_not(opened: Open) -> None:
    async with opened() as it:
        lost = Reference(api_version="v1", kind="ConfigMap", namespace="nowhere-at-all", name="lost")
        it.recorder.record(lost, reason="Seen", message="is there")
        it.recorder.record(Reference.of(await it.made("found")), reason="Seen", message="is there")
        await it.event_about("found", lambda _: True)
        await it.settled()
        assert it.recorder.stats().dropped_failed == 1


async def test_what_is_left_at_the_end_is_sent(opened: Open) -> None:
    async with opened() as it:
        about = Reference.of(await it.made("last"))
        it.recorder.record(about, reason="Scaled", message="to 3")
        await it.event_about("last", lambda _: True)
        for _ in range(9):
            it.recorder.record(about, reason="Scaled", message="to 3")
        it.recorder.close(30)
        await it.event_about("last", lambda event: count_of(event) == 10)


async def test_kubectl_shows_events_and_describes_objects_with_them(opened: Open) -> None:
    async with opened() as it:
        about = Reference.of(await it.made("shown"))
        for _ in range(3):
            it.recorder.record(about, type="Warning", reason="TooLarge", message="no room")
        await it.event_about("shown", lambda event: count_of(event) == 3)
        where = ["-n", it.namespace]
        listed = await asyncio.to_thread(it.kubectl.run, ["get", "events", *where])
        described = await asyncio.to_thread(it.kubectl.run, ["describe", "configmap", "shown", *where])
    assert listed.code == 0, listed.err
    (line,) = [line for line in listed.out.splitlines() if "TooLarge" in line]
    assert "configmap/shown" in line
    assert line.split("  ")[1] == "Warning"
    assert "no room" in line
    assert described.code == 0, described.err
    assert "TooLarge" in described.out
