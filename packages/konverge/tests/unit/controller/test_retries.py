"""Keys that are reconciled again on request: `Retry`, series of errors, and `Result.requeue()`."""

from __future__ import annotations

import asyncio
import logging

import pytest

from gadgets import Gadget, gadget, operating, world_with_gadgets
from konverge import Context, Key, Reconciler, Result, Retry, controller_for
from konverge.controller import Controller
from konverge.errors import ServerError, TooManyRequests
from konverge.queue import Backoff
from konverge.testing import settle

STEADY = Backoff(jitter=0.0)


def now() -> float:
    return asyncio.get_running_loop().time()


def lines(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "konverge.controller"]


async def times_of(controller: Controller[Gadget], runs: list[float], *, seconds: float) -> list[float]:
    """Run a controller on one gadget for some time; return when it was reconciled, from the first time on."""
    world = await world_with_gadgets()
    await world.client.create(gadget("a"))
    async with operating(world, controller):
        await asyncio.sleep(seconds)
    return [round(at - runs[0], 3) for at in runs]


async def test_a_retry_waits_for_its_delay_and_logs_one_line(caplog: pytest.LogCaptureFixture) -> None:
    runs: list[float] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(now())
        assert ctx.attempt == len(runs)
        assert ctx.last_error == ("" if len(runs) == 1 else "the remote is down")
        try:
            raise OSError("refused")
        except OSError as error:
            raise Retry("the remote is down", after=20) from error

    controller = controller_for(Gadget).backoff(STEADY).build(reconcile)

    assert await times_of(controller, runs, seconds=70) == [0, 20, 40, 60]
    assert [record.getMessage() for record in lines(caplog)] == ["reconcile is retried: the remote is down"] * 4
    assert all(record.exc_info is None and record.levelname == "WARNING" for record in lines(caplog))
    assert {vars(record)["after"] for record in lines(caplog)} == {"20 s"}


async def test_a_retry_without_a_delay_backs_off_as_an_error_does(caplog: pytest.LogCaptureFixture) -> None:
    runs: list[float] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(now())
        raise Retry("not yet")

    controller = controller_for(Gadget).backoff(STEADY).build(reconcile)

    assert await times_of(controller, runs, seconds=20) == [0, 1, 3, 7, 15]
    assert not any(record.exc_info for record in lines(caplog))


async def test_a_change_ends_the_delay_of_a_retry_and_the_next_delay_is_a_full_one() -> None:
    world = await world_with_gadgets()
    runs: list[float] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(now())
        raise Retry("not yet", after=20)

    made = await world.client.create(gadget("a"))
    async with operating(world, controller_for(Gadget).build(reconcile)):
        await asyncio.sleep(5)
        made.spec.size = 2
        await world.client.update(made)
        await asyncio.sleep(25)

    assert [round(at - runs[0]) for at in runs] == [0, 5, 25]


async def test_a_label_within_the_delay_of_a_retry_causes_one_early_reconcile() -> None:
    world = await world_with_gadgets()
    runs: list[float] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(now())
        raise Retry("not yet", after=20)

    await world.client.create(gadget("a"))
    async with operating(world, controller_for(Gadget).build(reconcile)):
        for number in range(5):
            await asyncio.sleep(2)
            await world.client.patch(Gadget, "a", {"metadata": {"labels": {"number": str(number)}}})
        await asyncio.sleep(15)

    assert [round(at - runs[0]) for at in runs] == [0, 2, 22]


async def test_a_retry_of_finalize_keeps_the_finalizer() -> None:
    world = await world_with_gadgets()

    class Remote(Reconciler[Gadget]):
        finalizer = "test.konverge.dev/remote"
        calls = 0

        async def reconcile(self, obj: Gadget, ctx: Context) -> None: ...

        async def finalize(self, obj: Gadget, ctx: Context) -> None:
            self.calls += 1
            if self.calls < 3:
                raise Retry("the remote is down", after=10)

    remote = Remote()
    await world.client.create(gadget("a"))
    async with operating(world, controller_for(Gadget).build(remote)) as manager:
        await settle()
        await world.client.delete(Gadget, "a")
        await asyncio.sleep(15)
        kept = await world.client.list(Gadget, namespace="default")
        assert manager.why("gadget", Key("default", "a"))[0]["error"] == "Retry: the remote is down"
        await asyncio.sleep(10)

        assert [one.name for one in kept] == ["a"]
        assert await world.client.list(Gadget, namespace="default") == []
    assert remote.calls == 3


@pytest.mark.parametrize("after", [0, -1, float("inf"), float("nan"), "20"])
def test_a_retry_with_a_wrong_delay_is_rejected(after: float) -> None:
    with pytest.raises(ValueError, match="seconds above 0"):
        Retry("not yet", after=after)


async def test_only_the_first_of_a_series_of_the_same_error_has_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    runs: list[float] = []

    async def reconcile(obj: Gadget, ctx: Context) -> Result:
        runs.append(now())
        if len(runs) == 4:
            raise ValueError("another error")
        if len(runs) == 6:
            return Result.requeue(after=1)
        raise RuntimeError(f"failure {len(runs)}")

    await times_of(controller_for(Gadget).backoff(STEADY).build(reconcile), runs, seconds=100)

    assert [(record.getMessage(), record.exc_info is not None) for record in lines(caplog)][:7] == [
        ("reconcile failed: failure 1", True),
        ("reconcile failed: failure 2", False),
        ("reconcile failed: failure 3", False),
        ("reconcile failed: another error", True),
        ("reconcile failed: failure 5", True),
        ("reconcile failed: failure 7", True),  # after a success
        ("reconcile failed: failure 8", False),
    ]


async def test_an_error_of_the_same_type_from_another_line_has_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    runs: list[float] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(now())
        if len(runs) == 2:
            raise KeyError("name")
        raise KeyError("name")

    await times_of(controller_for(Gadget).backoff(STEADY).build(reconcile), runs, seconds=5)

    assert [record.exc_info is not None for record in lines(caplog)] == [True, True, True]


async def test_the_first_requeue_is_immediate_and_repeated_ones_back_off() -> None:
    runs: list[float] = []

    async def reconcile(obj: Gadget, ctx: Context) -> Result:
        runs.append(now())
        return Result.requeue() if len(runs) < 5 else Result.done()

    controller = controller_for(Gadget).backoff(STEADY).build(reconcile)

    assert await times_of(controller, runs, seconds=60) == [0, 0, 1, 3, 7]


async def test_a_requeue_after_an_error_or_another_result_is_immediate_again() -> None:
    runs: list[float] = []
    results = [Result.requeue(), None, Result.requeue(), Result.requeue(after=10), Result.requeue(), Result.done()]

    async def reconcile(obj: Gadget, ctx: Context) -> Result:
        runs.append(now())
        result = results[len(runs) - 1]
        if result is None:
            raise RuntimeError("bad")
        return result

    controller = controller_for(Gadget).backoff(STEADY).build(reconcile)

    assert await times_of(controller, runs, seconds=60) == [0, 0, 1, 1, 11, 11]


@pytest.mark.parametrize("type_", [TooManyRequests, ServerError])
async def test_a_failure_waits_for_the_retry_after_of_the_server(type_: type[TooManyRequests | ServerError]) -> None:
    runs: list[float] = []

    async def reconcile(obj: Gadget, ctx: Context) -> None:
        runs.append(now())
        error = type_("the server is busy", status=429)
        error.retry_after = 30.0
        raise error

    controller = controller_for(Gadget).backoff(STEADY).build(reconcile)

    assert await times_of(controller, runs, seconds=100) == [0, 30, 60, 90]
