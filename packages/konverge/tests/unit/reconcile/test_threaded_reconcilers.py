"""Reconcilers whose methods are not async: they run in threads, and their keys wait for them."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from typing import Any

import pytest

from gadgets import Gadget, gadget, operating, world_with_gadgets
from konverge import Context, Key, Reconciler, Result, controller_for
from konverge.errors import WriteRefused
from konverge.k8s.core.v1 import ConfigMap
from konverge.reconcile import BlockingContext
from konverge.reconcile.reconciler import reconciler_of
from konverge.reconcile.threads import start_in_thread


class InThreads(Reconciler[Gadget]):
    """Records its calls, each with whether it was on the event loop's thread."""

    finalizer = "test.konverge.dev/threads"
    reconcile_terminating = True

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, bool]] = []
        self.removed: list[Key] = []

    def _record(self, what: str, obj: Gadget, ctx: BlockingContext) -> None:
        assert isinstance(ctx, BlockingContext)
        self.calls.append((what, obj.name, threading.current_thread() is threading.main_thread()))

    def reconcile(self, obj: Gadget, ctx: BlockingContext) -> Result:  # type: ignore[override]
        self._record("reconcile", obj, ctx)
        return Result.requeue(after=3600, reason="from a thread")

    def finalize(self, obj: Gadget, ctx: BlockingContext) -> None:  # type: ignore[override]
        self._record("finalize", obj, ctx)

    def gone(self, key: Key) -> None:
        self.removed.append(key)


async def test_the_methods_of_a_class_run_in_threads_from_the_finalizer_to_the_end() -> None:
    world, reconciler = await world_with_gadgets(), InThreads()
    await world.client.create(gadget("lamp"))
    async with operating(world, controller_for(Gadget).build(reconciler)) as manager:
        await asyncio.sleep(1)
        assert (await world.client.get(Gadget, "lamp")).metadata.finalizers == [InThreads.finalizer]
        assert manager.why("gadget", Key("default", "lamp"))[0]["result"] == "requeue after 3600 s (from a thread)"
        await world.client.delete(Gadget, "lamp")
        await asyncio.sleep(1)
    assert reconciler.calls == [("reconcile", "lamp", False), ("finalize", "lamp", False)]
    assert reconciler.removed == [Key("default", "lamp")]


async def test_a_class_may_mix_both_and_keeps_its_settings() -> None:
    finalized: list[bool] = []

    class Mixed(InThreads):
        async def finalize(self, obj: Gadget, ctx: Context) -> None:  # type: ignore[override]
            finalized.append(isinstance(ctx, Context) and threading.current_thread() is threading.main_thread())

    assert (reconciler_of(Mixed()).finalizer, reconciler_of(Mixed()).reconcile_terminating) == (Mixed.finalizer, True)
    world = await world_with_gadgets()
    await world.client.create(gadget("lamp"))
    async with operating(world, controller_for(Gadget).build(Mixed())):
        await asyncio.sleep(1)
        await world.client.delete(Gadget, "lamp")
        await asyncio.sleep(1)
    assert finalized == [True]


class Warned(logging.Handler):
    """Knows when a warning of a reconcile was logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.record: logging.LogRecord | None = None
        self.warned = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.record = self.record or record
        self.warned.set()


@pytest.mark.real_time(limit=60)
async def test_a_thread_that_outlives_its_deadline_blocks_its_key_and_may_call_nothing() -> None:
    world, log, changed = await world_with_gadgets(), Warned(), asyncio.Event()
    runs: list[Any] = []
    free, again = threading.Event(), threading.Event()

    def reconcile(obj: Gadget, ctx: BlockingContext) -> None:
        runs.append(obj.spec.size)
        if len(runs) > 1:
            again.set()
            return
        free.wait(60)
        try:
            ctx.get(ConfigMap, "none")
        except WriteRefused as error:
            runs.append(str(error))

    async def see(obj: Gadget, ctx: Context) -> None:
        if obj.spec.size == 7:
            changed.set()

    await world.client.create(gadget("lamp"))
    builder = controller_for(Gadget).watches(ConfigMap, lambda _: ()).timeout(0.05)
    seeing = controller_for(Gadget).named("seeing").build(see)
    logging.getLogger("konverge.reconcile").addHandler(log)
    try:
        async with operating(world, builder.build(reconcile), seeing):
            await asyncio.wait_for(log.warned.wait(), 30)
            await world.client.patch(Gadget, "lamp", {"spec": {"size": 7}})
            await asyncio.wait_for(changed.wait(), 30)
            assert runs == [1]
            free.set()
            assert await asyncio.to_thread(again.wait, 30)
    finally:
        logging.getLogger("konverge.reconcile").removeHandler(log)
    assert log.record is not None
    assert log.record.getMessage() == "reconcile timed out in its thread, key blocked until the thread ends"
    refused = "this reconcile has passed its deadline, or the process stops: the call was not made"
    assert runs[:3] == [1, refused, 7]


# Threads


async def test_the_outcome_of_a_function_is_a_value() -> None:
    assert await start_in_thread(lambda a, b: a + b, 1, 2) == (None, 3)
    mistake = KeyError("a")

    def fail() -> None:
        raise mistake

    assert await start_in_thread(fail) == (mistake, None)
    error, result = await start_in_thread(next, iter(()))
    assert (type(error), str(error), result) == (RuntimeError, "the function raised StopIteration", None)


async def test_a_function_has_its_own_daemon_thread_and_the_variables_of_its_caller() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("of the caller")

    def facts() -> tuple[str, bool, str]:
        thread = threading.current_thread()
        return thread.name, thread.daemon, variable.get()

    assert await start_in_thread(facts) == (None, ("konverge-function", True, "of the caller"))
