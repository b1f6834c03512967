from __future__ import annotations

import asyncio
import gc
import weakref
from itertools import pairwise
from random import Random

import pytest

from konverge.errors import QueueClosed
from konverge.queue import Backoff, Priority, RateLimit, WorkQueue

STEADY = Backoff(jitter=0.0)


def time() -> float:
    return asyncio.get_running_loop().time()


async def take(queue: WorkQueue[str], limit: float = 3600.0) -> tuple[float, str]:
    """Get the next key; return the time and the key."""
    async with asyncio.timeout(limit):
        key = await queue.get()
    return time(), key


async def fail(queue: WorkQueue[str]) -> float:
    """Get the next key and let its run fail; return the time."""
    at, key = await take(queue)
    queue.retry(key)
    queue.done(key)
    return at


async def assert_nothing_comes(queue: WorkQueue[str], seconds: float) -> None:
    with pytest.raises(TimeoutError):
        await take(queue, seconds)


async def test_a_key_added_twice_is_returned_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("a")

    assert await queue.get() == "a"
    queue.done("a")
    await assert_nothing_comes(queue, 3600)


async def test_a_key_is_never_in_flight_twice_at_the_same_time() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a", reset_backoff=True, priority=Priority.HIGH)

    await assert_nothing_comes(queue, 3600)
    assert queue.is_in_flight("a")


async def test_a_key_added_while_in_flight_runs_once_more() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("a")
    queue.forget("a")
    queue.done("a")

    assert await queue.get() == "a"
    queue.done("a")
    await assert_nothing_comes(queue, 3600)


async def test_the_earlier_of_two_delays_wins() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", after=3600)
    queue.add("a", after=60)
    queue.add("a", after=1800)

    assert await take(queue) == (60, "a")
    queue.done("a")
    await assert_nothing_comes(queue, 7200)


async def test_a_delay_requested_while_in_flight_counts_from_then() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    await asyncio.sleep(5)
    queue.add("a", after=30)
    await asyncio.sleep(10)
    queue.done("a")

    assert await take(queue) == (35, "a")


async def test_a_delay_that_passed_while_in_flight_is_ready_at_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a", after=5)
    await asyncio.sleep(10)
    queue.done("a")

    assert await take(queue) == (10, "a")


async def test_a_get_that_waits_for_a_delayed_key_returns_an_earlier_one() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("late", after=100)
    getter = asyncio.create_task(take(queue))
    await asyncio.sleep(10)
    queue.add("early", after=20)

    assert await getter == (30, "early")
    assert await take(queue) == (100, "late")


async def test_each_failure_in_a_row_has_a_longer_delay() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=Backoff(base_delay=1, factor=2, max_delay=10, jitter=0))
    queue.add("a")

    starts = [await fail(queue) for _ in range(7)]

    waits = [after - before for before, after in pairwise(starts)]
    assert waits == [1, 2, 4, 8, 10, 10]
    assert queue.failures("a") == 7


async def test_success_resets_the_backoff() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=STEADY)
    queue.add("a")
    for _ in range(5):
        await fail(queue)
    _, key = await take(queue)
    queue.forget(key)
    queue.add(key)
    queue.done(key)

    assert queue.failures("a") == 0
    start = await fail(queue)
    assert (await take(queue))[0] - start == 1


async def test_retry_returns_the_delay() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=STEADY)
    queue.add("a")
    await queue.get()
    assert queue.retry("a") == 1
    assert queue.retry("a") == 1  # one run fails once
    queue.done("a")
    await queue.get()
    assert queue.retry("a") == 2


async def test_adds_cause_one_early_run_and_the_window_stays_the_same() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=Backoff(base_delay=100, jitter=0))
    queue.add("a")
    await fail(queue)
    starts = []
    for _ in range(9):
        await asyncio.sleep(10)
        queue.add("a")
        if queue.stats().ready:
            starts.append(await fail(queue))
            assert queue.failures("a") == 1

    assert starts == [10]
    assert await fail(queue) == 100
    assert queue.failures("a") == 2
    assert (await take(queue))[0] == 300


