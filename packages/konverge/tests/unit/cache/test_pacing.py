"""When a reflector may ask again, and how many of them keep apart."""

from __future__ import annotations

import asyncio
import itertools
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.cache.backoff import Pace, Patience, Spacing
from konverge.testing import VirtualTimeLoop


def pace(seed: int = 1) -> Pace:
    return Pace(Patience(), Random(seed))


def test_in_order_nothing_is_held_back() -> None:
    steady = pace()
    steady.asked(5.0)

    assert steady.wait(5.0) == 0


def test_waits_double_and_are_a_little_longer_by_chance() -> None:
    failing = pace()
    now, waits = 0.0, []
    for _ in range(6):
        failing.failed(now)
        waits.append(failing.wait(now))
        now += 0.001

    for wait, step in zip(waits, [1, 2, 4, 8, 8, 8], strict=True):
        assert step <= wait <= step * 1.25
    assert len({wait % 1 for wait in waits}) == 6


def test_what_the_server_asks_for_is_a_lower_bound() -> None:
    busy = pace()

    busy.failed(10.0, wish=17.0)

    assert busy.wait(10.0) == 17.0


def test_a_wish_that_makes_no_sense_does_not_stop_us_for_ever() -> None:
    busy = pace()

    busy.failed(10.0, wish=1e9)

    assert busy.wait(10.0) == 600.0


def test_after_a_minute_of_trouble_waits_are_long_but_bounded() -> None:
    failing = pace()
    failing.failed(0.0)
    failing.failed(60.0)

    assert 24 <= failing.wait(60.0) <= 30


def test_trouble_ends_when_it_is_settled() -> None:
    failing = pace()
    for now in range(100):
        failing.failed(float(now))
    failing.settled()

    assert failing.wait(100.0) == 0
    failing.failed(100.0)
    assert failing.wait(100.0) < 1.3


@given(st.lists(st.sampled_from(["fail", "work"]), max_size=200), st.integers(0, 1000))
@settings(max_examples=100, deadline=None)
def test_in_trouble_requests_keep_a_second_apart_and_four_after_a_minute(outcomes: list[str], seed: int) -> None:
    failing = pace(seed)
    now, asked = 0.0, []
    for outcome in ["fail", *outcomes]:
        now += failing.wait(now)
        failing.asked(now)
        asked.append(now)
        if outcome == "fail":
            failing.failed(now)

    for one, other in itertools.pairwise(asked):
        assert other - one >= (1 if one < 60 else 4) - 1e-9


@pytest.mark.parametrize("options", [{"silence": 0}, {"first_wait": -1.0}, {"shortest_watch": 700.0}])
def test_times_that_make_no_sense_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        Patience(**options)


async def test_a_turn_is_at_once_when_nobody_had_one_lately() -> None:
    await Spacing().turn()

    assert asyncio.get_running_loop().time() == 0


async def test_twenty_that_ask_together_come_one_after_the_other() -> None:
    assert await turns(20) == pytest.approx([number * 0.25 for number in range(20)])


async def test_hundreds_that_ask_together_come_within_ten_seconds() -> None:
    assert max(await turns(300)) < 10


async def test_turns_that_came_due_while_the_loop_stood_still_are_not_taken_at_once() -> None:
    spacing = Spacing()
    taken: list[float] = []

    async def one() -> None:
        await spacing.turn()
        taken.append(asyncio.get_running_loop().time())

    def stand_still() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop._jumping.now += 2

    asyncio.get_running_loop().call_later(0.6, stand_still)
    await asyncio.gather(*(one() for _ in range(8)))

    assert taken[:3] == [0, 0.25, 0.5]
    assert all(later - earlier >= 0.25 for earlier, later in itertools.pairwise(taken)), taken


async def test_who_gives_up_while_waiting_keeps_nobody_else_waiting() -> None:
    spacing = Spacing()
    waiting = [asyncio.create_task(spacing.turn()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    await asyncio.wait(waiting)

    assert asyncio.get_running_loop().time() == 0.25


async def turns(count: int) -> list[float]:
    spacing = Spacing()

    async def one() -> float:
        spacing.join()
        await asyncio.sleep(0)  # all of them have joined when the first asks
        await spacing.turn()
        return asyncio.get_running_loop().time()

    return sorted(await asyncio.gather(*(one() for _ in range(count))))
