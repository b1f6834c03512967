"""When a reflector may ask again, and how many of them keep apart."""

from __future__ import annotations

import asyncio
import itertools
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.cache.pacing import Pace, Patience, Spacing


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


async def test_who_gives_up_while_waiting_keeps_nobody_else_waiting_for_long() -> None:
    spacing = Spacing()
    waiting = [asyncio.create_task(spacing.turn()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    await asyncio.wait(waiting)

    assert asyncio.get_running_loop().time() == 0.5


async def turns(count: int) -> list[float]:
    spacing = Spacing()

    async def one() -> float:
        spacing.join()
        await asyncio.sleep(0)  # all of them have joined when the first asks
        await spacing.turn()
        return asyncio.get_running_loop().time()

    return sorted(await asyncio.gather(*(one() for _ in range(count))))