async def test_a_key_added_while_it_fails_runs_early_once() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=Backoff(base_delay=100, jitter=0))
    queue.add("a")
    for _ in range(2):
        await queue.get()
        queue.add("a")
        await asyncio.sleep(1)
        queue.retry("a")
        queue.done("a")

    assert queue.failures("a") == 1
    assert await take(queue) == (101, "a")


async def test_an_early_run_that_outlasts_the_window_is_followed_by_the_retry() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=STEADY)
    queue.add("a")
    await fail(queue)
    queue.add("a")
    await queue.get()
    await asyncio.sleep(10)
    assert queue.retry("a") == 0
    assert queue.failures("a") == 1
    queue.done("a")

    assert await fail(queue) == 10
    assert queue.failures("a") == 2


async def test_a_key_added_during_an_early_run_that_succeeds_runs_at_once() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=STEADY)
    queue.add("a")
    await fail(queue)
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.forget("a")
    queue.done("a")

    assert await take(queue) == (0, "a")


async def test_an_early_run_without_a_result_leaves_the_retry() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=STEADY)
    queue.add("a")
    await fail(queue)
    queue.add("a")
    await queue.get()
    queue.done("a")

    assert await take(queue) == (1, "a")


async def test_new_input_runs_at_once_and_clears_the_failures() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=STEADY)
    queue.add("a")
    for _ in range(8):
        await fail(queue)
    failed = time()
    queue.add("a")
    await fail(queue)
    queue.add("a", reset_backoff=True)

    assert queue.failures("a") == 0
    assert await fail(queue) == failed
    assert (await take(queue))[0] == failed + 1


async def test_a_failure_on_old_input_does_not_count_when_there_is_new_input() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=STEADY)
    queue.add("a")
    await queue.get()
    queue.add("a", reset_backoff=True)
    assert queue.retry("a") == 0
    queue.done("a")

    assert queue.failures("a") == 0
    assert await take(queue) == (0, "a")
    queue.retry("a")
    assert queue.failures("a") == 1


async def test_one_failing_key_does_not_delay_others() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=Backoff(base_delay=100, jitter=0))
    queue.add("poison")
    await fail(queue)
    for number in range(100):
        queue.add(f"good-{number}")

    assert [await take(queue) for _ in range(100)] == [(0, f"good-{number}") for number in range(100)]


async def test_the_higher_priority_goes_first_then_the_older() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("listed", priority=Priority.LOW)
    queue.add("live")
    queue.add("live-too")
    queue.add("urgent", priority=Priority.HIGH)

    assert [await queue.get() for _ in range(4)] == ["urgent", "live", "live-too", "listed"]


async def test_a_ready_key_is_raised_to_the_higher_priority_and_keeps_its_age() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", priority=Priority.LOW)
    await asyncio.sleep(1)
    queue.add("b")
    queue.add("a")
    queue.add("a", priority=Priority.LOW)

    assert [await queue.get() for _ in range(2)] == ["a", "b"]
    queue.done("a")
    await assert_nothing_comes(queue, 3600)


async def test_low_priority_rises_with_time_and_does_not_starve() -> None:
    queue: WorkQueue[str] = WorkQueue(raise_priority_after=30)
    queue.add("listed", priority=Priority.LOW)
    taken = []
    for second in range(100):  # live changes arrive faster than they are processed
        queue.add(f"live-{second}")
        queue.add(f"more-{second}")
        taken.append(await queue.get())
        await asyncio.sleep(1)

    assert "listed" not in taken[:30]
    assert taken[30] == "listed"


async def test_a_retry_keeps_the_priority_of_the_run_that_failed() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=STEADY)
    queue.add("listed", priority=Priority.LOW)
    await fail(queue)
    await asyncio.sleep(1)
    queue.add("live")

    assert [await queue.get() for _ in range(2)] == ["live", "listed"]


async def test_the_rate_limit_allows_a_burst_and_then_a_steady_rate() -> None:
    queue: WorkQueue[str] = WorkQueue(rate=RateLimit(per_second=2, burst=3))
    for number in range(7):
        queue.add(str(number))

    assert [(await take(queue))[0] for _ in range(7)] == [0, 0, 0, 0.5, 1, 1.5, 2]


