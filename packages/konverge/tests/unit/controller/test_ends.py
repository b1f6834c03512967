"""How a reconcile ends, as observers and the stats of a controller report it."""

from __future__ import annotations

import asyncio

import pytest

from gadgets import Gadget, gadget, operating, world_with_gadgets
from konverge import Context, TerminalError, controller_for
from konverge.cache import Event, EventType
from konverge.reconcile import ActiveReconcile, ReconcileEnd, ReconcileObserver
from konverge.testing import settle
from konverge.triggers import Predicate


class Ends(ReconcileObserver):
    """Records how each reconcile ended."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str, float]] = []

    def end(self, reconcile: ActiveReconcile, end: ReconcileEnd) -> None:
        self.found.append((end.outcome, end.error, round(end.seconds, 3)))


async def test_an_error_at_the_deadline_is_named_as_what_it_is() -> None:
    """A reconciler may have its own timeouts, and fail while it is cancelled."""
    world, ends = await world_with_gadgets(), Ends()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        if obj.name == "own-timeout":
            raise TimeoutError("the bank does not answer")
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            if obj.name == "cleanup":
                raise ValueError("cleanup failed") from None
            raise

    for name in ("own-timeout", "cleanup", "hangs"):
        await world.client.create(gadget(name))
        async with operating(world, controller_for(Gadget).timeout(5).build(reconcile), observers=(ends,)):
            await asyncio.sleep(5.5)
        await world.client.delete(Gadget, name)
    assert list(dict.fromkeys(ends.found)) == [
        ("error", "TimeoutError: the bank does not answer", 0),
        ("error", "ValueError: cleanup failed", 5),
        ("error", "KonvergeError: not done after 5 s, cancelled", 5),
    ]


async def test_a_reconcile_that_the_stop_cancels_is_no_failure() -> None:
    world, ends = await world_with_gadgets(), Ends()
    await world.client.create(gadget("a"))

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        await asyncio.sleep(1_000)

    async with operating(world, controller_for(Gadget).build(reconcile), observers=(ends,), grace=3):
        await asyncio.sleep(10)
    assert ends.found == [("refused", "cancelled: the process stops", 13)]


async def test_the_stats_of_a_controller_name_the_reconcile_that_runs_longest() -> None:
    world = await world_with_gadgets()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        await asyncio.sleep(30)

    controller = controller_for(Gadget).max_concurrent_reconciles(3).build(reconcile)
    async with operating(world, controller) as manager:
        await settle()
        (idle,) = manager.stats()
        assert (idle.active_workers, idle.longest_running, idle.unfinished, idle.longest_running_key) == (0, 0.0, 0, "")
        assert idle.not_ready_reason == ""
        for name in ("first", "second"):
            await world.client.create(gadget(name))
            await asyncio.sleep(5)
        (busy,) = manager.stats()
        assert (busy.name, busy.workers, busy.active_workers) == ("gadget", 3, 2)
        assert [busy.longest_running, busy.unfinished] == pytest.approx([10.0, 15.0])
        assert busy.longest_running_key == "default/first"
        assert busy.queue.in_flight == 2


async def test_nothing_of_a_deleted_object_is_left_for_the_next_of_its_name() -> None:
    """Also if its deletion enqueues nothing."""
    world, errors = await world_with_gadgets(), list[str]()

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        errors.append(ctx.last_error)
        raise TerminalError("bad")

    def not_deleted(event: Event) -> bool:
        return event.type is not EventType.DELETED

    controller = controller_for(Gadget).predicate(Predicate(not_deleted)).build(reconcile)
    async with operating(world, controller):
        for _ in range(2):
            made = await world.client.create(gadget("a"))
            await settle()
            await world.client.delete(made)
            await settle()
    assert errors == ["", ""]
