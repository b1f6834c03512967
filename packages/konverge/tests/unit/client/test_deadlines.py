from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.client.connection.deadlines import DeadlineReached, Deadlines
from konverge.testing.virtual_time import run_in_virtual_time


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_what_ends_in_time_is_returned() -> None:
    assert await Deadlines().within(5, asyncio.sleep(4, "done")) == "done"
    assert now() == 4


async def test_what_does_not_end_in_time_is_cancelled() -> None:
    with pytest.raises(DeadlineReached) as caught:
        await Deadlines().within(5, asyncio.sleep(60))
    assert now() == 5
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]


async def test_a_deadline_in_the_past_is_reached_at_once() -> None:
    with pytest.raises(DeadlineReached):
        await Deadlines().within(-1, asyncio.sleep(60))
    assert now() == 0


async def test_errors_come_through() -> None:
    async def fail() -> None:
        raise ValueError("as it is")

    with pytest.raises(ValueError, match="as it is"):
        await Deadlines().within(5, fail())


async def test_a_cancellation_from_elsewhere_stays_one() -> None:
    task = asyncio.create_task(Deadlines().within(5, asyncio.sleep(60)))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_a_cancellation_at_the_very_deadline_stays_one() -> None:
    task = asyncio.create_task(Deadlines().within(5, asyncio.sleep(60)))
    asyncio.get_running_loop().call_at(5, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert now() == 5


async def test_the_result_of_work_that_ignores_its_cancellation_is_returned() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "still done"
        return "done"

    assert await Deadlines().within(5, stubborn()) == "still done"
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]
    await asyncio.sleep(1)


async def test_an_outer_timeout_is_distinguished_from_the_deadline() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3):
            await Deadlines().within(5, asyncio.sleep(60))
    assert now() == 3


async def test_deadlines_may_be_nested() -> None:
    deadlines = Deadlines()
    with pytest.raises(DeadlineReached):
        await deadlines.within(5, deadlines.within(10, asyncio.sleep(60)))
    assert now() == 5


async def test_no_deadline_expires_after_close() -> None:
    deadlines = Deadlines()
    task = asyncio.create_task(deadlines.within(5, asyncio.sleep(60, "done")))
    await asyncio.sleep(1)
    deadlines.close()
    assert await task == "done"


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20), st.integers(0, 20)), min_size=1, max_size=12))
def test_each_of_many_is_cancelled_at_its_own_deadline(plans: list[tuple[int, int, int]]) -> None:
    """Each plan is a start, a duration and a limit."""

    async def run(deadlines: Deadlines, start: int, duration: float, limit: float) -> tuple[bool, float]:
        await asyncio.sleep(start)
        try:
            # A quarter more, so that no work ends exactly at its deadline.
            await deadlines.within(now() + limit, asyncio.sleep(duration + 0.25))
        except DeadlineReached:
            return False, now()
        return True, now()

    async def run_all() -> list[tuple[bool, float]]:
        deadlines = Deadlines()
        return await asyncio.gather(*(run(deadlines, *plan) for plan in plans))

    assert run_in_virtual_time(run_all()) == [
        (duration < limit, start + min(duration + 0.25, limit)) for start, duration, limit in plans
    ]
