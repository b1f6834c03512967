"""Scenarios T24, T25, T28, T29, T31 and T33: leader election, permissions, absent kinds, bad input, finalizers."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from random import Random
from typing import Any, Literal

import pytest

from konverge import (  # fmt: skip
    Condition,
    Context,
    CustomResource,
    ObjectMeta,
    Reconciler,
    Spec,
    Status,
    Unstructured,
    controller_for,
    crd_for,
    field,
)
from konverge.k8s.coordination.v1 import Lease
from konverge.k8s.core.v1 import ConfigMap
from konverge.k8s.events.v1 import Event
from konverge.manager import LeaderElection
from konverge.testing import ControlPlane
from konverge.testing.faults import Fault, RecordedRequest, forbidden
from konverge.testing.faults import lists as lists_of
from konverge.testing.faults import watches as watches_of
from widget_operator import Widget
from widget_rigs import OpenWidgets, WidgetRig, Write, install_widgets, real_widgets, virtual_widgets

LEASE, RENEW, RETRY = 15.0, 10.0, 2.0


def election(rig: WidgetRig, who: str) -> LeaderElection:
    timing = {"lease_duration": LEASE, "renew_deadline": RENEW, "retry_period": RETRY}
    return LeaderElection("widget-lease", rig.namespace, identity=who, clock=rig.now, **timing)  # type: ignore[arg-type]


def is_list(asked: RecordedRequest) -> bool:
    return asked.collection in ("widgets", "configmaps") and (lists_of()(asked) or "sendInitialEvents" in asked.query)


def names(count: int, letter: str = "w") -> list[str]:
    return [f"{letter}{number:05}" for number in range(count)]


# T20, the quick half: the half hour on a real server is in test_controller_processes


async def test_t20_reconnects_leave_no_task_no_stream_and_no_key_behind() -> None:
    async with virtual_widgets() as rig:
        keys = names(5)
        await rig.create(*keys)
        transport = rig.transport()
        async with rig.operating(transport=transport) as (manager, _):
            await rig.converges(within=10)
            await asyncio.sleep(10)
            tasks, streams = len(asyncio.all_tasks()), transport.streams
            for number in range(15):
                [transport.reset_streams, transport.close_streams, transport.pause_streams][number % 3]()
                await rig.change(*keys, payload=str(number))
                await rig.converges(within=60)
            await asyncio.sleep(120)

            assert (len(asyncio.all_tasks()), transport.streams) == (tasks, streams)
            (stats,) = manager.stats()
            assert (stats.queue.ready, stats.queue.delayed, stats.active_workers) == (0, 0, 0)


# T24


async def test_t24_a_killed_leader_is_replaced_within_its_lease_duration_and_without_a_list(
    open_widgets: OpenWidgets,
) -> None:
    async with open_widgets() as rig:
        await rig.create("a", replicas=2)
        first, second = rig.transport("first"), rig.transport("second")
        async with rig.operating(transport=first, leader_election=election(rig, "first")):
            await rig.converges(within=10)
            async with rig.operating(transport=second, leader_election=election(rig, "second")):
                await asyncio.sleep(5)
                first.kill()
                killed = rig.now()
                await rig.change("a", payload="new")
                await rig.until(lambda: rig.writes(client="second"), within=LEASE + RETRY + 5)

                write = rig.writes(client="second")[0]
                assert write.sent - killed <= LEASE + RETRY + 1 + rig.slack / 6
                assert second.script.requests(is_list, since=killed) == []
                await rig.converges(within=5)
                _check_one_writer_at_a_time(rig)


async def test_t24_a_stopped_leader_is_replaced_within_three_seconds(open_widgets: OpenWidgets) -> None:
    async with open_widgets() as rig:
        await rig.create("a", replicas=2)
        first, second = rig.transport("first"), rig.transport("second")
        async with rig.operating(transport=second, leader_election=election(rig, "second")) as (_, standby):
            async with rig.operating(transport=first, leader_election=election(rig, "first")):
                # Either one may be first: the scenario is the same.
                await rig.converges(within=10)
                leader = {write.client for write in rig.writes()}
                await asyncio.sleep(5)
                stopped = rig.now()
                await rig.change("a", payload="new")
            if leader == {"first"}:
                await rig.until(lambda: rig.writes(client="second"), within=3)
                assert second.script.requests(is_list, since=stopped) == []
            await rig.converges(within=5)
            assert standby.lost_reason == ""
        _check_one_writer_at_a_time(rig)


def _check_one_writer_at_a_time(rig: WidgetRig) -> None:
    """Check that the first does not write after the second."""
    order = [write.client for write in sorted(rig.writes(), key=lambda write: write.sent)]
    assert len([one for one, other in pairwise(order) if one != other]) <= 1, order


# T25


class Busy(Reconciler[Widget]):
    """Writes without end."""

    def __init__(self, rig: WidgetRig) -> None:
        self._rig = rig
        self.cancelled: list[float] = []

    async def reconcile(self, obj: Widget, ctx: Context) -> None:
        number = 0
        try:
            while True:
                number += 1
                await ctx.apply(ConfigMap(metadata=ObjectMeta(name=f"{obj.name}-busy"), data={"n": str(number)}))
                await asyncio.sleep(0.5)
        except asyncio.CancelledError:
            self.cancelled.append(self._rig.now())
            raise


async def test_t25_a_leader_whose_lease_calls_are_blocked_stops_writing_before_another_starts(
    open_widgets: OpenWidgets,
) -> None:
    async with open_widgets() as rig:
        await rig.create("a")
        first, second = rig.transport("first"), rig.transport("second")
        busy = Busy(rig)
        lonely = controller_for(Widget).timeout(3600).build(busy)
        async with rig.operating(lonely, transport=first, leader_election=election(rig, "first")) as (_, process):
            await rig.until(lambda: rig.writes(client="first"), within=10)
            standby_controller = controller_for(Widget).timeout(3600).build(Busy(rig))
            async with rig.operating(standby_controller, transport=second, leader_election=election(rig, "second")):
                await asyncio.sleep(5)
                blocked = rig.now()
                with first.script.active(lambda asked: "leases" in asked.path, Fault(delay=3600.0)):
                    await rig.until(lambda: rig.writes(client="second"), within=LEASE + RETRY + 5)
                    await asyncio.sleep(10)
                assert "not renewed" in process.lost_reason

        (cancelled,) = busy.cancelled
        assert blocked < cancelled <= blocked + RENEW + rig.slack / 6
        last = max(write.answered for write in rig.writes(client="first"))
        assert last <= cancelled + rig.slack / 6
        assert last < min(write.sent for write in rig.writes(client="second"))


async def test_t25_a_leader_that_lost_its_lease_during_a_write_lets_it_expire(
    open_widgets: OpenWidgets,
) -> None:
    async with open_widgets() as rig:
        await rig.create("a")
        busy = controller_for(Widget).timeout(3600).build(Busy(rig))
        async with rig.operating(busy, leader_election=election(rig, "first")) as (_, process):
            await rig.until(rig.writes, within=10)
            for leadership in process.leader_elections:
                leadership.step_down("the loop is blocked")
            await rig.until(lambda: process.lost_reason, within=10)

        lease = await rig.user.get(Lease, "widget-lease", namespace=rig.namespace)
        assert lease.spec.holder_identity == "first", "a cancelled request may still reach the server"


# T28


async def test_t28_revoked_permissions_are_reported_and_it_recovers_when_they_are_restored(
    open_widgets: OpenWidgets,
) -> None:
    async with open_widgets() as rig:
        transport = rig.transport()
        await rig.create("a")
        async with rig.operating(transport=transport) as (_, process):
            await rig.converges(within=10)
            ready = process.monitoring.health.ready
            assert ready().ok, ready().text()
            with (
                transport.script.active(watches_of("configmaps"), forbidden("watch configmaps")),
                transport.script.active(lists_of("configmaps"), forbidden("list configmaps")),
            ):
                transport.close_streams()
                await rig.until(lambda: not ready().ok, within=60)
                said = ready().text(verbose=True)
                assert "ConfigMap" in said
                assert "(needs watch on configmaps)" in said
                await rig.change("a", replicas=3)
            await rig.until(lambda: ready().ok, within=60)
            await rig.converges(within=10)


# T29


async def test_t29_a_kind_that_is_absent_comes_goes_and_comes_back_with_a_new_version() -> None:
    await _come_and_go(virtual_widgets)


@pytest.mark.faults
@pytest.mark.real_time(limit=900)
async def test_t29_the_same_on_a_real_server(control_plane: ControlPlane) -> None:
    assert control_plane is not None  # the binaries are installed; the CRD of a shared server stays
    with ControlPlane() as plane:
        await _come_and_go(lambda: real_widgets(plane))


async def _come_and_go(open_rig: OpenWidgets) -> None:
    async with open_rig() as rig:
        await rig.user.delete("crd", crd_for(Widget).name)
        async with rig.operating() as (_, process):
            await asyncio.sleep(30)
            assert "Widget" in process.monitoring.health.ready().text(verbose=True)

            await install_widgets(rig.user)
            await rig.create("a", replicas=2)
            await rig.converges(within=60)

            await rig.user.delete("crd", crd_for(Widget).name)
            await rig.until(lambda: _is_gone(rig), within=60)
            await asyncio.sleep(120)
            assert "Widget" in process.monitoring.health.ready().text(verbose=True)

            await rig.user.create(_with_second_version())
            await install_widgets(rig.user)
            await rig.create("a", "b", replicas=1)
            await rig.converges(within=90)
            await rig.until(lambda: process.monitoring.health.ready().ok, within=30)
        assert len(rig.ledger.uids("open")) == 3
        assert len(rig.ledger.uids("close")) == 1


async def _is_gone(rig: WidgetRig) -> bool:
    return crd_for(Widget).name not in {one.name for one in await rig.user.list("crd")}


def _with_second_version() -> Unstructured:
    crd = crd_for(Widget)
    (old,) = crd["spec"]["versions"]
    crd["spec"]["versions"] = [{**old, "storage": False}, {**old, "name": "v2", "storage": True}]
    return crd


# T31


class PickySpec(Spec):
    color: str
    size: Literal["small", "large"] = "small"
    count: int = 0


class PickyStatus(Status):
    observed_generation: int = 0
    conditions: list[Condition] = field(default_factory=list)


class Picky(CustomResource[PickySpec, PickyStatus], group="picky.konverge.dev", version="v1"):
    """A kind whose class is stricter than what is stored."""


async def observe(obj: Picky, ctx: Context) -> None:
    obj.status.observed_generation = obj.metadata.generation or 0
    await ctx.update_status(obj)


PICKIES = "pickies.picky.konverge.dev"
BAD: dict[str, dict[str, Any]] = {
    "wrong-type": {"color": "red", "count": "many"},
    "unknown-enum": {"color": "red", "size": "huge"},
    "missing-field": {"size": "small"},
}


async def test_t31_undecodable_objects_are_reported_and_do_not_affect_others(open_widgets: OpenWidgets) -> None:
    async with open_widgets() as rig:
        await _install_loosely(rig)
        good = names(rig.share(997, 40))
        for name, spec in {**BAD, **{name: {"color": "blue"} for name in good}}.items():
            metadata = {"name": name, "namespace": rig.namespace}
            await rig.user.create(
                Unstructured(apiVersion="picky.konverge.dev/v1", kind="Picky", metadata=metadata, spec=spec)
            )
        async with rig.operating(controller_for(Picky).build(observe)):
            await rig.until(lambda: _observed(rig, good), within=60)
            await asyncio.sleep(5)
            stored = {one.name: one for one in await _pickies(rig)}
            events = await rig.user.list(Event, namespace=rig.namespace)
            for name, path in (
                ("wrong-type", ".spec.count"),
                ("unknown-enum", ".spec.size"),
                ("missing-field", "color"),
            ):
                (condition,) = stored[name]["status"]["conditions"]
                assert (condition["type"], condition["status"]) == ("Readable", "False")
                assert path in condition["message"]
                assert condition["observedGeneration"] == 1
                about = [one for one in events if one.regarding and one.regarding.name == name]
                assert [one.type for one in about] == ["Warning"]
            writes = len(rig.writes())
            await asyncio.sleep(60)
            assert len(rig.writes()) == writes, "it is reported once for each state"

            await rig.user.patch(
                "pickies.picky.konverge.dev", "wrong-type", {"spec": {"count": 1}}, namespace=rig.namespace
            )
            await rig.until(lambda: _observed(rig, ["wrong-type"]), within=10)


async def _install_loosely(rig: WidgetRig) -> None:
    crd = crd_for(Picky)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await rig.user.apply(crd, force=True)
    await rig.until(lambda: _is_served(rig), within=30)


async def _is_served(rig: WidgetRig) -> bool:
    crd = await rig.user.get("crd", crd_for(Picky).name)
    conditions = (crd.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


async def _pickies(rig: WidgetRig) -> list[Unstructured]:
    return list(await rig.user.list(PICKIES, namespace=rig.namespace))


async def _observed(rig: WidgetRig, wanted: list[str]) -> bool:
    seen = {one.name: (one.get("status") or {}).get("observedGeneration") for one in await _pickies(rig)}
    return all(seen[name] for name in wanted)


# T33


class SignsOff(Reconciler[Widget]):
    """Takes a while to finalize, and records it."""

    def __init__(self, rig: WidgetRig, seed: int) -> None:
        self._ledger = rig.ledger
        self._dice = Random(seed)

    async def reconcile(self, obj: Widget, ctx: Context) -> None: ...

    async def finalize(self, obj: Widget, ctx: Context) -> None:
        await asyncio.sleep(self._dice.uniform(0, 0.2))
        await self._ledger.note(f"{self.finalizer} {obj.key} {obj.uid}")


class SignsOffHere(SignsOff):
    finalizer = "here.konverge.dev/one"


class SignsOffThere(SignsOff):
    finalizer = "there.konverge.dev/two"


async def test_t33_two_operators_remove_only_their_own_finalizers(open_widgets: OpenWidgets) -> None:
    async with open_widgets() as rig:
        keys = names(rig.share(1_000, 20))
        here, there = SignsOffHere(rig, 1), SignsOffThere(rig, 2)
        async with (
            rig.operating(
                controller_for(Widget).max_concurrent_reconciles(16).build(here),
                transport=rig.transport("here"),
                name="here",
            ),
            rig.operating(
                controller_for(Widget).max_concurrent_reconciles(16).build(there),
                transport=rig.transport("there"),
                name="there",
            ),
        ):
            await rig.create(*keys)
            await rig.until(lambda: _have_finalizers(rig, 2), within=60)
            await rig.delete(*keys)
            await rig.until(lambda: _have_gone(rig), within=120)

        assert len(rig.ledger.uids(here.finalizer)) == len(rig.ledger.uids(there.finalizer)) == len(keys)
        own = {"here": here.finalizer, "there": there.finalizer}
        taken = [(write.client, name) for write in rig.writes() if write.status == 200 for name in _taken_off(write)]
        assert sorted(taken) == sorted((who, name) for who, name in own.items() for _ in keys)


async def _have_finalizers(rig: WidgetRig, count: int) -> bool:
    found = await rig.user.list(Widget, namespace=rig.namespace)
    return all(len(one.metadata.finalizers or ()) == count for one in found)


async def _have_gone(rig: WidgetRig) -> bool:
    return not await rig.user.list(Widget, namespace=rig.namespace)


def _taken_off(write: Write) -> list[str]:
    """Return the finalizers that a JSON patch removes; the patch first tests the value at each index."""
    steps = json.loads(write.body)
    places = [step["path"] for step in steps if step["op"] == "remove"]
    return [step["value"] for step in steps if step["op"] == "test" and step["path"] in places]
