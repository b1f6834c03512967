"""Observers of reconciles: what they are told, in which order, and that they cannot disturb."""

from __future__ import annotations

import re

import pytest

from gadgets import Gadget, gadget, operating, world_with_gadgets
from konverge import Context, Key, ObjectMeta, controller_for
from konverge.client import WriteEvent
from konverge.k8s.core.v1 import ConfigMap
from konverge.reconcile import ActiveReconcile, EnqueueEvent, Observers, Outcome, ReconcileEnd, ReconcileObserver
from konverge.reconcile.observers import new_reconcile_id
from konverge.testing import settle
from konverge.triggers.reasons import EnqueueReason

LAMP = Key("default", "lamp")


class Log(ReconcileObserver):
    """Records every call."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.ends: list[ReconcileEnd] = []

    def enqueue(self, event: EnqueueEvent) -> None:
        self.lines.append(f"enqueued {event.controller} {event.key} {event.reason.what}")

    def begin(self, reconcile: ActiveReconcile) -> None:
        assert reconcile.obj is None
        self.lines.append(f"begin {reconcile.attempt}")

    def read(self, reconcile: ActiveReconcile, kind: str, key: Key, found: str) -> None:
        assert reconcile.obj is not None
        self.lines.append(f"read {kind} {key}")

    def write(self, reconcile: ActiveReconcile, write: WriteEvent) -> None:
        assert write.uid
        self.lines.append(f"write {write.verb} {write.kind.kind} {write.key}")

    def end(self, reconcile: ActiveReconcile, end: ReconcileEnd) -> None:
        self.ends.append(end)
        self.lines.append(f"end {end.outcome}")

    def forget(self, key: Key) -> None:
        self.lines.append(f"forget {key}")


class Broken(ReconcileObserver):
    """Fails at every call."""

    def begin(self, *_: object) -> None:
        raise RuntimeError("a mistake")

    write = end = read = begin  # type: ignore[assignment]


async def fill(obj: Gadget, ctx: Context) -> None:
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name="box"), data={"text": obj.spec.text}))


async def test_an_observer_of_the_manager_sees_a_reconcile_from_its_reason_to_its_end() -> None:
    world, log = await world_with_gadgets(), Log()
    async with operating(world, controller_for(Gadget).owns(ConfigMap).build(fill), observers=(log,)):
        await world.client.create(gadget("lamp"))
        await settle()
        await world.client.delete(Gadget, "lamp")
        await settle()
    assert log.lines[:5] == [
        "enqueued gadget default/lamp added",
        "begin 1",
        "read Gadget default/lamp",
        "write apply ConfigMap default/box",
        "end success",
    ]
    assert f"forget {LAMP}" in log.lines
    assert (log.ends[0].result, log.ends[0].error) == ("done", "")


async def test_the_end_of_a_failed_reconcile_names_its_error() -> None:
    world, log = await world_with_gadgets(), Log()

    async def fail(obj: Gadget, ctx: Context) -> None:
        raise ValueError("no such size")

    async with operating(world, controller_for(Gadget).build(fail), observers=(log,)):
        await world.client.create(gadget("lamp"))
        await settle()
    assert (log.ends[0].outcome, log.ends[0].error) == (Outcome.ERROR, "ValueError: no such size")


async def test_observers_that_fail_are_logged_and_disturb_nothing(caplog: pytest.LogCaptureFixture) -> None:
    world, log = await world_with_gadgets(), Log()
    controller = controller_for(Gadget).owns(ConfigMap).build(fill)
    async with operating(world, controller, observers=(Broken(), log)) as manager:
        await world.client.create(gadget("lamp"))
        await settle()
        (run,) = manager.why("gadget", LAMP)
    assert run["result"] == "done"
    assert log.lines[-1] == "end success"
    failures = [record for record in caplog.records if record.message == "observer failed"]
    assert len(failures) == 4
    assert vars(failures[0])["observer"] == "Broken.begin"


def test_anything_but_an_observer_is_rejected() -> None:
    with pytest.raises(
        TypeError,
        match=r"^an observer is an instance of a subclass of ReconcileObserver, got <built-in function print>$",
    ):
        Observers(print)  # type: ignore[arg-type]


def test_an_id_of_a_reconcile_is_new_and_short() -> None:
    one, other = new_reconcile_id(), new_reconcile_id()
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{6}", one)
    assert (one != other, one[:8]) == (True, other[:8])


def test_an_observer_gets_the_calls_that_it_overrides_and_no_others() -> None:
    log = Log()
    observers = Observers(ReconcileObserver(), log)
    observers.forget(LAMP)
    observers.enqueue(EnqueueEvent("gadget", LAMP, EnqueueReason("t", "", LAMP, "", "channel"), 0.0))
    assert log.lines == ["forget default/lamp", "enqueued gadget default/lamp channel"]
