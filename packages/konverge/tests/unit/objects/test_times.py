"""Time and MicroTime: two wire forms that the server does not accept for each other."""

from __future__ import annotations

import asyncio
import copy
import pickle
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.times import MicroTime, Time, now, wall_clock

moments = st.datetimes(timezones=st.just(UTC))
offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments_elsewhere = st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1), timezones=offsets)


class Record(msgspec.Struct):
    at: Time | None = None
    exactly: MicroTime | None = None


def read_value(type_: type[Any], wire: object) -> Any:
    return type_.from_wire(wire)


def write_value(value: Any) -> Any:
    return value.to_wire()


def read(text: bytes) -> Record:
    return msgspec.json.decode(text, type=Record, dec_hook=read_value)


def write(record: Record) -> bytes:
    return msgspec.json.encode(record, enc_hook=write_value)


@given(moments)
def test_a_time_of_the_server_goes_back_as_it_came(moment: datetime) -> None:
    text = moment.replace(microsecond=0).isoformat().replace("+00:00", "Z")
    wire = f'{{"at":"{text}","exactly":null}}'.encode()

    assert write(read(wire)) == wire


@given(moments)
def test_a_micro_time_of_the_server_goes_back_as_it_came(moment: datetime) -> None:
    text = moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
    wire = f'{{"at":null,"exactly":"{text}"}}'.encode()

    assert write(read(wire)) == wire


def test_a_micro_time_always_has_six_decimals() -> None:
    assert MicroTime(2026, 1, 1, tzinfo=UTC).to_wire() == "2026-01-01T00:00:00.000000Z"


@given(moments_elsewhere)
def test_a_micro_time_is_written_in_utc(moment: datetime) -> None:
    micro = MicroTime.of(moment)

    assert micro == moment
    assert MicroTime.from_wire(micro.to_wire()) == moment
    assert micro.to_wire() == MicroTime.from_wire(moment.isoformat()).to_wire()


def test_a_micro_time_made_in_another_timezone_is_written_in_utc() -> None:
    there = MicroTime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))

    assert there.to_wire() == "2026-01-01T00:00:00.000000Z"


def test_arithmetic_on_a_micro_time_gives_a_micro_time() -> None:
    later = MicroTime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=1500)

    assert isinstance(later, MicroTime)
    assert later.to_wire() == "2026-01-01T00:00:00.001500Z"


def test_a_micro_time_equals_and_hashes_like_the_datetime() -> None:
    plain = datetime(2026, 1, 1, tzinfo=UTC)

    assert MicroTime.of(plain) == plain
    assert hash(MicroTime.of(plain)) == hash(plain)


def test_a_micro_time_survives_copy_and_pickle() -> None:
    moment = MicroTime.now()

    for again in (copy.deepcopy(moment), pickle.loads(pickle.dumps(moment))):
        assert isinstance(again, MicroTime)
        assert again.to_wire() == moment.to_wire()


def test_a_datetime_without_timezone_is_refused() -> None:
    with pytest.raises(ValueError, match="tzinfo=UTC"):
        MicroTime.of(datetime(2026, 1, 1))
    with pytest.raises(ValueError, match="tzinfo=UTC"):
        MicroTime(2026, 1, 1).to_wire()
    with pytest.raises(msgspec.ValidationError, match=r"at `\$.at`"):
        read(b'{"at":"2026-01-01T00:00:00"}')


@pytest.mark.parametrize("wire", ['"yesterday"', '"2026-01-01"', '"2026-01-01T00:00:00.000000"', "17", "{}", "true"])
def test_what_is_no_time_is_refused_with_its_path(wire: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"at `\$.exactly`"):
        read(f'{{"exactly":{wire}}}'.encode())


def test_now_has_a_timezone_and_whole_seconds() -> None:
    assert now().tzinfo is UTC
    assert now().microsecond == 0


def test_micro_now_is_in_utc() -> None:
    assert MicroTime.now().tzinfo is UTC


def test_without_a_loop_the_wall_clock_is_the_systems() -> None:
    before = time.time()
    assert before <= wall_clock() <= time.time()


async def test_on_virtual_time_the_date_goes_with_the_time() -> None:
    begin, stamp = now(), MicroTime.now()
    await asyncio.sleep(86_400)

    assert now() - begin == timedelta(days=1)
    assert MicroTime.now() - stamp == timedelta(days=1)
    assert wall_clock() == stamp.timestamp() + 86_400


async def test_a_thread_may_ask_for_the_date_of_a_loop() -> None:
    await asyncio.sleep(3600)
    assert await asyncio.to_thread(wall_clock, asyncio.get_running_loop()) == wall_clock()


@pytest.mark.real_time(limit=30)
async def test_on_an_ordinary_loop_the_date_is_the_systems() -> None:
    before = time.time()
    assert before <= wall_clock() <= time.time()
