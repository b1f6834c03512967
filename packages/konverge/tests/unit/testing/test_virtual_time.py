from __future__ import annotations

import asyncio
import threading
import time

import pytest

from konverge.testing.virtual_time import run_in_virtual_time, settle


async def test_an_hour_passes_at_once_and_exactly() -> None:
    loop, begin = asyncio.get_running_loop(), time.perf_counter()
    start = loop.time()
    await asyncio.sleep(3600)
    assert loop.time() == start + 3600
    assert time.perf_counter() - begin < 5


async def test_timers_fire_after_years() -> None:
    loop = asyncio.get_running_loop()
    for _ in range(3):
        await asyncio.sleep(366 * 24 * 3600 + 0.1)  # a float has no nanoseconds any more
    assert loop.time() == pytest.approx(3 * (366 * 24 * 3600 + 0.1))


async def test_timers_fire_in_order() -> None:
    seen = []

    async def note(delay: float) -> None:
        await asyncio.sleep(delay)
        seen.append((delay, asyncio.get_running_loop().time()))

    await asyncio.gather(note(30), note(10), note(20))
    assert seen == [(10, 10.0), (20, 20.0), (30, 30.0)]


async def test_no_timer_fires_before_its_time() -> None:
    loop = asyncio.get_running_loop()
    fired: list[float] = []

    for due in (60 - 5e-7, 60.0):
        loop.call_at(due, lambda: fired.append(loop.time()))
    await asyncio.sleep(61)

    assert fired == [60 - 5e-7, 60.0]


async def test_tasks_that_wait_for_almost_the_same_time_do_not_stop_the_clock() -> None:
    loop = asyncio.get_running_loop()

    async def wait_until(time: float) -> int:
        passes = 0
        while loop.time() < time and passes < 10:
            passes += 1
            due = asyncio.Event()
            loop.call_at(time, due.set)
            await due.wait()
        return passes

    await asyncio.sleep(60 - 5e-7)
    first = asyncio.create_task(wait_until(60))
    await asyncio.sleep(0)
    # The second task runs in those passes of the loop in which the first one waits.
    second = asyncio.create_task(wait_until(60))
    assert [*await asyncio.gather(first, second)] == [1, 1]


async def test_a_timeout_is_exact() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(7):
            await asyncio.Event().wait()
    assert asyncio.get_running_loop().time() == 7


async def test_the_clock_stops_while_a_thread_runs() -> None:
    gate = threading.Event()
    threading.Timer(0.05, gate.set).start()
    async with asyncio.timeout(10):
        assert await asyncio.to_thread(gate.wait)
    assert asyncio.get_running_loop().time() == 0


def test_a_deadlock_is_an_error_and_no_hang() -> None:
    async def wait_for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="deadlock: every task waits"):
        run_in_virtual_time(wait_for_ever())


def test_a_coroutine_runs_to_its_end() -> None:
    async def main() -> float:
        await asyncio.sleep(86_400)
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(main()) == 86_400


def test_a_task_left_running_fails_its_test(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["konverge.testing.async_tests"]')
    pytester.makepyfile(
        """
        import asyncio

        async def test_leaves_a_task():
            global task
            task = asyncio.get_running_loop().create_task(asyncio.sleep(100))

        async def test_is_clean():
            await asyncio.sleep(100)
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*tasks left running*sleep*"])


async def test_settle_waits_for_everything_that_needs_no_time_and_for_nothing_else() -> None:
    seen: list[str] = []

    async def work() -> None:
        for step in range(5):
            await asyncio.sleep(0)
            seen.append(f"step {step}")
        await asyncio.to_thread(seen.append, "thread")
        await asyncio.sleep(1)
        seen.append("later")

    async with asyncio.TaskGroup() as group:
        group.create_task(work())
        await settle()
        assert seen[-1] == "thread"
        assert asyncio.get_running_loop().time() == 0


@pytest.mark.real_time
async def test_settle_is_rejected_on_an_ordinary_loop() -> None:
    with pytest.raises(TypeError, match="virtual time"):
        await settle()