async def test_a_burst_refills_while_no_key_is_returned() -> None:
    queue: WorkQueue[str] = WorkQueue(rate=RateLimit(per_second=1, burst=2))
    for number in range(4):
        queue.add(str(number))
    await queue.get()
    await queue.get()
    await asyncio.sleep(100)

    assert [(await take(queue))[0] for _ in range(2)] == [100, 100]


async def test_the_next_by_priority_is_decided_when_the_rate_allows_it() -> None:
    queue: WorkQueue[str] = WorkQueue(rate=RateLimit(per_second=1))
    queue.add("first")
    await queue.get()
    queue.add("second")
    getter = asyncio.create_task(take(queue))
    await asyncio.sleep(0.5)
    queue.add("urgent", priority=Priority.HIGH)

    assert await getter == (1, "urgent")
    assert await take(queue) == (2, "second")


async def test_a_cancelled_get_removes_no_key() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")  # the first getter is notified of it
    first.cancel()

    assert await second == "a"
    assert first.cancelled() or first.exception() is None


async def test_a_get_that_times_out_when_a_key_becomes_ready_loses_nothing() -> None:
    queue: WorkQueue[str] = WorkQueue()
    taken = []
    for number in range(20):
        queue.add(str(number), after=1)
        try:
            taken.append((await take(queue, 1))[1])
        except TimeoutError:
            taken.append((await take(queue, 0.001))[1])

    assert taken == [str(number) for number in range(20)]


async def test_many_workers_share_the_keys() -> None:
    queue: WorkQueue[str] = WorkQueue()
    getters = [asyncio.create_task(queue.get()) for _ in range(5)]
    await asyncio.sleep(0)
    for number in range(5):
        queue.add(str(number), after=number % 2)

    assert sorted(await asyncio.gather(*getters)) == ["0", "1", "2", "3", "4"]


async def test_closing_the_queue_ends_waiting_gets_and_ignores_adds() -> None:
    queue: WorkQueue[str] = WorkQueue("webapp")
    getters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.add("late", after=10)
    queue.close()
    queue.add("a")

    for getter in getters:
        with pytest.raises(QueueClosed, match="webapp"):
            await getter
    with pytest.raises(QueueClosed):
        await queue.get()
    stats = queue.stats()
    assert (stats.ready, stats.delayed) == (0, 0)


async def test_wait_until_idle_waits_for_keys_in_flight() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("b")
    await queue.get()
    await queue.get()
    queue.close()
    drained = asyncio.create_task(queue.wait_until_idle())
    queue.done("a")
    await asyncio.sleep(1)
    assert not drained.done()
    queue.retry("b")
    queue.done("b")

    await drained
    await queue.wait_until_idle()


async def test_stats_report_keys_counters_and_times() -> None:
    queue: WorkQueue[str] = WorkQueue("webapp", backoff=STEADY)
    queue.add("a")
    queue.add("a")
    queue.add("b", after=2)
    queue.add("c", after=100)
    await asyncio.sleep(5)
    stats = queue.stats()
    assert (stats.name, stats.ready, stats.delayed, stats.in_flight) == ("webapp", 2, 1, 0)
    assert (stats.adds, stats.gets, stats.retries) == (3, 0, 0)
    assert (stats.oldest_wait, stats.longest_running) == (5, 0)

    assert queue.wait_time(await queue.get()) == 5
    assert queue.wait_time(await queue.get()) == 3
    queue.retry("b")
    queue.done("b")
    await asyncio.sleep(0.5)
    stats = queue.stats()
    assert (stats.ready, stats.delayed, stats.in_flight) == (0, 2, 1)
    assert (stats.gets, stats.retries, stats.longest_running, stats.oldest_wait) == (2, 1, 0.5, 0)
    with pytest.raises(ValueError, match="not in flight"):
        queue.wait_time("b")


class Token:
    """A key whose deletion can be observed."""


async def test_nothing_is_stored_for_a_forgotten_key() -> None:
    queue: WorkQueue[Token] = WorkQueue()
    gone = []
    for number in range(100):
        token = Token()
        gone.append(weakref.ref(token))
        queue.add(token, after=3600)
        queue.add(token, after=number % 3)
        queue.add(token, priority=Priority.HIGH)
        await queue.get()
        queue.retry(token)
        queue.forget(token)
        queue.done(token)
        del token
    gc.collect()

    assert sum(ref() is not None for ref in gone) < 70  # a few stale heap entries may remain


async def test_stale_delays_do_not_accumulate() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(5000):
        queue.add("a", after=3600)
        queue.add("a")
        queue.done(await queue.get())

    assert len(queue._delayed._heap) < 200


async def test_thousands_of_keys_are_each_returned_once() -> None:
    queue: WorkQueue[int] = WorkQueue()
    for number in range(6_000):
        queue.add(number, after=number % 7, priority=Priority(number % 3))
    await asyncio.sleep(7)
    taken = [await queue.get() for _ in range(6_000)]

    assert sorted(taken) == list(range(6_000))
    assert all(number % 3 == 2 for number in taken[:2000])


@pytest.mark.parametrize("use", ["done", "retry"])
async def test_done_for_a_key_that_is_not_in_flight_raises(use: str) -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")

    with pytest.raises(ValueError, match="not in flight"):
        getattr(queue, use)("a")


@pytest.mark.parametrize("after", [-1.0, float("nan")])
async def test_a_delay_is_a_number_of_seconds(after: float) -> None:
    queue: WorkQueue[str] = WorkQueue()
    with pytest.raises(ValueError, match="after="):
        queue.add("a", after=after)


def test_construction_needs_no_event_loop() -> None:
    with pytest.raises(ValueError, match="raise_priority_after"):
        WorkQueue[str](raise_priority_after=0)
    assert WorkQueue[str]("x", random=Random(1)).name == "x"


@pytest.mark.real_time(limit=60)
async def test_the_queue_works_in_real_time() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=Backoff(base_delay=0.01), rate=RateLimit(1000))
    queue.add("a", after=0.02)
    await fail(queue)
    await fail(queue)

    assert (await take(queue))[1] == "a"


async def test_a_requested_delay_is_always_waited_for() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=Backoff(jitter=0))
    loop = asyncio.get_running_loop()
    queue.add("web")
    key = await queue.get()
    assert queue.retry(key, min_delay=5) == 5
    queue.done(key)

    queue.add("web")
    queue.add("web", reset_backoff=True)
    await queue.get()

    assert loop.time() == 5


async def test_a_requested_delay_of_less_than_a_second_is_waited_for() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=Backoff(base_delay=0.1, jitter=0))
    queue.add("web")
    key = await queue.get()

    assert queue.retry(key, min_delay=0.5) == 0.5


async def test_new_input_within_a_requested_delay_clears_the_failures() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=STEADY)
    queue.add("web")
    for delay in (0.0, 0.0, 5.0):
        key = await queue.get()
        queue.retry(key, min_delay=delay)
        queue.done(key)

    queue.add("web", reset_backoff=True)

    assert queue.failures("web") == 0
    queue.retry(await queue.get())
    assert queue.failures("web") == 1


async def test_an_add_of_a_running_key_counts_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in ("a", "b"):
        queue.add(key)
        await queue.get()
    for _ in range(2):
        queue.add("a")
        queue.add("b")

    assert queue.stats().adds == 4


async def test_a_given_delay_replaces_the_backoff() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=Backoff(jitter=0))
    loop = asyncio.get_running_loop()
    queue.add("web")
    for _ in range(3):
        key = await queue.get()
        assert queue.retry(key, delay=20) == 20
        queue.done(key)

    await queue.get()

    assert loop.time() == 60
    assert queue.failures("web") == 3
    assert queue.retry("web") == 8  # the backoff counts the failures with a given delay too


async def test_a_failure_of_an_early_run_with_a_given_delay_waits_for_the_whole_delay() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=Backoff(jitter=0))
    loop = asyncio.get_running_loop()
    queue.add("web")
    for start in (0, 15, 35):
        key = await queue.get()
        assert loop.time() == start
        queue.retry(key, delay=20)
        queue.done(key)
        queue.add(key, after=15)


async def test_a_given_delay_does_not_shorten_a_requested_one() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=Backoff(jitter=0))
    queue.add("web")
    key = await queue.get()
    queue.retry(key, min_delay=30)

    assert queue.retry(key, delay=5) == 30
